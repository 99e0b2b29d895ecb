"""A board as its description has it, emulated or in a lab: what every boot brings along and must report."""

import fcntl
import os
import platform
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kduel.core.cache import Cache
from kduel.core.errors import HostError
from kduel.guest import mounted
from kduel.guest.busybox import Busybox
from kduel.guest.initramfs import Base
from kduel.guest.size import mebibytes
from kduel.machines import Arm, Trial
from kduel.machines.boards import Board
from kduel.machines.guests.judged import GuestMachine, QemuSettings
from kduel.machines.host.processors import host_cpu


class DescribedBoard(GuestMachine):
    def __init__(
        self,
        place: str,
        described: Board,
        settings: QemuSettings,
        box: Busybox,
        bases: Mapping[str, Base],
        images: Mapping[str, Path],
        cache: Cache,
    ) -> None:
        super().__init__(settings, bases, images, cache)
        self.board, self.box = described, box
        self.facts = {
            "board": {"name": place, "summary": described.summary, "root": described.root},
            "cpus": settings.cpus,
            "memory_mib": mebibytes(settings.memory, "memory"),
            "clocksource": described.clocksource,
            "busybox": {"version": box.version, "sha256": box.sha256},
            "host": {"cpu": host_cpu(), "cpus": os.cpu_count(), "kernel": platform.release()},
        }
        self._offered = lock_tree(described.tree) if described.tree else None
        self.set_up(place)

    @abstractmethod
    def set_up(self, place: str) -> None:
        """Add what boots the board, with its facts. Raises HostError where it cannot be had."""

    def boot_files(self, trial: Trial) -> bytes:
        """A boot's initial RAM disk, or the disk of its root; nothing where that is a directory, made later."""
        archive = super().boot_files(trial)
        if self.board.root == "disk":
            return mounted.disk(archive)
        if self.board.root == "nfs":
            mounted.fill(Path(self.board.tree), archive)
            return b""
        return archive

    def why_wrong(self, trial: Trial) -> str:
        """Check as for other guests; a root that does not come with the kernel could be that of the trial before."""
        stale = "" if self.board.root == "ram" else mounted.describe_other_script(trial.into, trial.script)
        return stale or super().why_wrong(trial)

    def close(self) -> None:
        """Let others have the directory that a server offers."""
        if self._offered is not None:
            os.close(self._offered)
            self._offered = None

    def cmdline(self, arm: Arm) -> str:
        """The kernel's command line: the same for all arms, then what the contender adds."""
        results = self.board.qemu.results if self.board.qemu else "console"
        words = [
            self.board.cmdline,
            f"console={self.board.console} panic=-1 oops=panic",
            "kduel.root=ram" if self.board.root == "ram" else "kduel.root=mounted ro init=/init",
            "" if results == "virtio" else f"kduel.results={results}",
            self.settings.cmdline,
            arm.contender.cmdline,
        ]
        return " ".join(word for word in words if word)

    def expected_environment(self, arm: Arm) -> dict[str, Any]:
        found = super().expected_environment(arm)
        if not self.board.clocksource:
            del found["clocksource"], found["clocksource_end"]
        return found


def lock_tree(tree: str) -> int:
    """A lock on the board's directory at the server, as a descriptor. Raises HostError if in use, or not ours."""
    mounted.check_ours(Path(tree))
    held = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        raise HostError(
            f"another run has its root in {tree}", "Wait for it, or give the board a directory of its own: tree = ..."
        ) from None
    return held
