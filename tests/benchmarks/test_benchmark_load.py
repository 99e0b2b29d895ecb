"""The shell around a background load, run by a real shell; only the load's program is a stand-in."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from processes import is_alive
from waiting import wait_for

from kduel.benchmarks.support.load import COMMANDS, wrap


def start(tmp_path: Path, program: str, lines: str) -> subprocess.Popen[str]:
    """`lines` under the load hackbench, for which `program` stands in. Its children's ids are in `pids`."""
    stand_in = tmp_path / "hackbench"
    stand_in.write_text(f"#!/bin/sh\n{program}\n")
    stand_in.chmod(0o755)
    return subprocess.Popen(
        ["timeout", "-k", "5", "60", "sh", "-e", "-c", wrap("hackbench", lines)],
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


BUSY = "sleep 300 & echo $! >pids; sleep 301 & echo $! >>pids; wait"


def all_end(tmp_path: Path) -> bool:
    pids = [int(word) for word in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 2
    return wait_for(lambda: not any(is_alive(pid) for pid in pids), "end of the load")


@pytest.mark.slow
def test_the_load_runs_while_the_lines_do_and_ends_whole(tmp_path: Path) -> None:
    done = start(
        tmp_path,
        BUSY,
        'until [ "$(wc -l <pids)" = 2 ]; do sleep 0.1; done\nkill -0 "$(head -n1 pids)" && echo measured\n',
    )
    out, err = done.communicate(timeout=600)
    assert (done.returncode, out, err) == (0, "measured\n", "")
    assert all_end(tmp_path)


@pytest.mark.slow
def test_a_load_that_ends_early_fails_the_step(tmp_path: Path) -> None:
    done = start(tmp_path, "exit 0", "echo measured\n")
    _, err = done.communicate(timeout=600)
    assert done.returncode != 0 and "the load hackbench ended before the measurement did" in err


@pytest.mark.slow
def test_lines_that_fail_fail_the_step_and_end_the_load(tmp_path: Path) -> None:
    done = start(tmp_path, BUSY, "false\n")
    done.communicate(timeout=600)
    assert done.returncode == 1
    assert all_end(tmp_path)


def test_a_step_that_is_ended_from_outside_ends_its_load(tmp_path: Path) -> None:
    done = start(tmp_path, BUSY, "sleep 200\n")
    pids = tmp_path / "pids"
    wait_for(lambda: pids.exists() and len(pids.read_text().split()) == 2, "load")
    done.send_signal(signal.SIGTERM)
    done.communicate(timeout=600)
    assert all_end(tmp_path)


@pytest.mark.parametrize("load", list(COMMANDS))
def test_every_load_is_shell(load: str) -> None:
    subprocess.run(["sh", "-n"], input=wrap(load, "true\n"), text=True, check=True)
    assert wrap("idle", "true\n") == "true\n"


@pytest.mark.slow
def test_what_the_machine_did_under_the_load_is_recorded(tmp_path: Path) -> None:
    done = start(tmp_path, "sleep 300 & sleep 301 & wait", "echo measured\n")
    assert (done.communicate(timeout=600)[0], done.returncode) == ("measured\n", 0)
    lines = (tmp_path / "load").read_text().splitlines()
    assert lines[0] == "load hackbench"
    before, after = ([line for line in half if line.startswith("ctxt ")] for half in (lines[1:5], lines[5:]))
    assert int(before[0].split()[1]) <= int(after[0].split()[1])
