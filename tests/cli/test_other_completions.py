"""The completion scripts of fish, in fish, and what zsh is answered."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

OPTION = ("kduel run --benchmark=redi", "--benchmark=redis")
"""Click completes the value alone; both shells replace the whole word."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("kduel doc", "doctor\tCheck this host"),
        ("kduel run debian-so", "debian-source:"),
        ("kduel list benchmarks pgb", "pgbench"),
        ("kduel run exis", "existing/"),
        OPTION,
    ],
)
def test_a_line_is_completed_by_fish(
    need: Callable[..., str], program: Path, environment: dict[str, str], tmp_path: Path, line: str, completed: str
) -> None:
    for name in ("afile", "existing/file"):
        (tmp_path / "here" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "here" / name).touch()
    script = f"set -x PATH {program.parent} $PATH; kduel --completion fish | source; complete -C {shlex.quote(line)}"
    done = subprocess.run(
        [need("fish"), "--no-config", "-c", script],
        env=environment, cwd=tmp_path / "here", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == f"{completed}\n", done.stderr


def answer_zsh(program: Path, environment: dict[str, str], line: str) -> subprocess.CompletedProcess[str]:
    """What the script of zsh is answered for the last word of a line."""
    asked = {"_KDUEL_COMPLETE": "zsh_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    return subprocess.run([program], env=environment | asked, capture_output=True, text=True, check=False)


def test_zsh_is_answered_the_whole_word(program: Path, environment: dict[str, str]) -> None:
    line, completed = OPTION
    assert answer_zsh(program, environment, line).stdout.splitlines() == ["plain", completed, "_"]


@pytest.mark.parametrize(
    ("line", "damaged"),
    [
        ("kduel run debian-so", True),
        (OPTION[0], True),
        ("kduel list benchmarks pgb", True),
        ("kduel list nosuch x", False),
        ("kduel nosuch x", False),
    ],
)
def test_nothing_is_offered_and_nothing_said_where_the_line_is_wrong_or_a_plug_in_does_not_load(
    program: Path, environment: dict[str, str], tmp_path: Path, line: str, damaged: bool
) -> None:
    if damaged:
        (tmp_path / "site/outside.py").write_text("raise RuntimeError('broken inside')")
    done = answer_zsh(program, environment, line)
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")
