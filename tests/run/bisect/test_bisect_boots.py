"""Measuring commits in boots: kernels kept by tree and configuration, retries, skips. The machine runs a
trial's script on this host."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kduel.core.cache import Cache
from kduel.core.errors import HostError, InputError
from kduel.core.host import HostStep
from kduel.core.progress import Progress
from kduel.kernels import Kernel
from kduel.machines import Arm, Machine, Outcome, Trial
from kduel.run import prepare
from kduel.run.bisect import boots as module
from kduel.run.bisect import kernels
from kduel.run.bisect.boots import BootMeasurement, boot_study, choose_metric
from kduel.run.bisect.build import Builder
from kduel.run.bisect.git import git, worktree
from kduel.run.bisect.terms import Unmeasurable
from kduel.run.prepare import Ready
from kduel.run.script import TrialSetup
from kduel.store.collect import PreparedSteps
from kduel.store.rundir import RunDir
from kduel.study.file import parse_study
from kduel.study.load import assemble

PERSON = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


STUDY = """
[study]
name = "test"
[settle]
mode = "fixed"
seconds = 0
[blocks]
fixed = 1
[[benchmark]]
use = "command"
label = "value"
command = "echo value 5.5"
metrics = [{ name = "time", unit = "s", better = "lower", regex = 'value (\\S+)' }]
primary = ["time"]
[[contender]]
name = "measured"
kernel = "debian:6.1"
[[contender]]
name = "spare"
kernel = "debian:6.12"
"""
QUIET = HostStep(seconds=1.0, vcpu_run_s=1.0, vcpu_wait_s=0.0)
BUSY = HostStep(seconds=1.0, vcpu_run_s=1.0, vcpu_wait_s=1.0)


class Scripted(Machine):
    """Runs the guest's script here, with the outcomes that it was given, the last one for ever."""

    def __init__(self, *outcomes: Outcome, max_wait_pct: float | None = None) -> None:
        self.outcomes, self.max_wait_pct = outcomes, max_wait_pct
        self.facts = {}
        self.booted = 0
        self.closed = False

    def boot(self, trial: Trial) -> Outcome:
        outcome = self.outcomes[min(self.booted, len(self.outcomes) - 1)]
        self.booted += 1
        subprocess.run(["sh", trial.into / "guest.sh", trial.into], check=False, capture_output=True)
        return outcome

    def close(self) -> None:
        self.closed = True


GOOD = Outcome(host=[("01-value", QUIET)])
PANIC = Outcome(void="panic", message="Kernel panic")


def make_ready_on(machine: Machine, cache: Cache) -> Ready:
    """A study of one command, made ready for a machine that boots nothing."""
    text = STUDY
    study = assemble(parse_study(text, "test"), text, "test", machine="qemu")
    arms = [Arm(one, Kernel(spec="k", release="6.1", image=Path("/k"), sha256="0" * 64)) for one in study.contenders]
    prepared = PreparedSteps(study.steps)
    return Ready(
        study=study,
        arms=arms,
        machine=machine,
        prepared=prepared,
        setup=TrialSetup(study, arms, prepared, cache=cache),
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    place = tmp_path / "linux"
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    recipes = ("echo one >$KDUEL_BUILD/k", "echo two >$KDUEL_BUILD/k", "echo 'a.c:1: error: bad' >&2; exit 2")
    for number, text in enumerate((*recipes, recipes[0])):
        (place / "recipe").write_text(text)
        for words in (["add", "."], ["commit", "-q", "-m", str(number)]):
            subprocess.run(["git", "-C", str(place), *words], check=True, env=os.environ | PERSON)
    return place


@pytest.mark.slow
def test_kernels_are_built_once_a_tree_and_failing_commits_are_unmeasurable(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Scripted(PANIC, GOOD)
    built: list[str] = []

    def resolve(spec: str, **_: Any) -> Kernel:
        built.append(spec)
        return Kernel(spec=spec, release="6.1", image=Path(spec), sha256="0" * 64)

    monkeypatch.setattr(kernels, "resolve", resolve)
    monkeypatch.setattr(module, "make_ready", lambda *_, **__: make_ready_on(machine, Cache(tmp_path / "cache")))
    commits = git(tree, "rev-list", "--reverse", "HEAD").splitlines()
    with worktree(tree, tmp_path / "source", commits[0]) as place:
        builder = Builder(
            source=place, build=tmp_path / "build", command="sh recipe", image="k", log=tmp_path / "build.log"
        )
        measured = BootMeasurement(
            builder, "qemu", "pipe", "time", tmp_path, cache=Cache(tmp_path / "cache"),
            progress=Progress(),
        )  # fmt: skip
        assert measured(commits[0]) == 5.5
        assert machine.booted == 2  # the first boot failed, and was made again
        assert measured(commits[0]) == 5.5
        assert len(built) == 1
        assert measured(commits[3]) == 5.5  # the same tree as the first commit's
        assert len(built) == 1
        with pytest.raises(Unmeasurable, match="does not build"):
            measured(commits[2])
        machine.outcomes = (PANIC,)
        with pytest.raises(Unmeasurable, match="panic"):
            measured(commits[1])
        assert len(list((tmp_path / "trials").iterdir())) == 6
        measured.close()
    assert machine.closed


def boots_on(machine: Machine, place: Path, monkeypatch: pytest.MonkeyPatch) -> BootMeasurement:
    cache = Cache(place / "cache")
    monkeypatch.setattr(module, "make_ready", lambda *_, **__: make_ready_on(machine, cache))
    monkeypatch.setattr(module, "CommitKernels", lambda *_, **__: lambda _: Path("/k"))
    builder: Any = None
    return BootMeasurement(builder, "qemu", "pipe", "time", place / "search", cache=cache, progress=Progress())


@pytest.mark.parametrize(
    ("first", "code"),
    [
        (Outcome(void="emulator-fault", message="int3"), "emulator-fault"),
        (Outcome(host=[("01-value", BUSY)]), None),
    ],
)
def test_what_the_host_or_the_emulator_disturbed_is_made_again(
    first: Outcome, code: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(prepare, "BETWEEN_BURSTS_SECONDS", 0.0)
    machine = Scripted(first, GOOD, max_wait_pct=25.0)
    measured = boots_on(machine, tmp_path, monkeypatch)
    assert measured("a" * 40) == 5.5
    assert machine.booted == 2
    run = RunDir(tmp_path / "search")
    (record,) = run.records()
    assert (record.id, record.status, record.repeats) == (f"0001-{'a' * 12}", "ok", 1)
    ((_, again),) = run.put_asides()
    assert (again.void and again.void.code) == (code or "host-disturbed")


def test_a_machine_that_is_not_there_does_not_make_commits_unmeasurable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two boots without an answer skipped the commit, and the search went on without it."""
    away = Outcome(void="unreachable", message="No route to host")
    assert boots_on(Scripted(away, away, GOOD), tmp_path / "back", monkeypatch)("a" * 40) == 5.5
    with pytest.raises(HostError) as error:
        boots_on(Scripted(away), tmp_path / "gone", monkeypatch)("a" * 40)
    assert "kduel resume" not in (error.value.remedy or "")


def test_metrics_and_machines_are_checked_before_anything_is_built() -> None:
    assert choose_metric(boot_study("hackbench", "qemu"), "").name == "time"
    assert choose_metric(boot_study("pipe", "qemu"), "time").name == "time"
    with pytest.raises(InputError, match="several metrics"):
        choose_metric(boot_study("sysbench-cpu", "qemu"), "")
    with pytest.raises(InputError, match="no metric 'x'"):
        choose_metric(boot_study("hackbench", "qemu"), "x")
    with pytest.raises(InputError, match="no machine 'qemx'"):
        choose_metric(boot_study("hackbench", "qemx"), "")
    with pytest.raises(InputError, match="no benchmark 'nix'"):
        boot_study("nix", "qemu")


def test_a_commit_is_booted_alone() -> None:
    """Its study has a second contender that is never booted: no turns are announced, nor memory asked for."""
    assert boot_study("pipe", "qemu").blocks.turns == "off"
