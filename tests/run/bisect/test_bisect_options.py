"""Options of `kduel bisect` that the chosen way to search would ignore."""

from __future__ import annotations

import click
import pytest

from kduel.cli.bisect import command
from kduel.cli.bisect_options import BELONGS
from kduel.core.cache import Cache
from kduel.core.errors import InputError
from kduel.core.progress import Progress
from kduel.run.bisect.exact import CommitCounter

ENDS = ("v1", "v2", "--tree", "/")
EXACT = (*ENDS, "-b", "pipe")
STEP = ("--step", "1", "2", "-b", "pipe")
MEASURE = (*ENDS, "--measure", "true")
BOOTS = (*EXACT, "--machine", "qemu")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*EXACT, "--restart"), "--restart has no meaning for a search by exact counts"),
        ((*EXACT, "--machine", "icount:memory=256M", "--seed", "2"), "no meaning for a search by exact counts"),
        ((*EXACT, "--confirm", "12"), "--confirm has no"),
        ((*EXACT, "--probability", "0.9"), "--probability has no"),
        ((*EXACT, "--measurements", "9"), "--measurements has no"),
        ((*EXACT, "--negligible", "2"), "--negligible has no"),
        ((*EXACT, "--seed", "2"), "--seed has no"),
        ((*EXACT, "--timeout", "2"), "--timeout has no"),
        ((*BOOTS, "--limit", "3"), "--limit has no meaning for a search by a timed benchmark"),
        ((*MEASURE, "--limit", "3"), "--limit has no meaning for a search with --measure"),
        ((*MEASURE, "--machine", "qemu"), "--machine has no"),
        ((*MEASURE, "--jobs", "2"), "--jobs has no"),
        ((*STEP, "--machine", "qemu"), "--step counts instructions"),
        ((*STEP, "--first-parent"), "--first-parent has no meaning for a step of `git bisect run`"),
        ((*STEP, "-f", "json"), "--format has no"),
        (("--step", "1", "2", "--measure", "true"), "--measure has no"),
        ((*STEP, "--restart"), "--restart has no"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError) as error:
        command.main([*words], standalone_mode=False)
    assert error.value.exit_status == (255 if "--step" in words else 2), "git takes 2 for a verdict"
    assert said in error.value.message and error.value.remedy


def test_a_restart_of_exact_counts_is_answered_with_how_kernels_are_built_again() -> None:
    with pytest.raises(InputError) as error:
        command.main([*EXACT, "--restart"], standalone_mode=False)
    assert error.value.remedy is not None
    assert "a file that the command names has changed" in error.value.remedy
    assert "bisected-kernels" in error.value.remedy


@pytest.mark.parametrize(
    "words",
    [
        (*EXACT, "--limit", "3", "--jobs", "2", "--first-parent", "--plot", "x.svg"),
        (*EXACT, "--machine", "icount"),
        (*EXACT, "--machine", "icount:memory=256M"),
        (*BOOTS, "--restart", "--confirm", "0", "--probability", "0.9", "--seed", "2", "--jobs", "2"),
        (*MEASURE, "--restart", "--confirm", "0", "--timeout", "2", "-f", "json"),
    ],
)
def test_the_others_are_taken(words: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="git rev-parse failed"):
        command.main([*words], standalone_mode=False)


def test_every_option_of_the_table_is_one_of_the_command() -> None:
    names = {parameter.name for parameter in command.params if isinstance(parameter, click.Option)}
    assert set(BELONGS) <= names


def test_settings_of_the_exact_machine_are_those_that_commits_are_counted_with(tmp_path) -> None:
    trier = CommitCounter(
        str, "pipe", "instructions", machine="icount:memory=256M", cache=Cache(tmp_path), progress=Progress()
    )
    study = trier.study("debian:6.1")
    assert study.machine == "icount" and study.machine_settings["memory"] == "256M"
