"""Slurm: each node is a machine. For guests, its blocks are the tasks of a job array, a block a task. With the machine
`slurm-node` the nodes themselves are measured: workers of this machine drive them, and a trial is a job.

For guests the run's directory must be on a file system that the nodes share. A node needs KDuel and QEMU; with `python` an
interpreter is named that has KDuel where this one's path does not exist there. Slurm itself repeats a job whose node
failed: the same blocks, under the same trial ids, on the same node; trials that are there are not run again.
"""

import getpass
import re
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from kduel.core.errors import HostError, InputError
from kduel.core.progress import Progress
from kduel.core.this_host import text_of
from kduel.fleets import IDLE, Beat, Fleet, FleetKind, FleetSettings, Member, Positive
from kduel.fleets.local import LocalFleet
from kduel.fleets.workers.process import LOG, last_words
from kduel.machines.slurm.cluster import (
    HELD_BY,
    NOT_STARTED,
    describe_not_started,
    need_programs,
    nodes,
    partition_of,
    slurm,
    wishes,
)

ENDED = "ended"
"""In a member's directory: a line `BLOCK STATUS` for each task that has ended."""
TO_END = 60.0
"""Seconds that cancelled jobs may take to end."""
RUNNING = ("RUNNING", "COMPLETING")


class SlurmSettings(FleetSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    partition: str = ""
    """Slurm's default one if empty."""
    nodes: Annotated[int, Meta(ge=0, le=10_000)] = 0
    """Use so many usable nodes of the partition, the first ones by name; 0 for all."""
    nodelist: str = ""
    """Or these nodes, as Slurm writes them: n[1-4]."""
    account: str = ""
    qos: str = ""
    time: str = ""
    """Time limit of a block, as for sbatch; the partition's if empty."""
    exclusive: bool = True
    """True if a block has its node to itself. Machines that measure time need it."""
    python: str = ""
    """The Python interpreter on the nodes that has KDuel; this one's path if empty."""
    poll: Positive = 2.0


class Job(Struct, frozen=True):
    """Jobs of one name, as squeue lists them."""

    running: bool
    message: str
    number: str = ""
    """Job array id."""
    not_started: str = ""
    """Slurm's reason where it could not start one of them, and holds it."""


class Unreachable(Exception):
    """slurmctld does not answer at present."""


class SlurmFleet(Fleet):
    """Nodes of one cluster. Jobs are found again by their names, which follow from the run and the node."""

    def __init__(self, settings: SlurmSettings, run: str, members: Sequence[Member]) -> None:
        self.settings, self.run = settings, run
        self.members = tuple(members)
        self.jobs: dict[str, Job] = {}
        self.asked = 0.0
        self.given: dict[str, tuple[int, ...]] = {}

    def job_name(self, name: str) -> str:
        return f"kduel-{self.run}-{name}"

    def start(self, name: str, directory: Path, blocks: Sequence[int]) -> None:
        directory = directory.absolute()
        (directory / ENDED).unlink(missing_ok=True)
        said = slurm("sbatch", *self.options(name, directory, blocks), stdin=script(self.settings, directory, blocks))
        if not re.match(r"\d+", said):
            raise HostError(f"sbatch gives no job number: {said[:200]}", "Try sbatch by hand.")
        self.given[name] = tuple(blocks) or (0,)
        self.asked = 0.0

    def options(self, name: str, directory: Path, blocks: Sequence[int]) -> list[str]:
        """sbatch's arguments."""
        return [
            "--parsable", f"--job-name={self.job_name(name)}", f"--nodelist={name}", "--nodes=1", "--ntasks=1",
            *([f"--array=0-{len(blocks) - 1}%1"] if blocks else []),
            *(["--exclusive"] if self.settings.exclusive else []), "--requeue", "--open-mode=append",
            f"--output={directory / LOG}", f"--chdir={directory}",
            *(f"--{key}={value}" for key, value in wishes(self.settings).items()),
        ]  # fmt: skip

    def beat(self, name: str, directory: Path) -> Beat:
        try:
            job = self.queued_jobs().get(self.job_name(name))
        except Unreachable as error:
            return Beat(active=True, message=f"Slurm does not answer: {error}")
        if job is not None and job.not_started and not job.running:
            # It would stay in the queue for ever. Its node may be repaired, so it is submitted again, like all that fails.
            self.cancel(name, directory)
            return Beat(active=False, failed=True, message=describe_not_started(job.number, name, job.not_started))
        if job is not None:
            return Beat(active=True, working=job.running, message=job.message)
        blocks = self.given.pop(name, None)
        if blocks is None:
            return IDLE
        ended = statuses(directory / ENDED)
        if all(ended.get(block) == 0 for block in blocks):
            return IDLE
        if not (directory / LOG).exists():
            message = f"its job ended and left nothing in {directory}: the node must see this directory"
        elif not ended:
            message = "its job ended before its end: it was cancelled, or the node failed"
        else:
            message = last_words(directory)
        return Beat(active=False, failed=True, message=message)

    def queued_jobs(self) -> dict[str, Job]:
        """Our jobs that are not at their end, by name. Asked once for all nodes. Raises Unreachable."""
        if time.monotonic() - self.asked >= min(self.settings.poll, 2.0):
            try:
                lines = slurm("squeue", "-h", "-u", getpass.getuser(), "-o", "%j|%T|%F|%r").splitlines()
            except HostError as error:
                raise Unreachable(error.message) from error
            self.asked = time.monotonic()
            self.jobs = jobs_in(lines)
        return self.jobs

    def cancel(self, name: str, directory: Path) -> None:
        self.given.pop(name, None)
        end = time.monotonic() + TO_END
        try:
            if self.job_name(name) not in self.queued_jobs():
                return
            slurm("scancel", "--full", f"--name={self.job_name(name)}", f"--user={getpass.getuser()}")
            while time.monotonic() < end:
                self.asked = 0.0
                if self.job_name(name) not in self.queued_jobs():
                    return
                time.sleep(0.5)
        except (Unreachable, HostError):
            # Its worker holds the member's directory: no block is run twice for that.
            return


def jobs_in(lines: Sequence[str]) -> dict[str, Job]:
    """Jobs by name, from squeue's lines NAME|STATE|NUMBER|REASON; of tasks a running, then a failed one first."""
    found: dict[str, Job] = {}
    for line in lines:
        name, state, number, reason = [*line.split("|", 3), "", "", ""][:4]
        before = found.get(name, Job(running=False, message=""))
        if state in RUNNING:
            found[name] = Job(running=True, message="", number=number)
        elif NOT_STARTED.search(reason) and not before.running:
            found[name] = Job(False, f"{state.lower()}: {reason}", number, reason)
        elif not before.running and not before.not_started:
            held = HELD_BY.get(reason)
            message = (
                f"job {number} is held by {held}: scontrol release {number}" if held else f"{state.lower()}: {reason}"
            )
            found[name] = Job(False, message, number)
    return found


def script(settings: SlurmSettings, directory: Path, blocks: Sequence[int]) -> str:
    """The job: one block of the list, chosen by the number of the task in the array."""
    worker = f"{shlex.quote(settings.python or sys.executable)} -P -m kduel worker {shlex.quote(str(directory))}"
    if not blocks:
        return f"#!/bin/sh\n{worker} --describe\nstatus=$?\necho 0 $status >>{ENDED}\nexit $status\n"
    return (
        f"#!/bin/sh\nset -- {' '.join(map(str, blocks))}\nshift $SLURM_ARRAY_TASK_ID\n"
        f"{worker} --block $1\nstatus=$?\necho $1 $status >>{ENDED}\nexit $status\n"
    )


def statuses(path: Path) -> dict[int, int]:
    """The last exit status by block; no block where there is no such file."""
    found = (re.fullmatch(r"(\d+) (\d+)", line) for line in text_of(path).splitlines())
    return {int(match[1]): int(match[2]) for match in found if match}


def choose(settings: SlurmSettings, partition: str, known: Sequence[str]) -> list[str]:
    """The nodes to use: those of the run that goes on, of `nodelist`, or the usable ones of the partition. Raises
    InputError and HostError where there are too few, or several architectures."""
    there = {node.name: node for node in nodes() if partition in node.partitions}
    if known:
        names = list(known)
    elif settings.nodelist:
        names = slurm("scontrol", "show", "hostnames", settings.nodelist).split()
    else:
        usable = [name for name, node in there.items() if node.usable]
        names = usable[: settings.nodes or None]
        if len(names) < max(1, settings.nodes):
            states = ", ".join(f"{node.name} {node.state}" for node in there.values())
            raise HostError(
                f"{len(usable)} node(s) of the partition {partition} are usable; {max(1, settings.nodes)} are requested",
                f"Slurm says: {states or 'no nodes'}. See `sinfo -R`.",
            )
    if unknown := [name for name in names if name not in there]:
        raise InputError(
            f"the partition {partition} has no node {', '.join(unknown[:5])}",
            f"It has: {', '.join(list(there)[:20])}.",
        )
    if not known and (unusable := [there[name] for name in names if not there[name].expected]):
        raise HostError(
            f"{unusable[0].name} is {unusable[0].state}", "See `sinfo -R`; leave it out, or have it resumed."
        )
    by_architecture = {there[name].architecture: name for name in reversed(names) if there[name].architecture}
    if len(by_architecture) > 1:
        listed = ", ".join(f"{name} is {architecture}" for architecture, name in sorted(by_architecture.items()))
        raise InputError(f"the nodes have different architectures: {listed}", "Give a nodelist of one of them.")
    return names


class Slurm(FleetKind[SlurmSettings]):
    name: ClassVar[str] = "slurm"
    summary: ClassVar[str] = (
        "nodes of a Slurm cluster: for guests, a block a job; with machine slurm-node, measured themselves"
    )

    def named_members(self, settings: SlurmSettings, machine: str) -> tuple[Member, ...]:
        if machine in ("ssh", "board", "local"):
            raise InputError(
                f"--fleet slurm does not drive the machine {machine}",
                "Use machine qemu or icount for guests on the nodes, or slurm-node to measure the nodes themselves.",
            )
        return ()

    def open(
        self, settings: SlurmSettings, *, machine: str, run: str, known: Sequence[str], progress: Progress
    ) -> Fleet:
        self.named_members(settings, machine)
        need_programs()
        if not settings.exclusive and machine == "qemu":
            progress.warn("with exclusive = false other jobs may disturb the timings of machine qemu")
        partition = partition_of(settings.partition)
        names = choose(settings, partition, known)
        if machine == "slurm-node":
            return LocalFleet([Member(name=name, settings={"node": name} | wishes(settings)) for name in names])
        return SlurmFleet(settings, run, [Member(name=name) for name in names])


PLUGIN = Slurm()
