"""A fake board, for tests: its boot loader speaks fastboot over TCP, and what it then boots is QEMU.

    fake_fastboot_board.py serve PLACE QEMU ARGUMENT...    files in the directory PLACE; tells its ports in PLACE/ports
    fake_fastboot_board.py on|off PORT                     its power switch

It is three listeners: the power switch, the serial line (raw TCP), and, while it is on and has booted nothing,
fastboot. Of that protocol it knows what `fastboot boot` and `fastboot flash` need: a handshake FB01, messages with
their length in eight bytes before them, getvar, download, flash, boot.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

VARIABLES = {"max-download-size": "0x20000000", "is-logical:userdata": "no", "has-slot:userdata": "no"}


class Board:
    """The board; `serve` never returns."""

    def __init__(self, place: Path, qemu: list[str]) -> None:
        self.place, self.qemu = place, qemu
        self.console, self.switch, self.fastboot = (socket.create_server(("127.0.0.1", 0)) for _ in range(3))
        self.is_on = False
        self.line: socket.socket | None = None
        self.guest: subprocess.Popen[bytes] | None = None

    def serve(self) -> None:
        names = {"console": self.console, "switch": self.switch, "fastboot": self.fastboot}
        told = json.dumps({name: listener.getsockname()[1] for name, listener in names.items()})
        (self.place / "ports.new").write_text(told)
        (self.place / "ports.new").rename(self.place / "ports")
        threading.Thread(target=self.attend_console, daemon=True).start()
        threading.Thread(target=self.attend_fastboot, daemon=True).start()
        while True:
            with self.switch.accept()[0] as hand:
                self.is_on = hand.recv(8) == b"on"
                if self.guest:
                    self.guest.kill()
                    self.guest.wait()
                    self.guest = None
                hand.sendall(b"done")

    def attend_console(self) -> None:
        while True:
            self.line = self.console.accept()[0]

    def say(self, data: bytes) -> None:
        try:
            if self.line:
                self.line.sendall(data)
        except OSError:
            self.line = None

    def attend_fastboot(self) -> None:
        while True:
            with self.fastboot.accept()[0] as host:
                if self.is_on and self.guest is None:
                    with contextlib.suppress(EOFError):
                        self.speak_fastboot(host)

    def speak_fastboot(self, host: socket.socket) -> None:
        def take(size: int) -> bytes:
            data = bytearray()
            while len(data) < size:
                piece = host.recv(min(size - len(data), 1 << 20))
                if not piece:
                    raise EOFError
                data += piece
            return bytes(data)

        def message() -> bytes:
            return take(int.from_bytes(take(8), "big"))

        def answer(text: str) -> None:
            host.sendall(len(text).to_bytes(8, "big") + text.encode())

        take(4)
        host.sendall(b"FB01")
        content = b""
        while True:
            verb, _, rest = message().decode().partition(":")
            if verb == "getvar":
                answer(f"OKAY{VARIABLES[rest]}" if rest in VARIABLES else "FAILno such variable")
            elif verb == "download":
                answer(f"DATA{rest}")
                content = b""
                while len(content) < int(rest, 16):
                    content += message()
                answer("OKAY")
            elif verb == "flash":
                self.say(f"fake board: writes {rest}\r\n".encode())
                (self.place / f"partition-{rest}").write_bytes(content)
                answer("OKAY")
            elif verb == "boot" and content.startswith(b"ANDROID!"):
                self.boot(content)
                answer("OKAY")
                return
            else:
                answer("FAILthis board does not know how")

    def boot(self, image: bytes) -> None:
        """Take the image apart by the real tool, and start what is in it."""
        (self.place / "received.img").write_bytes(image)
        parts = self.place / "parts"
        command = ["unpack_bootimg", "--boot_img", self.place / "received.img", "--out", parts]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        cmdline = "".join(re.findall(r"^(?:additional )?command line args: (.*)$", said, re.MULTILINE))
        arguments = [*self.qemu, "-kernel", parts / "kernel", "-append", cmdline, "-serial", "stdio"]
        if int(re.search(r"ramdisk size: (\d+)", said)[1]):
            arguments += ["-initrd", parts / "ramdisk"]
        for partition in self.place.glob("partition-*"):
            arguments += ["-drive", f"if=virtio,format=raw,file={partition}"]
        self.say(b"fake board: boots what it was given\r\n")
        self.guest = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        threading.Thread(target=self.pass_on, args=(self.guest,), daemon=True).start()

    def pass_on(self, guest: subprocess.Popen[bytes]) -> None:
        assert guest.stdout
        while data := guest.stdout.read1(4096):
            self.say(data)


if __name__ == "__main__":
    verb, where, *words = sys.argv[1:]
    if verb == "serve":
        Board(Path(where), words).serve()
    else:
        with socket.create_connection(("127.0.0.1", int(where))) as hand:
            hand.sendall(verb.encode())
            hand.recv(8)
