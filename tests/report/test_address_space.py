"""Where a process may not reserve what the drawing library does, it is told so, and nothing dies."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kduel.report.plots.engine import ADDRESS_SPACE

SOURCE = Path(__file__).parents[2] / "src"
DRAW = "from kduel.report.plots.engine import drawing\nprint(len(drawing().vegalite_to_svg({'mark': 'bar'})))"


def drawn(mebibytes: int) -> subprocess.CompletedProcess[str]:
    command = f'ulimit -v {mebibytes << 10}; exec {sys.executable} -c "$0"'
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.run(["sh", "-c", command, DRAW], env=environment, capture_output=True, text=True, check=False)


def test_too_little_address_space_is_an_error_with_a_remedy() -> None:
    done = drawn(8 << 10)
    assert done.returncode == 1 and "HostError" in done.stderr and "ulimit -v unlimited" in done.stderr


def test_the_library_is_imported_in_one_place() -> None:
    """A bisection's page imported it without asking whether it may."""
    found = [path.name for path in SOURCE.rglob("*.py") if "import vl_convert" in path.read_text("utf-8")]
    assert found == ["engine.py"]


@pytest.mark.slow
def test_what_is_asked_for_is_enough() -> None:
    assert drawn(ADDRESS_SPACE >> 20).returncode == 0
