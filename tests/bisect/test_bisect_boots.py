"""Measuring commits in boots: kernels kept by tree and configuration, retries, skips. The machine is a fake one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kduel.core.cache import Cache
from kduel.core.errors import InputError
from kduel.core.experiment import Void
from kduel.core.progress import Progress
from kduel.kernels import Kernel
from kduel.run.bisect import boots as module
from kduel.run.bisect import kernels
from kduel.run.bisect.boots import Boots, chosen_metric, study_for
from kduel.run.bisect.build import Builder
from kduel.run.bisect.git import git, worktree
from kduel.run.bisect.terms import Unmeasurable

PERSON = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


class FakeMachine:
    """Gives the outcomes that it was told, the last one for ever."""

    def __init__(self, outcomes: list[Void | None]) -> None:
        self.outcomes = outcomes
        self.booted = 0
        self.closed = False

    def boot(self, trial: Any) -> Any:
        why = self.outcomes[min(self.booted, len(self.outcomes) - 1)]
        self.booted += 1
        return SimpleNamespace(why=why)

    def close(self) -> None:
        self.closed = True


def ready(machine: FakeMachine) -> Any:
    script = SimpleNamespace(text="true\n", deadline=1.0)
    return SimpleNamespace(
        arms=[SimpleNamespace(contender=SimpleNamespace(name="measured"))],
        dress=SimpleNamespace(script=lambda *_: script, gate=lambda *_: None),
        study=SimpleNamespace(steps=[0]),
        machine=machine,
        prepared=SimpleNamespace(parse_trial=lambda _: ({0: {"time": 5.5}}, {})),
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


def test_kernels_are_built_once_a_tree_and_failing_commits_are_unmeasurable(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    panic = Void("panic", "Kernel panic")
    machine = FakeMachine([panic, None])
    built: list[str] = []

    def resolve(spec: str, **_: Any) -> Kernel:
        built.append(spec)
        return Kernel(spec=spec, release="6.1", image=Path(spec), sha256="0" * 64)

    monkeypatch.setattr(kernels, "resolve", resolve)
    monkeypatch.setattr(module, "make_ready", lambda *_, **__: ready(machine))
    commits = git(tree, "rev-list", "--reverse", "HEAD").splitlines()
    with worktree(tree, tmp_path / "source", commits[0]) as place:
        builder = Builder(
            source=place, build=tmp_path / "build", command="sh recipe", image="k", log=tmp_path / "build.log"
        )
        measured = Boots(
            builder, "qemu", "pipe", "time", tmp_path / "trials", cache=Cache(tmp_path / "cache"),
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
        machine.outcomes = [panic]
        with pytest.raises(Unmeasurable, match="panic"):
            measured(commits[1])
        assert len(list((tmp_path / "trials").iterdir())) == 6
        measured.close()
    assert machine.closed


def test_metrics_and_machines_are_checked_before_anything_is_built() -> None:
    assert chosen_metric(study_for("hackbench", "qemu"), "") == "time"
    assert chosen_metric(study_for("pipe", "qemu"), "time") == "time"
    with pytest.raises(InputError, match="several metrics"):
        chosen_metric(study_for("sysbench-cpu", "qemu"), "")
    with pytest.raises(InputError, match="no metric 'x'"):
        chosen_metric(study_for("hackbench", "qemu"), "x")
    with pytest.raises(InputError, match="no machine 'qemx'"):
        chosen_metric(study_for("hackbench", "qemx"), "")
    with pytest.raises(InputError, match="no benchmark 'nix'"):
        study_for("nix", "qemu")
