"""The suite of contenders for which none is named, by the machine."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from click.testing import CliRunner

from kduel.cli import kduel
from kduel.cli.execute import RunRequest
from kduel.core.errors import InputError
from kduel.study.load import Study


class Assembled(Exception):
    """The study would be carried out now."""

    def __init__(self, study: Study) -> None:
        self.study = study


def stop(asked: Study | RunRequest, *_: object, **__: object) -> None:
    raise Assembled(asked.study if isinstance(asked, RunRequest) else asked)


@pytest.fixture(autouse=True)
def _nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("kduel.cli.run"), "carry_out", stop)
    monkeypatch.setattr("kduel.run.prepare.read_study", stop)


def chosen(*words: str) -> Study:
    ended = CliRunner().invoke(kduel, [*words])
    assert isinstance(ended.exception, Assembled), ended.output
    return ended.exception.study


PAIR = ("debian:6.1", "debian:6.12")


@pytest.mark.parametrize(
    ("words", "suite"),
    [
        (("run", *PAIR), "quick"),
        (("run", *PAIR, "--machine", "qemu:cpus=4"), "quick"),
        (("run", *PAIR, "--machine", "icount"), "exact-quick"),
        (("run", *PAIR, "--machine", "icount:memory=256M"), "exact-quick"),
        (("run", *PAIR, "--layouts", "2"), "exact-quick"),
        (("run", *PAIR, "--single"), "exact-quick"),
        (("run", *PAIR, "--single", "--layouts", "2"), "exact-quick"),
        (("run", *PAIR, "--suite", "exact", "--layouts", "2"), "exact"),
        (("run", "debian:6.1", "--aa", "2", "--machine", "icount"), "exact-quick"),
        (("run", *PAIR, "--machine", "icount", "--suite", "quick"), "quick"),
        (("run", *PAIR, "--suite", "exact"), "exact"),
        (("bundle", *PAIR), "quick"),
        (("bundle", *PAIR, "--machine", "icount"), "exact-quick"),
    ],
)
def test_a_machine_that_counts_instructions_gets_a_suite_that_counts_them(words: tuple[str, ...], suite: str) -> None:
    assert chosen(*words).about.name == suite


@pytest.mark.parametrize("words", [("--layouts", "2"), ("--single",), ("--suite", "exact", "--layouts", "2")])
def test_options_of_the_exact_machine_choose_it(words: tuple[str, ...]) -> None:
    assert chosen("run", *PAIR, *words).machine == "icount"


@pytest.mark.parametrize("words", [("--layouts", "2"), ("--single",)])
def test_they_change_no_machine_that_is_named(words: tuple[str, ...]) -> None:
    """A suite or a study names its own, and is refused where that counts no instructions; it was counted in silence."""
    for named in (("--suite", "quick"), ("--machine", "qemu")):
        ended = CliRunner().invoke(kduel, ["run", *PAIR, *named, *words])
        assert isinstance(ended.exception, InputError) and words[0] in ended.exception.message, ended.exception


@pytest.mark.parametrize("command", ["run", "bundle"])
def test_a_study_file_has_its_own_benchmarks(command: str, tmp_path: Path) -> None:
    study = tmp_path / "mine.toml"
    study.write_text(
        '[study]\nname = "mine"\n[[contender]]\nkernel = "debian:6.1"\n[[contender]]\nkernel = "debian:6.12"\n'
        '[[benchmark]]\nuse = "sysbench-cpu"\n'
    )
    assert chosen(command, str(study)).about.name == "mine"
    ended = CliRunner().invoke(kduel, [command, str(study), "--suite", "exact"])
    assert isinstance(ended.exception, InputError) and "--suite exact" in str(ended.exception)
