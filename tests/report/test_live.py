"""The status of a run as a page on loopback: it shows the present state, tells of a change, and changes nothing."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kduel.cli.status import as_text, read_status
from kduel.core.errors import HostError
from kduel.report.site.live import LiveServer


@pytest.fixture
def run(unpack: Callable[[str], Path]) -> Path:
    return unpack("interrupted")


@pytest.fixture
def server(run: Path) -> Iterator[LiveServer]:
    with LiveServer(0, "run", lambda: as_text(read_status(run)), pause=0.02) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.02,))
        thread.start()
        yield made
        made.ended.set()
        made.shutdown()
        thread.join()


def ask(server: LiveServer, path: str, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=600)
    connection.request(method, path, headers=headers)
    return connection.getresponse()


def read_event(answer: http.client.HTTPResponse) -> str:
    """The data of the next event."""
    lines: list[str] = []
    while True:
        line = answer.readline().decode().rstrip("\n")
        if line.startswith("data: "):
            lines.append(line.removeprefix("data: "))
        elif not line and lines:
            return "\n".join(lines) + "\n"


def test_the_page_has_the_status_and_an_event_tells_of_a_change(server: LiveServer, run: Path) -> None:
    first = as_text(read_status(run))
    page = ask(server, "/").read().decode()
    assert first.splitlines()[0] in page and "EventSource" in page
    events = ask(server, "/events")
    assert events.getheader("Content-Type") == "text/event-stream; charset=utf-8"
    assert read_event(events) == first
    (trial,) = [path for path in (run / "trials").iterdir() if (path / "trial.json").exists()]
    trial.rename(run.parent / "moved")
    assert read_event(events) == as_text(read_status(run)) != first


def test_it_answers_no_other_site_no_other_path_and_changes_nothing(server: LiveServer, run: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    assert ask(server, "/", Host="evil.example").status == 421
    assert ask(server, "/../lock.json").status == 404
    assert ask(server, "/", "POST").status == 501
    assert ask(server, "/").status == 200
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before
    with pytest.raises(HostError, match="cannot be served"):
        LiveServer(server.server_port, "run", str)


@pytest.mark.slow
def test_the_command_serves_until_interrupted(run: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src"), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-P", "-m", "kduel", "status", str(run), "--serve", "0"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        url = started.stdout.readline().split()[-4]
        connection = http.client.HTTPConnection(url.removeprefix("http://").rstrip("/"), timeout=600)
        connection.request("GET", "/")
        assert b"nobody is at work in it" in connection.getresponse().read()
        started.send_signal(signal.SIGINT)
        told = started.communicate(timeout=600)[1]
    assert started.returncode == 130 and "Traceback" not in told
