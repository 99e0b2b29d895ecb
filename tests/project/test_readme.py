"""What the README promises: its commands are ones that there are, its links lead somewhere, and its first one works."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest

from kduel.cli import kduel
from kduel.core.plugins import plugins
from kduel.study.file import read_study, suite_text

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
QUESTIONS = (ROOT / "docs/questions.md").read_text("utf-8")
CODE = [
    *re.findall(r"^    (\./\S.*)$", README, re.MULTILINE),
    *(" ".join(one.split()) for one in re.findall(r"`(\./[^`]+)`", README + QUESTIONS)),
]
COMMANDS = sorted({re.split(r"\s{3,}", line)[0] for line in CODE if line.startswith("./kduel ")})
DONE = os.environ.get("KDUEL_TEST_FIRST_RUN", "")
"""A run that the first command made, its output beside it with the suffix .txt: CI has begun with that command."""


def test_there_are_commands() -> None:
    assert COMMANDS[0].startswith("./kduel") and len(COMMANDS) > 12
    assert "./run-tests" in CODE


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_readme_is_one_that_there_is(line: str) -> None:
    name, command, words = kduel.resolve_command(click.Context(kduel), shlex.split(line)[1:])
    assert name is not None and command is not None
    given = command.make_context(
        name, words
    ).params  # raises for an option or a number of words that it does not know
    if given.get("suite"):
        assert suite_text(given["suite"])
    for word in words:
        if word.startswith("studies/"):
            assert read_study(ROOT / word)[1].benchmark
        elif word.startswith(("debian:", "tree:")):
            assert any(source.accepts(word) for source in plugins("kernels").values()), word


def test_links_and_pictures_are_there() -> None:
    targets = [target for target in re.findall(r"\]\(([^)]+)\)", README) if "://" not in target]
    assert len(targets) > 8
    assert [target for target in targets if not (ROOT / target).exists()] == []


@pytest.mark.essential
@pytest.mark.guest
@pytest.mark.network
def test_the_first_command_ends_in_a_verdict_and_a_report(tmp_path: Path) -> None:
    first = next(line for line in CODE if line.startswith("./kduel run"))
    assert first == "./kduel run debian:6.1 debian:6.12"
    if DONE:
        out, said = Path(DONE), Path(f"{DONE}.txt").read_text("utf-8")
    else:
        out = tmp_path / "run"
        words = [*shlex.split(first), "--blocks", "1", "--out", out]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=7200, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        said = done.stdout
    assert "Cannot decide" in said or "Undecided" in said, "one block decides nothing, and it says so"
    assert f"Report: {out}/report/index.html" in said
    lock = json.loads((out / "lock.json").read_text())
    if lock["machine"]["facts"]["accelerator"] == "tcg":
        assert said.index("no proof") < said.index("Quick comparison"), "the exact verdict comes first"
        counted = json.loads((out / "results.json").read_text())["exact"]
        assert {m["verdict"] for m in counted["metrics"] if m["role"] == "primary"} - {"undecided"}
        assert (out / "exact" / "report" / "index.html").is_file()
    page = (out / "report" / "index.html").read_text("utf-8")
    assert "debian-6.12" in page and "stress-ng" in page
