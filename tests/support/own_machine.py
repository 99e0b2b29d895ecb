"""The test machine with KDuel on it, which measures the very machine that it runs on."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Any

import build_environment
from real_machine import SOURCE, UP, Real, mount_unit

from kduel.core.cache import Cache

DISK = mount_unit("KDuel's Python environment", f"-o ro /dev/vda {build_environment.PLACE}")
COMMAND = f"""#!/bin/sh
PYTHONPATH=/root/src exec {build_environment.PLACE}/bin/python -m kduel "$@"
"""
LATEST = 1800.0
"""Seconds that a run of some trials may take in an emulator on a busy host."""


class Own(Real):
    """With this checkout's KDuel as the command `kduel`."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        environment = build_environment.environment(Cache())
        # No second NVMe: which of two is nvme0 changes from boot to boot.
        self.more = ("-drive", f"if=none,id=environment,format=raw,readonly=on,file={environment}",
                     "-device", "virtio-blk-pci,drive=environment")  # fmt: skip

    def furnish(self) -> None:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            tar.add(SOURCE, "root/src", filter=lambda member: None if "__pycache__" in member.name else member)
            for path, text, mode in (
                ("etc/systemd/system/kduel-test-disk.service", DISK, 0o644),
                ("usr/local/bin/kduel", COMMAND, 0o755),
            ):
                member = tarfile.TarInfo(path)
                member.size, member.mode = len(text), mode
                tar.addfile(member, io.BytesIO(text.encode()))
        script = f"tar -C / --no-same-owner -xf - && mkdir -p {build_environment.PLACE} && systemctl enable --now kduel-test-disk"
        done = subprocess.run(
            self.argv(script), input=packed.getvalue(), capture_output=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr.decode()

    def write(self, path: str, text: str) -> None:
        subprocess.run(self.argv(f"cat >{path}"), input=text.encode(), timeout=120, check=True)

    def kduel(self, *words: str) -> tuple[int, str]:
        """The exit status (255 where the machine went down meanwhile), and all that was said."""
        done = subprocess.run(
            self.argv(" ".join(["kduel", *words, "2>&1"])),
            capture_output=True,
            text=True,
            timeout=LATEST,
            check=False,
        )
        return done.returncode, done.stdout

    def wait_until(self, condition: str) -> None:
        """Until the machine says yes, over all of its reboots."""
        end = time.monotonic() + LATEST
        while "yes" not in self.ssh(f"{condition} && echo yes"):
            assert time.monotonic() < end, (
                self.ssh("journalctl -u kduel-resume --no-pager | tail -n 50; ls /root/*/trials")
                or (self.place / "serial.log").read_text(errors="replace")[-3000:]
            )
            time.sleep(3)

    def wait_for_the_end(self, run: str) -> None:
        """Of the run: its report is there, and the unit has ended."""
        self.wait_until(f"[ -e {run}/report/index.html ] && ! systemctl -q is-active kduel-resume")

    def study(self, command: str, blocks: int) -> str:
        """A study file there: both kernels, the newer one with a word for its command line and a sysctl."""
        old, new = self.releases
        self.write(
            "/root/study.toml",
            f'[study]\nname = "two kernels"\n[[contender]]\nkernel = "installed:{old}"\nname = "old"\n'
            f'[[contender]]\nkernel = "installed:{new}"\nname = "new"\ncmdline = "kduel_test=1"\n'
            'sysctl = {"vm.swappiness" = 7}\n[machine]\nkind = "local"\nboot = "grub-reboot"\n'
            f'boot_deadline = {UP}\nfree_mib = 64\n[settle]\nmode = "fixed"\nseconds = 0\n[blocks]\nfixed = {blocks}\n'
            f'[[benchmark]]\nuse = "command"\nlabel = "seen"\ncommand = "{command}"\n'
            'metrics = [{name = "swappiness", unit = "1", better = "none", regex = "^(\\\\d+)$"}]\n'
            '[[benchmark]]\nuse = "sysbench-cpu"\ntime = 1\nprimary = ["events-per-second"]\n',
        )
        return "/root/study.toml"

    def records(self, run: str) -> list[dict[str, Any]]:
        """In the plan's order."""
        said = self.ssh(f"for f in {run}/trials/*/trial.json; do tr -d '\\n' <$f; echo; done")
        return [json.loads(line) for line in said.splitlines()]
