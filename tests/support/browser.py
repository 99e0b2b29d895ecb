"""A headless Chromium, spoken to over a pipe by its debugging protocol: no driver, no port, no further package."""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kduel.core.temporary import temporary_directory

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-default-apps",
    "--mute-audio",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
]


PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


class Browser:
    """One page. `problems` are exceptions, console errors and security violations; `requests` every URL asked for."""

    def __init__(self, executable: str, width: int = 1200, height: int = 1600) -> None:
        self.executable = executable
        self.width, self.height = width, height
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.number = 0
        self.rest = b""
        self.loaded = False
        self.held = ExitStack()

    def __enter__(self) -> Self:
        # Chromium may still write while it ends: what it leaves the next browser removes.
        profile = self.held.enter_context(temporary_directory(prefix="kduel-browser-"))
        read_theirs, self.write = os.pipe()
        self.read, write_theirs = os.pipe()

        def wire() -> None:
            # Chromium reads commands from 3 and writes answers to 4.
            high = os.dup(read_theirs), os.dup(write_theirs)
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [self.executable, *FLAGS, f"--user-data-dir={profile}"],
            preexec_fn=wire,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(read_theirs)
        os.close(write_theirs)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.resize(self.width, self.height)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.session = ""
            self.call("Browser.close")
        except (OSError, AssertionError):
            self.process.kill()
        self.process.wait(20)
        os.close(self.read)
        os.close(self.write)
        self.held.close()

    session = ""

    def call(self, method: str, **parameters: Any) -> Any:
        """One command and its answer; what happens meanwhile is taken note of."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 600
        while time.monotonic() < deadline:
            answer = self.receive(deadline)
            if answer.get("id") == self.number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
        raise AssertionError(f"no answer to {method}")

    def receive(self, deadline: float) -> Any:
        """The next message."""
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.read], [], [], max(0, deadline - time.monotonic()))
            assert ready, "the browser says nothing"
            chunk = os.read(self.read, 1 << 20)
            assert chunk, "the browser has gone"
            self.rest += chunk
        line, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(line)
        self.note(message.get("method", ""), message.get("params", {}))
        return message

    def note(self, method: str, said: dict[str, Any]) -> None:
        """Keep what a test wants to know."""
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(said["exceptionDetails"])[:500])
        elif method == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning", "assert"):
            self.problems.append(json.dumps(said["args"])[:500])
        elif method == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
            self.problems.append(said["entry"]["text"][:500])
        elif method == "Network.requestWillBeSent":
            self.requests.append(said["request"]["url"])

    def open(self, path: Path) -> None:
        """Load a file, and return when it is there."""
        self.loaded = False
        self.call("Page.navigate", url=path.as_uri())
        deadline = time.monotonic() + 600
        while not self.loaded:
            self.receive(deadline)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, replMode=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition: str, seconds: float = 600) -> None:
        """Until the condition holds in the page."""
        deadline = time.monotonic() + seconds
        while not self.evaluate(condition):
            assert time.monotonic() < deadline, f"never true: {condition}; {self.problems}"
            time.sleep(0.05)

    def resize(self, width: int, height: int) -> None:
        """The window's size."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def media(self, kind: str = "screen", scheme: str = "light") -> None:
        """Screen or print, light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=kind, features=features)

    def hover(self, x: float, y: float) -> None:
        """Move the mouse there."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def picture(self, path: Path) -> None:
        """What the window shows."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
