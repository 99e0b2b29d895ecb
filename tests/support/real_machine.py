"""The test machine, switched on: a QEMU with a disk of its own, reached by SSH on loopback alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import build_machine

from kduel.core.cache import Cache
from kduel.core.experiment import Contender
from kduel.core.progress import Progress
from kduel.kernels import resolve
from kduel.machines import Arm, Machine, Needs, Outcome, Trial, machine_kind

SOURCE = Path(__file__).parents[2] / "src"
CUT = (
    '(sleep 2; for p in /proc/[0-9]*; do read -r c <$p/comm; [ "$c" != sshd ] || [ ${p#/proc/} = $(cat /run/sshd.pid) ] || '
    "kill ${p#/proc/}; done) 2>/dev/null & sleep 8; cat /proc/sys/vm/swappiness"
)
"""The machine's own sshd ends every session while the script runs."""
UP = 600.0
"""Seconds that a boot may take in an emulator on a busy host."""


def mount_unit(about: str, what: str) -> str:
    """A systemd unit that mounts something of the machine's second disk, /dev/vda."""
    return f"""[Unit]
Description={about}
DefaultDependencies=no
Before=local-fs.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStartPre=modprobe virtio_blk
ExecStart=mount {what}
[Install]
WantedBy=local-fs.target
"""


class Real:
    """The machine, switched on, and how to reach it."""

    cpus = 2
    memory = "1024M"
    processor = "max"
    emulator: tuple[str, ...] = ("qemu-system-x86_64",)
    """QEMU, and how it is started."""
    accelerator = "tcg"
    packages: tuple[str, ...] = ()
    """Packages that the disk has besides."""
    more: tuple[str, ...] = ()
    """Further words for QEMU."""
    boot_index = 0
    """Place of its disk among what QEMU boots from; a kernel in `more` takes 0."""
    forwarded: tuple[int, ...] = ()
    """Ports of loopback that lead to the same ones of the machine."""

    def __init__(self, place: Path) -> None:
        self.entry = self.image()
        self.releases = [resolve(s, cache=Cache(), progress=Progress()).release for s in build_machine.KERNELS]
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

    def image(self) -> Path:
        """The directory of its disk and keys."""
        return build_machine.machine(Cache(), Progress(), self.packages)

    def switch_on(self) -> None:
        forwards = "".join(
            f",hostfwd=tcp:127.0.0.1:{to}-:{at}"
            for to, at in [(self.port, 22), *zip(self.forwarded, self.forwarded, strict=True)]
        )
        argv = [
            *self.emulator,
            *(
                "-nodefaults",
                "-no-user-config",
                "-display",
                "none",
                "-machine",
                "q35",
                "-accel",
                self.accelerator,
            ),
            *(
                "-cpu",
                self.processor,
                "-smp",
                str(self.cpus),
                "-m",
                self.memory,
            ),
            # Each QEMU adds to it: what a kernel printed that did not boot is there when the next one has.
            *(
                "-chardev",
                f"file,id=console,path={self.place / 'serial.log'},append=on",
                "-serial",
                "chardev:console",
            ),
            *("-drive", f"if=none,id=disk,format=raw,cache=unsafe,file={self.place / 'disk.img'}"),
            *("-device", f"nvme,drive=disk,serial=1,bootindex={self.boot_index}"),
            *("-netdev", f"user,id=net{forwards}"),
            *("-device", "virtio-net-pci,netdev=net"),
            *self.more,
        ]
        # At a reset QEMU ends, and a new one begins: one that goes on takes up to five times as long for the next boot.
        loop = ["sh", "-c", 'while "$@" -no-reboot; do :; done', "machine", *argv]
        self.process = subprocess.Popen(loop, stdin=subprocess.DEVNULL, start_new_session=True)

    def switch_off(self) -> None:
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
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

    def furnish(self) -> None:
        """What a kind of machine needs besides, once it is up."""

    def argv(self, command: str) -> list[str]:
        return [
            *("ssh", "-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={self.known_hosts}", "-i", str(self.identity)),
            *("-p", str(self.port), "root@127.0.0.1", command),
        ]

    def ssh(self, command: str) -> str:
        done = subprocess.run(self.argv(command), capture_output=True, text=True, timeout=600, check=False)
        return done.stdout

    def wait(self) -> None:
        end = time.monotonic() + UP
        while "up" not in self.ssh("echo up"):
            assert time.monotonic() < end, self.last_words()
            time.sleep(3)

    def last_words(self) -> str:
        """The end of its console, its former boots' included."""
        return "\nThe machine's console:\n" + (self.place / "serial.log").read_text(errors="replace")[-12_000:]

    def prepare(self, *specs: str, user: str = "root", cmdline: str = "", **change: Any) -> tuple[Machine, list[Arm]]:
        arms = [
            Arm(Contender(kernel=s, name=s, cmdline=cmdline), resolve(s, cache=Cache(), progress=Progress()))
            for s in (specs or [f"installed:{release}" for release in self.releases])
        ]
        kind = machine_kind("ssh")
        settings = kind.read_settings(self.settings(user, **change))
        return kind.prepare(settings, arms, Needs(), cache=Cache(), progress=Progress()), arms


def boot(machine: Machine, arm: Arm, place: Path, script: str) -> Outcome:
    place.mkdir()
    head = 'mkdir -p "$1"/environment; uname -a >"$1"/environment/uname\n'
    return machine.boot(Trial(id=place.name, arm=arm, script=head + script, deadline=600, into=place))


def study(real: Real, tmp_path: Path, spec: str, **change: Any) -> None:
    """`kduel run`, as a user would: the machine's default against another kernel, which has a word for its command line and a
    sysctl; the connection is cut in each trial; at the end nothing of it is left."""
    machine = "\n".join(f"{key} = {json.dumps(value)}" for key, value in real.settings("tuner", **change).items())
    old = real.releases[0]
    new = resolve(spec, cache=Cache(), progress=Progress()).release
    path = tmp_path / "study.toml"
    path.write_text(
        f'[study]\nname = "real"\n[[contender]]\nkernel = "installed:{old}"\nname = "old"\n'
        f'[[contender]]\nkernel = "{spec}"\nname = "new"\ncmdline = "kduel_test=1"\n'
        f'sysctl = {{"vm.swappiness" = 7}}\n[machine]\nkind = "ssh"\n{machine}\n'
        '[settle]\nmode = "fixed"\nseconds = 0\n[blocks]\nfixed = 1\n'
        '[[benchmark]]\nuse = "sysbench-cpu"\ntime = 1\nprimary = ["events-per-second"]\n'
        '[[benchmark]]\nuse = "command"\nlabel = "cut"\n'
        f"command = '''{CUT}'''\n"
        'metrics = [{name = "swappiness", unit = "1", better = "none", regex = "(\\\\d+)"}]\n'
    )
    done = subprocess.run(
        [sys.executable, "-m", "kduel", "run", str(path), "--out", str(tmp_path / "run"), "--seed", "1"],
        env=os.environ | {"PYTHONPATH": str(SOURCE), "NO_COLOR": "1"},
        capture_output=True, text=True, timeout=3000, check=False,
    )  # fmt: skip
    # What a kernel that did not boot printed is there alone.
    assert done.returncode == 0, done.stdout + done.stderr + real.last_words()
    seen = {}
    for trial in sorted((tmp_path / "run" / "trials").iterdir()):
        record = json.loads((trial / "trial.json").read_text())
        assert record["status"] == "ok", f"{record['void']} {record['failed_steps']} {real.last_words()}"
        assert record["facts"]["connection_cuts"] >= 1
        captured = json.loads((trial / "environment.json").read_text())
        assert "ssh.service" in captured["conditions"]["services"]
        cmdline = (trial / "environment" / "files").read_text()
        seen[captured["release"]] = ("kduel_test=1" in cmdline, (trial / "02-cut" / "stdout").read_text())
    assert seen == {old: (False, "60\n"), new: (True, "7\n")}
    assert "real · 1 block · 2 trials · ssh" in done.stdout
    # Nothing of ours is left: no choice for the next boot, no entry, no file, no setting.
    left = real.ssh(
        "cat /boot/grub/grubenv; ls /efi/loader/entries /boot/grub/custom.cfg /var/lib/kduel*; ls /var/tmp; cat /proc/sys/vm/swappiness"
    )
    assert not re.search("next_entry=.", left) and "kduel" not in left and left.endswith("60\n"), left
