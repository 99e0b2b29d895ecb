"""A tree that no commit could be built from is refused, rather than every commit skipped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[3] / "src"


@pytest.mark.slow
@pytest.mark.parametrize("left", [".config", "include/config/auto.conf", "arch/x86/include/generated/asm/rwonce.h"])
def test_a_tree_that_was_built_in_place_aborts_the_bisection(tmp_path: Path, left: str) -> None:
    tree = tmp_path / "linux"
    tree.mkdir()
    (tree / "Makefile").write_text("all:\n")
    git = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    (tree / left).parent.mkdir(parents=True, exist_ok=True)
    (tree / left).write_text("CONFIG_X86=y\n")
    done = subprocess.run(
        [sys.executable, "-m", "kduel", "bisect", "--tree", tree, "--benchmark", "null-call", "--step", "1", "2"],
        env=os.environ | {"PYTHONPATH": str(SOURCE), "KDUEL_CACHE": str(tmp_path / "cache")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    # git bisect run takes 125 for a commit to be skipped, and 128 and more for the end.
    assert done.returncode >= 128, done.stderr
    assert "built in place" in done.stderr and "mrproper" in done.stderr
