"""One trial on a node of Slurm: a job that Slurm reboots the node for, with srun in place of ssh. The job's batch
script runs the trial's itself: processes of a step end with the step."""

import contextlib
import getpass
import os
import re
import shlex
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Annotated, BinaryIO, ClassVar

from msgspec import Meta, field

from kduel.core.errors import HostError
from kduel.machines import Outcome, Seconds
from kduel.machines.remote.connection import CommandResult, Connection, ConnectionLost, TrialRefused, last_line
from kduel.machines.remote.settings import RealSettings
from kduel.machines.remote.ssh_trial import Journey, look
from kduel.machines.slurm.cluster import NOT_STARTED, Silent, describe_not_started, job_state, nodes, slurm, wishes

PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The job's whole environment: nothing of the submitting user's reaches a trial."""
TO_COME, TO_GO = 900, 3600
"""Seconds that a job waits for its script, and for its results to be fetched: then its controller is gone."""
EXITED = re.compile(r"^srun: error: \S+: task 0: (?:Exited with exit code|Killed|Terminated).*\n?", re.MULTILINE)
"""srun's words where the script itself ended with an error."""


class NodeSettings(RealSettings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    node: str = ""
    """The node's name in Slurm; given by --fleet slurm for each."""
    partition: str = ""
    account: str = ""
    qos: str = ""
    time: str = ""
    """Time limit of a trial's job, as for sbatch; the partition's if empty."""
    features: dict[str, str] = field(default_factory=dict)
    """By contender, the node feature that stands for its kernel and command line. Without one it is kernel_RELEASE, with
    an underscore for everything but letters and digits."""
    queue_deadline: Seconds = 86_400.0
    """Seconds that a trial's job may wait for its node."""
    poll: Annotated[float, Meta(ge=0.1, le=60)] = 2.0
    """Seconds between two looks at a job's state."""

    @property
    def place(self) -> str:
        return self.node

    @property
    def boot(self) -> str:
        """Means of rebooting."""
        return "slurm"

    def feature(self, contender: str, release: str) -> str:
        return self.features.get(contender) or "kernel_" + re.sub(r"[^A-Za-z0-9]", "_", release)

    def options(self, feature: str = "") -> list[str]:
        """sbatch's arguments for what a job needs; with a feature, a fresh boot of it."""
        return [
            f"--nodelist={self.node}",
            *("--nodes=1", "--ntasks=1", "--exclusive", "--mem=0", "--no-requeue"),
            *(["--reboot", f"--constraint={feature}"] if feature else []),
            *(f"--{key}={value}" for key, value in wishes(self).items()),
        ]


class NodeConnection(Connection):
    """The connection to a node through the job that holds it, which `attach` sets."""

    def __init__(self, node: str) -> None:
        super().__init__(node)
        self.job = ""
        self.boots: set[str] = set()
        """Boot ids observed there."""

    def attach(self, job: str) -> None:
        """From now on through this job."""
        self.job = job
        self.argv = [
            *("srun", f"--jobid={job}", "--overlap", "--nodes=1", "--ntasks=1", "--mpi=none"),
            *(f"--export={PATH}", "--chdir=/", "sh", "-c"),
        ]

    def run(
        self,
        script: str,
        *,
        stdin: bytes = b"",
        timeout: float = 60.0,
        root: bool = True,
        out: BinaryIO | None = None,
    ) -> CommandResult:
        """Run as by ssh. Raises ConnectionLost, and TrialRefused where the job has ended, which takes the node away."""
        done = super().run(script, stdin=stdin, timeout=timeout, root=root, out=out)
        if done.status and not EXITED.search(done.stderr):
            self.complain(done)
        return CommandResult(done.status, done.stdout, EXITED.sub("", done.stderr))

    def complain(self, done: CommandResult) -> None:
        """Raises what it means that srun itself failed; nothing where the script ended with 255."""
        if EXITED.search(done.stderr):
            return
        state = "RUNNING"
        with contextlib.suppress(HostError):
            state, _ = job_state(self.job)
        if state not in ("RUNNING", "CONFIGURING", "PENDING"):
            code = "no-node" if state in TAKEN else "rebooted"
            raise TrialRefused(code, f"Slurm ended job {self.job} on {self.place}: {ended_why(self.place, state)}")
        raise ConnectionLost(
            f"{self.place} cannot be reached by srun: {last_line(done.stderr, 'it gives no reason')}"
        )


TAKEN = ("CANCELLED", "PREEMPTED", "DEADLINE", "REVOKED")
"""States of a job that somebody, or Slurm by its rules, took the node from. Where the node failed it is another one."""
NO_KERNEL = re.compile(r"feature|node configuration", re.IGNORECASE)
"""Words of sbatch where it refuses what stands for the contender's kernel."""


def ended_why(node: str, state: str) -> str:
    """A job's last state in words, with Slurm's reason for the node's state where it has one."""
    with contextlib.suppress(HostError):
        for one in nodes():
            if one.name == node and one.reason:
                return f"{state.lower()}; the node is {one.state}: {one.reason}"
    return state.lower()


def submit(settings: NodeSettings, name: str, directory: str, go: str, feature: str = "") -> str:
    """The number of a job that waits on the node for the file `go` in `directory`, and runs it. Raises HostError."""
    place, file = shlex.quote(directory), shlex.quote(go)
    script = f"""#!/bin/sh
i=0
while [ ! -e {place}/{file} ]; do i=$((i + 1)); [ $i -lt {TO_COME} ] || exit 1; sleep 1; done
cd {place} && sh ./{file} </dev/null >/dev/null 2>&1
i=0
while [ -e {place} ]; do i=$((i + 1)); [ $i -lt {TO_GO} ] || exit 1; sleep 1; done
"""
    own = [f"--job-name={name}", "--parsable", f"--export={PATH}", "--output=/dev/null", "--chdir=/"]
    said = slurm("sbatch", *own, *settings.options(feature), stdin=script)
    if not (number := re.match(r"\d+", said)):
        raise HostError(f"sbatch gives no job number: {said[:200]}", "Try sbatch by hand.")
    return number[0]


def await_service(settings: NodeSettings) -> None:
    """Wait until Slurm has the node in service again and no job on it. Raises TrialRefused, HostError."""
    end = time.monotonic() + settings.boot_deadline
    while away := [one for one in nodes() if one.name == settings.node and (one.away or one.completing)]:
        if time.monotonic() > end:
            why = f": {away[0].reason}" if away[0].reason else ""
            raise TrialRefused("no-node", f"{away[0].name} is {away[0].state}{why}")
        time.sleep(settings.poll)


def await_job(job: str, settings: NodeSettings, allocated: Callable[[], None] = lambda: None) -> None:
    """Wait until a job runs; `allocated` is called when it has its node. Raises TrialRefused where it will not run."""
    began, booting = time.monotonic(), 0.0
    while True:
        try:
            state, reason = job_state(job)
        except HostError as error:
            # slurmctld is away: it knows the job when it is back.
            state, reason = "PENDING" if not booting else "CONFIGURING", error.message
        if state in ("CONFIGURING", "RUNNING") and not booting:
            booting = time.monotonic()
            allocated()
        if state == "RUNNING":
            return
        if state == "PENDING" and NOT_STARTED.search(reason):
            raise TrialRefused("no-node", describe_not_started(job, settings.node, reason))
        if state not in ("PENDING", "CONFIGURING"):
            code = "no-node" if state in (*TAKEN, "GONE") else "no-return"
            raise TrialRefused(code, f"Slurm did not start job {job}: {ended_why(settings.node, state)}")
        if booting and time.monotonic() - booting > settings.boot_deadline:
            raise TrialRefused(
                "no-return", f"Slurm did not bring {settings.node} up within {settings.boot_deadline:g} s"
            )
        if not booting and time.monotonic() - began > settings.queue_deadline:
            raise TrialRefused("no-node", f"job {job} waited for {settings.queue_deadline:g} s: {reason}")
        time.sleep(settings.poll)


def cancel(job: str) -> None:
    """End a job, where Slurm answers; else it ends by itself."""
    with contextlib.suppress(HostError):
        slurm("scancel", job)


class NodeJourney(Journey):
    """A trial as a job."""

    settings: NodeSettings
    connection: NodeConnection
    or_else: ClassVar[str] = ", or its helper could not choose that kernel: slurmd's log there has the reason"

    def go(self) -> Outcome:
        """The whole way. Raises ConnectionLost and TrialRefused where the node cannot be acquired or reached."""
        contender = self.trial.arm.contender.name
        feature = self.settings.feature(contender, self.trial.arm.kernel.release)
        name = job_name(self.trial.into, self.settings.node)
        self.script = f"go-{os.urandom(4).hex()}"
        job = self.submit_job(name, feature)
        self.facts["job"] = job
        self.tell(f"job {job} asks Slurm to boot {self.settings.node} with the feature {feature}")
        try:
            await_job(job, self.settings, self.note_allocation)
            self.connection.attach(job)
            now = self.patiently(lambda: look(self.connection), 60.0)
            self.mark("kernel")
            self.tell(f"up {now.uptime:.1f} s with {now.release}")
            if now.boot_id in self.connection.boots:
                return Outcome(
                    void="boot-refused",
                    message=f"Slurm started job {job} without a reboot: the boot id is an old one.",
                )
            self.connection.boots.add(now.boot_id)
            return self.measure(now)
        finally:
            cancel(job)

    def submit_job(self, name: str, feature: str) -> str:
        """The number of the trial's job. slurmctld is waited for. Raises TrialRefused."""
        end = time.monotonic() + self.settings.boot_deadline
        while True:
            try:
                # A job of a controller that was killed, or one that sbatch submitted without hearing of it.
                slurm("scancel", f"--name={name}", f"--user={getpass.getuser()}")
                await_service(self.settings)
                return submit(self.settings, name, self.directory, self.script, feature)
            except Silent as error:
                if time.monotonic() > end:
                    raise TrialRefused("no-node", f"slurmctld does not answer: {error.message}") from error
                time.sleep(self.settings.poll)
            except HostError as error:
                code = "boot-refused" if NO_KERNEL.search(error.message) else "no-node"
                raise TrialRefused(code, f"Slurm refuses the trial's job: {error.message}") from error

    def note_allocation(self) -> None:
        """The node is ours, and goes down: deadlines count from here, not from the queue."""
        self.facts["queued_seconds"] = round(time.monotonic() - self.start, 1)
        self.start = time.monotonic()
        self.mark("launched")

    def detach_command(self, run: str) -> str:
        """Shell that hands the script to the job."""
        return f"printf %s {shlex.quote(run)} >go.new && mv go.new {self.script};"


def job_name(into: Path, node: str) -> str:
    """Name of the job, equal for all trials of a run on a node, whoever drives them."""
    return f"kduel-{sha256(os.fsencode(into.parent.absolute())).hexdigest()[:8]}-{node}"
