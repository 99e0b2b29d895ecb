"""The command-line reference and the manual page say what the commands' help says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_reference_is_current() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/reference", "--check"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_every_command_is_in_the_reference() -> None:
    from kduel.cli import COMMANDS, MODES

    text = (ROOT / "docs/cli.md").read_text("utf-8")
    assert [name for name in [*COMMANDS, *MODES] if f"\n## kduel {name}\n" not in text] == []
