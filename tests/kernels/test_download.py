"""What the network, a server or an address does wrong is said as such, and is no traceback."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kduel.core.errors import HostError
from kduel.core.progress import Progress
from kduel.kernels.packages import fetch

OK = b"HTTP/1.1 200 OK\r\n"


@contextmanager
def answering(*pieces: bytes, pause: float = 0.0) -> Iterator[str]:
    """A server that gives each client these bytes, whatever it asks; its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)

        def serve() -> None:
            try:
                client, _ = server.accept()
            except OSError:
                return
            with client:
                try:
                    client.recv(65536)
                    for piece in pieces:
                        client.sendall(piece)
                        time.sleep(pause)
                except OSError:
                    return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/file"


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"rubbish\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 500 \x1b[31mno\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n10\r\nabc",
        OK + b"X: y\r\n" * 200 + b"\r\n",
        OK + b"X: " + b"y" * 70000 + b"\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://[::1/\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: gopher://x/\r\n\r\n",
    ],
)
def test_a_bad_answer_is_an_error_of_the_server(answer: bytes, tmp_path: Path) -> None:
    with answering(answer) as address, pytest.raises(HostError) as caught:
        fetch.download(address, tmp_path / "file", Progress())
    assert "cache" not in caught.value.message and "\x1b" not in caught.value.message
    assert address in caught.value.message


@pytest.mark.parametrize(
    "address",
    [
        "http://[",
        "http://a b/",
        "http://\u00fc.invalid/\u00fc",
        "http://a\x1b[31m/",
        "http://127.0.0.1:port/",
        "no",
        "",
    ],
)
def test_an_odd_address_is_named(address: str, tmp_path: Path) -> None:
    with pytest.raises(HostError, match="could not be downloaded") as caught:
        fetch.download(address, tmp_path / "file", Progress())
    assert "\x1b" not in caught.value.message


def test_nobody_answers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/"
    with pytest.raises(HostError, match="refused") as caught:
        fetch.download(address, tmp_path / "file", Progress())
    assert "network" in caught.value.remedy and "cache" not in caught.value.message


def test_a_download_that_drips_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "PATIENCE", 0.0)
    with (
        answering(OK + b"Content-Length: 9999\r\n\r\n", *[b"x"] * 50, pause=0.05) as address,
        pytest.raises(HostError, match="bytes a second"),
    ):
        fetch.download(address, tmp_path / "file", Progress())


CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "pieces",
    [
        [b"HTTP/1.1 200 O"] + [b"K"] * 50,
        [OK + b"X: "] + [b"y"] * 50,
        [b"HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 9999\r\n\r\n"] + [b"x"] * 50,
        [CHUNKED] + [b"0"] * 50,
        [CHUNKED + b"1\r\nx\r\n0\r\nX: "] + [b"y"] * 50,
    ],
    ids=["status", "header", "redirect", "size of a chunk", "trailer"],
)
def test_whatever_drips_ends(pieces: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of headers and of chunks were read to their end before anybody looked at the time."""
    monkeypatch.setattr(fetch, "PATIENCE", 0.0)
    with answering(*pieces, pause=0.05) as address, pytest.raises(HostError, match="bytes a second"):
        fetch.download(address, tmp_path / "file", Progress())


def test_a_redirect_with_endless_text_ends(tmp_path: Path) -> None:
    """urllib reads it whole, into memory."""
    first = b"HTTP/1.1 302 Found\r\nLocation: /other\r\n\r\n"
    with (
        answering(first, *[bytes(1 << 18)] * 12) as address,
        pytest.raises(HostError, match="come before the file"),
    ):
        fetch.download(address, tmp_path / "file", Progress())


def test_a_redirect_to_ftp_is_refused(tmp_path: Path) -> None:
    with (
        answering(b"HTTP/1.1 302 Found\r\nLocation: ftp://127.0.0.1:1/x\r\nContent-Length: 0\r\n\r\n") as address,
        pytest.raises(HostError, match="unknown url type"),
    ):
        fetch.download(address, tmp_path / "file", Progress())


def test_a_file_larger_than_what_may_come_before_it(tmp_path: Path) -> None:
    with answering(OK + b"\r\n", bytes(3 << 20)) as address:
        assert fetch.download(address, tmp_path / "file", Progress()).stat().st_size == 3 << 20


def test_trouble_with_the_disk_is_not_one_of_the_network(tmp_path: Path) -> None:
    with answering(OK + b"\r\nabc") as address, pytest.raises(HostError, match="cache"):
        fetch.download(address, tmp_path / "missing/file", Progress())


def test_a_full_disk_is_said_when_the_file_is_closed(tmp_path: Path) -> None:
    """A small file is written only then. /dev/full takes nothing."""
    with answering(OK + b"\r\nabc") as address, pytest.raises(HostError, match=r"cache.*No space left"):
        fetch.download(address, Path("/dev/full"), Progress())


def test_a_list_without_a_size_ends_at_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mirror whose lists nobody signs could fill disk and memory with one."""
    assert fetch.MOST_LIST <= 1 << 30
    monkeypatch.setattr(fetch.download, "__kwdefaults__", fetch.download.__kwdefaults__ | {"most": 1000})
    answer = OK + b"Content-Length: 5000\r\n\r\n" + b"x" * 5000
    with answering(answer) as address, pytest.raises(HostError, match="is larger than it may be"):
        fetch.download(address, tmp_path / "list", Progress())
    with answering(answer) as address:
        fetch.download(address, tmp_path / "bundle", Progress(), most=5000)
