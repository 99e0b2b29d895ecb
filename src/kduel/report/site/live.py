"""A run's progress as a page that stays current, on loopback alone, by server-sent events (HTML Standard, 9.2)."""

import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from kduel.core.errors import HostError, InputError

ADDRESS = "127.0.0.1"
PAUSE = 2.0
"""Seconds between two readings of the run."""


class LiveServer(ThreadingHTTPServer):
    """Serves the text that `read` gives. `ended` is set when it is to end. Raises HostError if the port is not free."""

    daemon_threads = True

    def __init__(self, port: int, title: str, read: Callable[[], str], pause: float = PAUSE) -> None:
        self.title, self.read, self.pause = title, read, pause
        self.ended = threading.Event()
        self.reading = threading.Lock()
        self.text, self.read_at = "", 0.0
        try:
            super().__init__((ADDRESS, port), LiveHandler)
        except OSError as error:
            raise HostError(
                f"port {port} of {ADDRESS} cannot be served: {error}", "Name another one, or 0 for any."
            ) from None

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_port}/"

    def current(self) -> str:
        """The text, read at most once in a pause however many look at it."""
        with self.reading:
            if not self.text or time.monotonic() - self.read_at >= self.pause:
                try:
                    self.text = self.read()
                except InputError as error:
                    self.text = f"{error}\n"
                self.read_at = time.monotonic()
            return self.text


class LiveHandler(BaseHTTPRequestHandler):
    """Answers `/` with the page, and `/events` with the text whenever it has changed."""

    server: LiveServer

    def do_GET(self) -> None:
        """Answer, unless another site's name leads here (DNS rebinding)."""
        port = self.server.server_port
        if self.headers.get("Host") not in (f"{ADDRESS}:{port}", f"localhost:{port}"):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
        elif self.path == "/":
            from kduel.report.page.render import render_page

            page = render_page("live.html", title=self.server.title, text=self.server.current())
            self.begin("text/html; charset=utf-8")
            self.wfile.write(page.encode())
        elif self.path == "/events":
            self.send_events()
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def begin(self, kind: str) -> None:
        """The head of an answer."""
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()

    def send_events(self) -> None:
        """An event for each change, until the reader or the server goes away."""
        self.begin("text/event-stream; charset=utf-8")
        shown = None
        try:
            while not self.server.ended.is_set():
                text = self.server.current()
                lines = [f"data: {line}" for line in text.splitlines()] if text != shown else [": the same"]
                self.wfile.write("\n".join([*lines, "", ""]).encode())
                self.wfile.flush()
                shown = text
                self.server.ended.wait(self.server.pause)
        except OSError:
            return

    def log_message(self, *_: object) -> None:
        """Requests are nobody's concern."""
