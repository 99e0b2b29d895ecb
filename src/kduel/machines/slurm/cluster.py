"""Slurm's own programs: partitions, nodes and jobs. Nothing but Slurm's command line is used."""

import re
import shutil
import subprocess
from typing import Protocol

from msgspec import Struct

from kduel.core.errors import HostError, InputError
from kduel.core.host_packages import install_command
from kduel.core.supervised_process import run_text

PROGRAMS = ("sbatch", "squeue", "scancel", "scontrol", "sinfo", "srun")
ANSWER = 30.0
"""Seconds in which Slurm's programs must answer."""
INSTALL = f"Start KDuel where Slurm's programs are: {install_command('srun', 'slurm-client')}."
UNUSABLE = ("DOWN", "DRAIN", "FAIL", "POWER", "UNKNOWN", "FUTURE")


NOT_STARTED = re.compile(r"requeued.held|requeued.in.held.state|JobHoldMaxRequeue", re.IGNORECASE)
"""Slurm's reason for a job that it could not start on its node, and now holds for ever."""
HELD_BY = {"JobHeldUser": "its user", "JobHeldAdmin": "an administrator of Slurm"}
"""By Slurm's reason, who holds a job."""


class Wishes(Protocol):
    """Settings of the jobs that are submitted; empty for Slurm's default."""

    @property
    def partition(self) -> str: ...
    @property
    def account(self) -> str: ...
    @property
    def qos(self) -> str: ...
    @property
    def time(self) -> str: ...


def wishes(settings: Wishes) -> dict[str, str]:
    """The wishes that are not empty, by the name of sbatch's option."""
    given = {"partition": settings.partition, "account": settings.account, "qos": settings.qos, "time": settings.time}
    return {key: value for key, value in given.items() if value}


def need_programs() -> None:
    """Raises HostError where one of Slurm's programs is missing."""
    if missing := [program for program in PROGRAMS if shutil.which(program) is None]:
        raise HostError(f"{missing[0]} is not in the path", INSTALL)


class Silent(HostError):
    """slurmctld does not answer at present: another try may help."""


SILENT = re.compile(
    r"Unable to contact slurm controller|Socket timed out|Connection refused|Zero Bytes were transmitted"
)
"""Words of Slurm's programs where slurmctld does not answer."""


def slurm(program: str, *arguments: str, stdin: str = "") -> str:
    """Output of one of Slurm's programs. Raises HostError with its words, Silent where slurmctld does not answer."""
    try:
        done = run_text([program, *arguments], input=stdin, timeout=ANSWER)
    except subprocess.TimeoutExpired as error:
        raise Silent(f"{program} does not answer within {ANSWER:.0f} s", "See whether slurmctld runs.") from error
    except OSError as error:
        raise HostError(f"{program} cannot be run: {error.strerror}", INSTALL) from error
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        trouble = Silent if SILENT.search(done.stderr) else HostError
        raise trouble(
            f"{program}: {lines[-1][:300] if lines else 'it gives no reason'}",
            "See that Slurm is set up on this machine (SLURM_CONF), and try the command by hand.",
        )
    return done.stdout.strip()


def partition_of(name: str) -> str:
    """The partition's name. Raises InputError where Slurm has none of that name, or no default one."""
    found = re.findall(
        r"^PartitionName=(\S+).*? Default=(\S+)", slurm("scontrol", "-o", "show", "partition"), re.MULTILINE
    )
    names = [one for one, _ in found]
    chosen = name or next((one for one, default in found if default == "YES"), "")
    if chosen not in names:
        what = f"has no partition {name!r}" if name else "has no default partition"
        raise InputError(f"Slurm {what}", f"Give partition=NAME; it has: {', '.join(names) or 'none'}.")
    return chosen


class Node(Struct, frozen=True):
    """A node, as scontrol shows it."""

    name: str
    architecture: str
    state: str
    partitions: tuple[str, ...]
    features: tuple[str, ...] = ()
    """Those that it can have, active or not."""
    reason: str = ""
    """Why it is out of service, where Slurm knows."""

    @property
    def away(self) -> bool:
        """True if it is out of service, or on its way back."""
        return any(word in self.state for word in UNUSABLE)

    @property
    def completing(self) -> bool:
        return "COMPLETING" in self.state

    @property
    def usable(self) -> bool:
        """True if jobs can be given to it."""
        return not self.away and not self.state.endswith("*")

    @property
    def expected(self) -> bool:
        """True if it is usable, or Slurm is booting it: it gives it jobs in either case."""
        return self.usable or "POWERING_UP" in self.state or "REBOOT" in self.state


def nodes() -> list[Node]:
    found = []
    for line in slurm("scontrol", "-o", "show", "node").splitlines():
        fields = dict(re.findall(r"(\w+)=(\S+)", line))
        found.append(
            Node(
                fields.get("NodeName", ""),
                fields.get("Arch", ""),
                fields.get("State", "UNKNOWN"),
                tuple(fields.get("Partitions", "").split(",")),
                tuple(fields.get("AvailableFeatures", "").split(",")),
                (re.findall(r" Reason=(.*?)(?: \[|$)", line) or [""])[0],
            )
        )
    return sorted(
        found, key=lambda node: [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", node.name)]
    )


def describe_not_started(job: str, node: str, reason: str) -> str:
    """Account of a job that Slurm holds because it could not start it, and where to look."""
    return (
        f"Slurm could not start job {job} on {node}, and holds it ({reason.replace('_', ' ')}). `sinfo -R`, slurmctld's log "
        f"and slurmd's on {node} have the cause: often a prolog that fails, or a user or directory that the node does not have"
    )


def job_state(job: str) -> tuple[str, str]:
    """A job's state, such as RUNNING, and Slurm's reason; GONE where it is unknown. Raises HostError."""
    try:
        shown = slurm("scontrol", "-o", "show", "job", job)
    except HostError as error:
        if "Invalid job id" in error.message:
            return "GONE", ""
        raise
    fields = dict(re.findall(r"(\w+)=(\S+)", shown))
    return fields.get("JobState", "GONE"), fields.get("Reason", "")
