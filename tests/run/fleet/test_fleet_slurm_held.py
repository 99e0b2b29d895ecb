"""Jobs that Slurm or a person holds: what is told, and what becomes of them. What squeue prints is captured."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from kduel.core.errors import HostError
from kduel.fleets import Member, slurm
from kduel.fleets.workers.process import LOG
from kduel.machines import Outcome
from kduel.machines.remote.connection import TrialRefused
from kduel.machines.remote.ssh_trial import Observation
from kduel.machines.slurm import cluster, trial

ARRAY = "kduel-r-n1|PENDING|17|launch failed requeued held\nkduel-r-n1|PENDING|17|JobArrayTaskLimit\n"
"""One task could not be started; the others wait for it."""


class Asked:
    """Stands for Slurm's programs."""

    def __init__(self, queue: str) -> None:
        self.queue, self.words = queue, [("",)]

    def __call__(self, *words: str, stdin: str = "") -> str:
        self.words.append(words)
        if words[0] == "scancel":
            self.queue = ""
        return self.queue if words[0] == "squeue" else ""


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch):
    def call(queue: str) -> tuple[slurm.SlurmFleet, Asked]:
        asked = Asked(queue)
        monkeypatch.setattr(slurm, "slurm", asked)
        own = slurm.SlurmFleet(slurm.SlurmSettings(), "r", [Member(name="n1")])
        own.given["n1"] = (1, 2)
        return own, asked

    return call


@pytest.mark.parametrize("reason", ["launch failed requeued held", "job requeued in held state", "JobHoldMaxRequeue"])
def test_a_job_that_slurm_could_not_start_is_a_failure_and_leaves_the_queue(fleet, tmp_path: Path, reason: str):
    own, asked = fleet(ARRAY.replace("launch failed requeued held", reason))
    beat = own.beat("n1", tmp_path)
    assert beat.failed and not beat.active
    assert f"Slurm could not start job 17 on n1, and holds it ({reason})" in beat.message
    assert any(words[0] == "scancel" and "--name=kduel-r-n1" in words for words in asked.words)
    assert not own.beat("n1", tmp_path).failed, "it is told once"


@pytest.mark.parametrize("state", ["RUNNING", "COMPLETING"])
def test_while_another_block_runs_there_or_ends_the_node_is_at_work(fleet, tmp_path: Path, state: str):
    own, asked = fleet(ARRAY + f"kduel-r-n1|{state}|17|None\n")
    assert own.beat("n1", tmp_path).working and all(words[0] != "scancel" for words in asked.words)


@pytest.mark.parametrize(
    ("ended", "failed"),
    [
        ("1 0\n2 0\n", False),
        ("1 3\n2 0\n1 0\n", False),
        ("1 0\n2 0\n1 3\n", True),
        ("1 0\n", True),
        ("1 0\n2 3\n", True),
    ],
)
def test_the_last_end_of_each_block_tells_whether_a_job_did_its_work(fleet, tmp_path: Path, ended: str, failed: bool):
    """Slurm repeats a block whose node failed."""
    own, _ = fleet("")
    (tmp_path / slurm.ENDED).write_text(ended)
    (tmp_path / LOG).write_text("kduel: no room\n")
    beat = own.beat("n1", tmp_path)
    assert (beat.active, beat.failed) == (False, failed)
    assert ("no room" in beat.message) == failed
    assert not own.beat("n1", tmp_path).failed, "it is told once"


def test_a_program_of_slurm_that_fails_is_believed_whatever_it_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "sbatch").write_text("#!/bin/sh\necho 17\necho sbatch: error: out of memory >&2\nexit $STATUS\n")
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("STATUS", "0")
    assert cluster.slurm("sbatch", "--parsable") == "17"
    monkeypatch.setenv("STATUS", "1")
    with pytest.raises(HostError, match="sbatch: sbatch: error: out of memory"):
        cluster.slurm("sbatch", "--parsable")


@pytest.mark.parametrize(
    ("state", "usable", "expected"),
    [
        ("IDLE", True, True),
        ("MIXED", True, True),
        ("IDLE*", False, False),
        ("IDLE+DRAIN", False, False),
        ("DOWN*", False, False),
        ("IDLE+NOT_RESPONDING+POWERING_UP", False, True),
        ("REBOOT_ISSUED+DOWN", False, True),
    ],
)
def test_a_node_that_does_not_answer_or_is_away_gets_no_job(state: str, usable: bool, expected: bool):
    node = cluster.Node("n1", "x86_64", state, ("guests",))
    assert (node.usable, node.expected) == (usable, expected)


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("CANCELLED", "no-node"),
        ("PREEMPTED", "no-node"),
        ("GONE", "no-node"),
        ("NODE_FAIL", "no-return"),
        ("FAILED", "no-return"),
    ],
)
def test_a_job_that_was_taken_is_no_fault_of_the_contenders(monkeypatch: pytest.MonkeyPatch, state: str, code: str):
    monkeypatch.setattr(trial, "job_state", lambda _: (state, ""))
    monkeypatch.setattr(trial, "nodes", list)
    with pytest.raises(TrialRefused, match="Slurm did not start job 17") as caught:
        trial.await_job("17", trial.NodeSettings(node="n1"))
    assert caught.value.void == code


def test_the_next_job_of_a_node_waits_until_the_one_before_has_ended(monkeypatch: pytest.MonkeyPatch):
    """Slurm would find the constraints of one that is submitted earlier bad, and look at it again a minute later."""
    states = ["IDLE+COMPLETING", "IDLE+DRAIN", "MIXED+COMPLETING", "IDLE"]
    shown = [
        f"NodeName=n1 Arch=x86_64 State={state} Partitions=guests \nNodeName=n2 State=IDLE+COMPLETING"
        for state in states
    ]
    monkeypatch.setattr(cluster, "slurm", lambda *_: shown.pop(0))
    trial.await_service(trial.NodeSettings(node="n1", poll=0.1))
    assert shown == []


@pytest.mark.parametrize(("reason", "who"), [("JobHeldUser", "its user"), ("JobHeldAdmin", "an administrator")])
def test_a_job_that_a_person_holds_is_named_with_what_releases_it(fleet, tmp_path: Path, reason: str, who: str):
    own, asked = fleet(f"kduel-r-n1|PENDING|17|{reason}\n")
    beat = own.beat("n1", tmp_path)
    assert beat.active and not beat.working and not beat.failed
    assert f"job 17 is held by {who}" in beat.message and "scontrol release 17" in beat.message
    assert all(words[0] != "scancel" for words in asked.words), "whoever holds it has a reason"


@pytest.mark.parametrize(
    ("states", "code"),
    [
        ([("PENDING", "launch_failed_requeued_held")], "no-node"),
        ([("PENDING", "Resources"), ("CANCELLED", "")], "no-node"),
        ([("CONFIGURING", ""), ("PREEMPTED", "")], "no-node"),
        ([("CONFIGURING", ""), ("GONE", "")], "no-node"),
        ([("CONFIGURING", ""), ("NODE_FAIL", "")], "no-return"),
        ([("PENDING", "Resources"), ("BOOT_FAIL", "")], "no-return"),
    ],
)
def test_whose_fault_it_is_that_a_trials_job_does_not_start(
    monkeypatch: pytest.MonkeyPatch, states: list[tuple[str, str]], code: str
):
    left = list(states)
    monkeypatch.setattr(trial, "job_state", lambda _: left.pop(0))
    monkeypatch.setattr(trial, "nodes", list)
    with pytest.raises(TrialRefused) as found:
        trial.await_job("9", trial.NodeSettings(node="n1", poll=0.1))
    assert found.value.void == code


def test_a_slurmctld_that_is_away_is_waited_for(monkeypatch: pytest.MonkeyPatch):
    said = ["sbatch: error: Unable to contact slurm controller (connect failure)", "", "Submitted"]

    class Way(trial.NodeJourney):
        directory, script = "/var/tmp/x", "go"

        def __init__(self) -> None:
            self.settings = trial.NodeSettings(node="n1", poll=0.1, boot_deadline=30)

    def program(*words: str, stdin: str = "") -> str:
        if words[0] == "scancel" and (error := said.pop(0)):
            raise cluster.Silent(error)
        return "17" if words[0] == "sbatch" else ""

    monkeypatch.setattr(trial, "slurm", program)
    monkeypatch.setattr(trial, "nodes", list)
    assert Way().submit_job("name", "kernel_6") == "17"
    for message, code in (
        ("sbatch: error: Batch job submission failed: Invalid feature specification", "boot-refused"),
        ("sbatch: error: Batch job submission failed: Required partition not available", "no-node"),
    ):

        def refuses(*words: str, stdin: str = "", message: str = message) -> str:
            raise HostError(message)

        monkeypatch.setattr(trial, "slurm", refuses)
        with pytest.raises(TrialRefused) as found:
            Way().submit_job("name", "kernel_6")
        assert found.value.void == code


def test_words_of_a_slurmctld_that_does_not_answer():
    for words, silent in (
        ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", True),
        ("squeue: error: slurm_receive_msg: Socket timed out on send/recv operation", True),
        ("sbatch: error: invalid partition specified: x", False),
    ):
        program = f"echo '{words}' >&2; exit 1"
        with pytest.raises(HostError) as found:
            cluster.slurm("sh", "-c", program)
        assert isinstance(found.value, cluster.Silent) == silent and words in found.value.message


@pytest.mark.parametrize("order", [1, -1])
def test_a_task_that_runs_counts_more_than_one_that_could_not_be_started(order: int) -> None:
    """Whichever squeue prints first: its node is at work."""
    lines = ["kduel-r-n1|RUNNING|17|None", "kduel-r-n1|PENDING|17|launch failed requeued held"][::order]
    assert slurm.jobs_in(lines) == {"kduel-r-n1": slurm.Job(running=True, message="", number="17")}


def test_a_boot_that_was_there_before_is_no_boot_of_a_trial(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Slurm gave the job the node without a reboot; and the time in the queue does not count as that of a boot."""

    class Way(trial.NodeJourney):
        def __init__(self, connection: trial.NodeConnection) -> None:
            self.settings, self.connection = trial.NodeSettings(node="n1"), connection
            contender = SimpleNamespace(name="c")
            arm = SimpleNamespace(contender=contender, kernel=SimpleNamespace(release="6.1"))
            self.trial = SimpleNamespace(arm=arm, into=tmp_path / "t")
            self.log, self.facts, self.timings = [], {}, {}
            self.start = time.monotonic() - 1000

        def submit_job(self, name: str, feature: str) -> str:
            return "17"

        def measure(self, now: Observation) -> Outcome:
            return Outcome()

    def await_job(job: str, settings: trial.NodeSettings, allocated: Callable[[], None]) -> None:
        allocated()

    monkeypatch.setattr(trial, "await_job", await_job)
    monkeypatch.setattr(trial, "slurm", lambda *_, **__: "")
    boots = ["first", "second", "second"]
    monkeypatch.setattr(trial, "look", lambda _: Observation(boots.pop(0), "6.1", "x86_64", 1.0, 1.0, "", 1.0))
    connection = trial.NodeConnection("n1")
    ways = [Way(connection) for _ in range(3)]
    assert [way.go().void for way in ways] == ["", "", "boot-refused"]
    for way in ways:
        assert way.facts["queued_seconds"] >= 1000 and way.timings["kernel"] < 100 and way.timings["launched"] < 100
