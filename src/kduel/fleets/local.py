"""Several workers here: for machines not timed on this host (icount), or SSH machines and boards."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from kduel.core.errors import InputError
from kduel.core.progress import Progress
from kduel.fleets import Beat, Count, Fleet, FleetKind, FleetSettings, Member
from kduel.fleets.workers.process import Worker
from kduel.machines import machine_kind


class LocalFleetSettings(FleetSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    workers: Count = 2
    """Worker processes; each is a member."""


class LocalFleet(Fleet):
    """Worker processes of this machine. They end with this process."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = tuple(members)
        self.workers = {member.name: Worker(command) for member in members}

    def start(self, name: str, directory: Path, blocks: Sequence[int]) -> None:
        self.workers[name].start(directory, blocks)

    def beat(self, name: str, directory: Path) -> Beat:
        return self.workers[name].beat(directory)

    def cancel(self, name: str, directory: Path) -> None:
        self.workers[name].cancel()


def command(directory: Path) -> list[str]:
    return [sys.executable, "-P", "-m", "kduel", "worker", str(directory.absolute())]


class LocalFleetKind(FleetKind[LocalFleetSettings]):
    name: ClassVar[str] = "local"
    summary: ClassVar[str] = "several worker processes on this machine, for exact machines"

    def named_members(self, settings: LocalFleetSettings, machine: str) -> list[Member]:
        if settings.workers > 1 and machine_kind(machine).timed_on_host:
            raise InputError(
                f"the machine {machine} measures time, and {settings.workers} workers on one host disturb one another",
                "Use --fleet local with machine icount; for timings, one worker a host: --fleet hosts or slurm.",
            )
        return [Member(name=f"worker{number}") for number in range(1, settings.workers + 1)]

    def open(
        self, settings: LocalFleetSettings, *, machine: str, run: str, known: Sequence[str], progress: Progress
    ) -> Fleet:
        return LocalFleet(self.named_members(settings, machine))


PLUGIN = LocalFleetKind()
