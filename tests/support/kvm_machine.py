"""The test machine with working KVM: QEMU's emulator emulates AMD's virtualisation with nested paging.

What runs in its guests runs through /dev/kvm as on hardware; their speed is that of an emulator in an emulator.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from own_machine import LATEST, Own

CONTENDERS = ("debian:6.1-cloud", "debian:6.12-cloud")
ENVIRONMENT = "KDUEL_CACHE=/dev/shm/cache"


class KvmMachine(Own):
    """With KDuel, QEMU and a filled cache on it; kvm_amd is loaded, and the group `kvm` may open /dev/kvm."""

    memory = "6144M"
    processor = "max,+svm,+npt"
    packages = ("cpio", "e2fsprogs", "lz4", "qemu-system-x86", "xz-utils", "zstd")

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.bundle = place / "bundle.tar"

    def furnish(self) -> None:
        super().furnish()
        self.must("modprobe kvm_amd && groupadd -f kvm && chgrp kvm /dev/kvm && chmod 660 /dev/kvm")
        self.copy(self.bundle, "/dev/shm/bundle.tar")
        self.must(f"{ENVIRONMENT} kduel unbundle /dev/shm/bundle.tar && rm /dev/shm/bundle.tar")

    def copy(self, file: Path, to: str) -> None:
        """Copy a file of this host to the machine."""
        with file.open("rb") as stream:
            subprocess.run(self.argv(f"cat >{to}"), stdin=stream, timeout=LATEST, check=True)

    def must(self, command: str) -> str:
        """Run a command there that has to succeed; what it prints."""
        done = subprocess.run(
            self.argv(f"{{ {command}; }} 2>&1"), capture_output=True, text=True, timeout=LATEST, check=False
        )
        assert done.returncode == 0, done.stdout
        return done.stdout
