"""A build ends with the kduel that started it, however that ends: the next one builds in the same directory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kduel.kernels.build.make import Unbuildable, log_command

SOURCE = Path(__file__).parents[2] / "src"
BUILD = """
import os, sys
from pathlib import Path
from kduel.kernels.build.make import log_command
place = Path(sys.argv[1])
log_command(["make", "-f", str(place / "Makefile")], place / "log", environment=dict(os.environ), cwd=place)
"""


def until(there: Path) -> None:
    deadline = time.monotonic() + 30
    while not there.exists():
        assert time.monotonic() < deadline, f"{there} does not appear"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_part_of_a_build_outlives_a_kduel_that_was_killed(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "Makefile").write_text("all:\n\t@echo $$$$ >begun; sleep 3; touch ended\n")
    kduel = subprocess.Popen(
        [sys.executable, "-c", BUILD, str(tmp_path)], env=os.environ | {"PYTHONPATH": str(SOURCE)},
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until(tmp_path / "begun")
    kduel.send_signal(number)
    assert kduel.wait(10) != 0
    time.sleep(4)
    assert not (tmp_path / "ended").exists()


def test_a_build_that_ends_by_itself_leaves_nobody_behind_and_its_status_counts(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log_command(["sh", "-c", "echo $$ >group; cat; echo done"], log, environment=dict(os.environ), cwd=tmp_path)
    assert log.read_text().endswith("\ndone\n")
    group = (tmp_path / "group").read_text().strip()
    deadline = time.monotonic() + 10
    while group in subprocess.run(["ps", "-eo", "pgid="], capture_output=True, text=True, check=True).stdout.split():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with pytest.raises(Unbuildable):
        log_command(["sh", "-c", "exit 3"], log, environment=dict(os.environ))
