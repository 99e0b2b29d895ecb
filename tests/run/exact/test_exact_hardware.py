"""Events of the processor or the kernel per call of an operation, by perf stat on the machine that the test runs on."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kduel.benchmarks import ParseError
from kduel.core.cache import Cache
from kduel.guest import programs

sys.path.insert(0, str(Path(__file__).parents[3] / "perf"))

import exact_hardware as hardware

SAMPLE = (
    '{"operation":"dup","mode":"exact","unit":"instructions","count":4,"empty":6,"median":1,"mean":1,"min":1,"max":1,'
    '"samples":[7,7,7,7],"hops":2,"rounds":3}'
)


def test_calls_are_those_of_the_warm_up_and_those_that_were_measured() -> None:
    assert hardware.calls_of(SAMPLE) == (3 + 1) * 4 * 2


def test_what_a_program_does_once_is_in_no_call() -> None:
    """And of three tries the one in the middle tells."""
    disturbed = iter([0, 0, 0, 9_000, 0, 0])
    assert hardware.per_call(lambda calls: (calls, 1_000 + 380 * calls + next(disturbed)), 200) == 380


def test_the_deviation_is_of_the_exact_count() -> None:
    assert hardware.row_of("dup", 500, 510) == ("dup", "500", "510", "+2.0 %")
    assert hardware.row_of("dup", None, 1) == ("dup", "", "1.00", "")


def test_an_operation_that_was_not_counted_has_no_exact_count() -> None:
    means = {"dup": {"old": 500.0}, "pipe": {"old": None}}
    assert hardware.chosen(means, None, "old") == {"dup": 500, "pipe": None}
    assert hardware.chosen(means, ["pipe", "null-call"], "old") == {"pipe": None, "null-call": None}


@pytest.mark.parametrize(
    ("operation", "event", "expected"),
    [("fault-anonymous", "page-faults", 1), ("null-call", "page-faults", 0), ("pipe", "context-switches", 2)],
)
def test_events_that_need_no_hardware_are_counted_by_call(operation: str, event: str, expected: float) -> None:
    kbench = programs.build("kbench", platform.machine(), cache=Cache())
    if shutil.which("perf") is None:
        pytest.skip("perf is not installed")
    if subprocess.run(["perf", "stat", "-e", event, "true"], capture_output=True, check=False).returncode:
        pytest.skip("perf may not count here")
    found = hardware.per_call(lambda calls: hardware.counted(kbench, operation, calls, event), 40)
    assert found == pytest.approx(expected, abs=0.05)


def test_an_event_that_is_not_counted_is_no_figure() -> None:
    if shutil.which("perf") is None:
        pytest.skip("perf is not installed")
    kbench = programs.build("kbench", platform.machine(), cache=Cache())
    with pytest.raises(ParseError, match="kbench null-call"):
        hardware.counted(kbench, "null-call", 1, "no-such-event")
