"""What runs a command of the user's, or a build, ends it with itself, however that ends: the next one would run beside it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import wait_for

from kduel.core.supervised_process import session_processes
from kduel.kernels.compile.make import Unbuildable, log_command

SOURCE = Path(__file__).parents[3] / "src"
LOAD = "sh -c 'sleep 600 & sleep 600 & timeout 600 sh -c \"touch begun; sleep 600; true\"'"
"""Processes in the background, and some that timeout(1) gave a process group of their own."""
STARTED = {
    "make": """
from kduel.kernels.compile.make import log_command
log_command(["make", "-f", str(place / "Makefile")], place / "log", environment=dict(os.environ), cwd=place)
""",
    "machine build": """
from types import SimpleNamespace
from kduel.machines.build import run_script
trial = SimpleNamespace(into=place, script=f"cd {place}; make", deadline=600)
run_script(trial, dict(os.environ))
""",
    "the guest's root": """
from kduel.guest.root import run_for_guest
run_for_guest(["make", "-C", str(place)], "the guest root cannot be made", place)
""",
    "bisect --measure": """
from kduel.run.bisect.command import ShellMeasurement
ShellMeasurement(place, place, "make", ("a", "b"), 600).run(place, "a")
""",
}


def inside(place: Path) -> dict[int, str]:
    """The command lines of the processes that work in a directory, by process id."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve(strict=True) == place:
                found[int(process.name)] = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found


@pytest.mark.slow
@pytest.mark.parametrize("started", STARTED)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_outlives_a_kduel_that_was_killed(tmp_path: Path, started: str, number: signal.Signals) -> None:
    (tmp_path / "Makefile").write_text(f"all:\n\t@{LOAD}\n")
    program = f"import os, sys\nfrom pathlib import Path\nplace = Path(sys.argv[1])\n{STARTED[started]}"
    kduel = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], env=os.environ | {"PYTHONPATH": str(SOURCE)},
        stderr=subprocess.DEVNULL, cwd=SOURCE,
    )  # fmt: skip
    try:
        wait_for((tmp_path / "begun").exists, "begin")
        assert any("sleep 600" in line for line in inside(tmp_path).values())
        kduel.send_signal(number)
        assert kduel.wait(600) != 0
        wait_for(lambda: not inside(tmp_path), "end of all processes")
    finally:
        kduel.kill()
        for pid in inside(tmp_path):
            os.kill(pid, signal.SIGKILL)


def test_a_build_that_ends_by_itself_leaves_nobody_behind_and_its_status_counts(tmp_path: Path) -> None:
    log = tmp_path / "log"
    words = ["sh", "-c", "echo $$ >leader; cat; timeout 600 sleep 600 & echo done"]
    log_command(words, log, environment=dict(os.environ), cwd=tmp_path)
    assert log.read_text().endswith("\ndone\n")
    assert session_processes(int((tmp_path / "leader").read_text())) == {}
    with pytest.raises(Unbuildable):
        log_command(["sh", "-c", "exit 3"], log, environment=dict(os.environ))
