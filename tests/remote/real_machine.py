"""The test machine, switched on: a QEMU with a disk of its own, reached by SSH on loopback alone."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from kduel.cache import Cache
from kduel.kernels import resolve
from kduel.machines import Arm, Machine, Needs, Outcome, Trial, machine_kind
from kduel.talk import Talk
from kduel.words import Contender

sys.path.insert(0, str(Path(__file__).parent))
import build_machine

UP = 600.0
"""Seconds that a boot may take in an emulator on a busy host."""


class Real:
    """The machine, switched on, and how to reach it."""

    def __init__(self, place: Path) -> None:
        self.entry = build_machine.machine(Cache(), Talk())
        self.releases = [resolve(s, cache=Cache(), talk=Talk()).release for s in build_machine.KERNELS]
        subprocess.run(["cp", "--sparse=always", self.entry / "disk.img", place / "disk.img"], check=True)
        self.place = place
        self.identity = place / "id"
        shutil.copyfile(self.entry / "id", self.identity)
        self.identity.chmod(0o600)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.known_hosts = place / "known_hosts"
        kind, key, *_ = (self.entry / "host.pub").read_text().split()
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {kind} {key}\n")
        self.process: subprocess.Popen[bytes] | None = None

    def switch_on(self) -> None:
        argv = [
            *(
                "qemu-system-x86_64",
                "-nodefaults",
                "-no-user-config",
                "-display",
                "none",
                "-machine",
                "q35,accel=tcg",
            ),
            *("-cpu", "max", "-smp", "2", "-m", "1024M", "-serial", f"file:{self.place / 'serial.log'}"),
            *("-drive", f"if=none,id=disk,format=raw,cache=unsafe,file={self.place / 'disk.img'}"),
            *("-device", "nvme,drive=disk,serial=1,bootindex=0"),
            *(
                "-netdev",
                f"user,id=net,hostfwd=tcp:127.0.0.1:{self.port}-:22",
                "-device",
                "virtio-net-pci,netdev=net",
            ),
        ]
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL)

    def switch_off(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def settings(self, user: str = "root", **change: Any) -> dict[str, Any]:
        return {
            "place": f"{user}@127.0.0.1",
            "port": self.port,
            "identity": str(self.identity),
            "known_hosts": str(self.known_hosts),
            "boot_deadline": UP,
            "free_mib": 64,
        } | change

    def ssh(self, command: str) -> str:
        done = subprocess.run(
            ["ssh", "-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={self.known_hosts}", "-i", self.identity,
             "-p", str(self.port), "root@127.0.0.1", command],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        return done.stdout

    def wait(self) -> None:
        end = time.monotonic() + UP
        while "up" not in self.ssh("echo up"):
            assert time.monotonic() < end, (self.place / "serial.log").read_text(errors="replace")[-3000:]
            time.sleep(3)

    def prepare(self, *specs: str, user: str = "root", **change: Any) -> tuple[Machine, list[Arm]]:
        arms = [
            Arm(Contender(kernel=s, name=s), resolve(s, cache=Cache(), talk=Talk()))
            for s in (specs or [f"installed:{release}" for release in self.releases])
        ]
        kind = machine_kind("ssh")
        settings = kind.read_settings(self.settings(user, **change))
        return kind.prepare(settings, arms, Needs(), cache=Cache(), talk=Talk()), arms


def boot(machine: Machine, arm: Arm, place: Path, script: str) -> Outcome:
    place.mkdir()
    head = 'mkdir -p "$1"/environment; uname -a >"$1"/environment/uname\n'
    return machine.boot(Trial(id=place.name, arm=arm, script=head + script, deadline=120, into=place))
