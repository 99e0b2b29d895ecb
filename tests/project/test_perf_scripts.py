"""The calibrations start: a script that nobody runs every day breaks when what it imports moves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PERF = Path(__file__).parents[2] / "perf"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name for path in PERF.glob("*_calibration.py")))
def test_a_calibration_starts(name: str) -> None:
    done = subprocess.run([sys.executable, PERF / name, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "--write" in done.stdout, done.stderr
