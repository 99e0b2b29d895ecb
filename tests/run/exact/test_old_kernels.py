"""Old kernels by their distributions' binaries: booted, held to their gates, counted, timed and explained.

`KDUEL_TEST_KERNELS` names more of them, with blanks between: `ubuntu:xenial-4.4 ubuntu:bionic-4.15`, or packages as files.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from counting import QUICK

from kduel.core.results import Results
from kduel.store.rundir import RESULTS

pytestmark = [pytest.mark.guest, pytest.mark.network, pytest.mark.usefixtures("shared_cache")]

OLD = ["debian:5.10-cloud", *os.environ.get("KDUEL_TEST_KERNELS", "").split()]
NEW = "debian:6.12-cloud"


def results_of(run: Path) -> Results:
    found = msgspec.json.decode((run / RESULTS).read_bytes(), type=Results)
    assert {trial.status for trial in found.trials} == {"ok"}, [trial.reason for trial in found.trials]
    return found


@pytest.mark.parametrize("old", OLD)
def test_an_old_kernel_is_counted_and_explained(old: str, kduel: Callable[..., Any], tmp_path: Path) -> None:
    words = ("--machine", f"icount:cmdline={QUICK}", "-b", "kbench:operation=pipe,mode=exact")
    done = kduel("run", old, NEW, *words, "--out", tmp_path / "run")
    assert done.returncode in (0, 1), done.stderr
    assert {m.verdict for m in results_of(tmp_path / "run").metrics if m.role == "primary"} <= {
        "more",
        "fewer",
        "depends",
    }
    done = kduel("explain", tmp_path / "run", "-b", "pipe")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert (
        "The guest's own clock agrees to the instruction" in said and "what the kernel did for the operation" in said
    )


@pytest.mark.parametrize("old", OLD)
def test_an_old_kernel_is_timed(old: str, kduel: Callable[..., Any], tmp_path: Path) -> None:
    """The release, the number of CPUs and the clock source are gates of every trial."""
    done = kduel(
        "run", old, NEW, "--machine", "qemu:accel=tcg,memory=512M", "-b", "kbench:operation=null-call,time=0.1",
        "--blocks", "1", "--out", tmp_path / "run",
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    found = results_of(tmp_path / "run")
    assert len(found.trials) == 2 and {m.verdict for m in found.metrics} == {"undecided"}
