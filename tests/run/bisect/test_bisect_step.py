"""`kduel bisect --step` under `git bisect run`: an error must not be taken for a verdict on the commit."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import ForkedKduel

from kduel.cli.bisect import command
from kduel.run.bisect.boots import boot_study, choose_metric

SOURCE = Path(__file__).parents[3] / "src"


@pytest.fixture
def bisect(forked_kduel: ForkedKduel, tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Exit status and output of `kduel bisect WORDS...` in the test's directory."""

    def call(*words: str) -> tuple[int, str]:
        environment = forked_kduel.environment | {"KDUEL_CACHE": str(tmp_path / "cache")}
        done = forked_kduel(["bisect", *words], cwd=tmp_path, environment=environment)
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout + done.stderr

    return call


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["-b", "nul-call", "--step", "1", "2"],
            "no operation 'nul-call' to count Did you mean null-call? There are: boot,",
        ),
        (["-b", "null-call", "--step", "1", "2", "--metric", "cycles"], "no exact metric 'cycles'"),
        (["-b", "null-call", "--step", "1", "2", "--confg", "c"], "No such option"),
        (["-b", "null-call", "--step", "1"], "requires 2 arguments"),
        (["-b", "null-call", "--step", "1", "2", "--tree", "missing"], "does not exist"),
        (["-b", "null-call", "--step", "1", "2", "--image", "vmlinuz"], "go together"),
        (["--step", "1", "2"], "--benchmark or --measure"),
        (["-b", "null-call", "--step", "2", "2"], "the same cost"),
        (["-b", "null-call", "--step", "1", "2", "--config", "missing"], "missing"),
    ],
)
def test_an_error_ends_the_bisection_and_is_no_verdict_on_the_commit(
    bisect: Callable[..., tuple[int, str]], tmp_path: Path, words: list[str], said: str
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    status, output = bisect(*words)
    # To git 125 is a commit to be skipped, anything else below 128 a good or a bad one.
    assert status >= 128, (status, output)
    assert said in " ".join(output.split())


def test_without_a_step_a_wrong_command_line_ends_as_everywhere(bisect: Callable[..., tuple[int, str]]) -> None:
    assert bisect("a", "b", "-b", "null-call", "--confg", "c")[0] == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-b", "nul-call"], "no operation 'nul-call'"),
        (["-b", "null-call", "--metric", "cycles"], "no exact metric 'cycles'"),
        (["-b", "null-call"], "missing is not there"),
        (["-b", "sysbench-cpu", "--metric", "events-per-second", "--machine", "qemu"], "missing is not there"),
    ],
)
def test_what_can_be_refused_is_refused_before_the_checkout(
    bisect: Callable[..., tuple[int, str]], tmp_path: Path, words: list[str], said: str
) -> None:
    """A checkout of Linux takes minutes."""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for message in ("first", "second"):
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", message], check=True)
    hook = tmp_path / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/checked-out\n")
    hook.chmod(0o755)
    status, output = bisect("HEAD~", "HEAD", "--config", "missing", *words)
    assert status == 2 and said in " ".join(output.split()), output
    assert not (tmp_path / "checked-out").exists()


def test_the_examples_of_the_help_and_of_the_manual_name_metrics_that_there_are() -> None:
    manual = (SOURCE.parent / "docs" / "bisect.md").read_text()
    examples = re.findall(
        r"^ {4}kduel bisect (.*)",
        f"{manual}\n{command.help}".replace("\\\n", "").replace("--tree linux ", ""),
        re.MULTILINE,
    )
    timed = 0
    for example in examples:
        words = shlex.split(re.sub(r" {2,}(?=--)", " ", example).partition("   ")[0])
        context = command.make_context("bisect", words)
        if context.params["machine"] != "icount":
            timed += 1
            study = boot_study(context.params["benchmark"], context.params["machine"])
            assert choose_metric(study, context.params["metric"]).name == context.params["metric"], example
    assert timed == 2
