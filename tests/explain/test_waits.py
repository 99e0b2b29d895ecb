"""The tasks that slow wake-ups waited for, from the plug-in's lines and what the program told of its wake-ups."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kduel.benchmarks import Raw
from kduel.core.experiment import Step
from kduel.explain.waits import (
    BrokenSwitchesError,
    Switches,
    Told,
    Waits,
    WaitsExplanation,
    as_svg,
    as_text,
    find_waits,
)
from kduel.run.exact.waits import told_by

LINES = """\
50000 0 81 program
100000 0 71 hog 1
100000 1 0 swapper/1
500000 clock
900000 0 72 hog 2
1500000 1 71 hog 1
2000000 0 73 kworker/0:1 x
2100000 0 72 hog 2
3000000 0 81 worker 1
3200000 0 72 hog 2
"""
"""Of two CPUs, whose programs read 7,000,000 ns at 500,000 instructions."""
TOLD = [("plain", [7_000_000], [(81, 7_300_000, 9_550_000)])]
"""Woken at 800,000, its first instruction at 3,050,000."""


def explained(told: list[Told], lines: str = LINES) -> WaitsExplanation:
    waits = find_waits(Switches(lines), told, 40_000)
    kernel = Waits(contender="b", release="6.12", qemu="7.2.22", cpus=2, resolution=40_000, waits=waits)
    return WaitsExplanation("wakeup", [kernel])


def test_the_time_from_the_wake_up_to_the_run_is_some_tasks() -> None:
    (wait,) = explained(TOLD).kernels[0].waits
    assert (wait.worker, wait.cpu, wait.waited) == ("worker 1", 0, 2_250_000)
    assert wait.by_task() == [
        ("hog 2", 2_000_000, 2, 1_100_000),
        ("hog 1", 100_000, 1, 100_000),
        ("kworker/0:1 x", 100_000, 1, 100_000),
    ]
    other = [(run.title, run.begin, run.end) for run in wait.runs if run.cpu == 1]
    assert other == [("nothing (it polled)", 0, 700_000), ("hog 1", 700_000, 2_250_000)]


def test_what_the_plug_in_counts_too_much_between_marks_is_taken_back() -> None:
    """From the second mark on its time is twice as fast: the worker ran 1,250,000 ns after it, and 2,500,000 by the plug-in."""
    lines = LINES.replace("500000 clock\n", "300000 clock\n500000 clock\n") + "4500000 clock\n"
    told: list[Told] = [("plain", [6_800_000, 7_000_000, 9_000_000], [(81, 7_200_000, 8_260_000)])]
    (wait,) = explained(told, lines).kernels[0].waits
    assert (wait.worker, wait.cpu, wait.waited) == ("worker 1", 0, 1_060_000)
    assert [run.end - run.begin for run in wait.runs if run.name == "hog 2"] == [1_100_000, 900_000]
    with pytest.raises(BrokenSwitchesError, match="read 2 times under 1 condition"):
        explained(told, LINES + "4500000 clock\n")


def test_the_page_and_the_picture_have_the_tasks() -> None:
    found = explained(TOLD)
    text = as_text(found)
    assert "worker 1 ran 2,250 us after it was woken, on CPU 0:" in text
    assert "2,000  us  hog 2 (2 runs, the longest 1,100 us)" in text
    picture = as_svg(found)
    assert picture.count("<title>hog 2: ") == 2 and "<title>hog 1: 1,550 us</title>" in picture
    assert "swapper" not in picture and "CPU 1</text>" in picture
    assert "No worker slept" in as_text(explained([("plain", [7_000_000], [])]))


@pytest.mark.parametrize(
    ("told", "lines", "why"),
    [
        ([*TOLD, *TOLD], LINES, "read 1 times under 2 conditions"),
        ([("plain", [7_000_000], [(81, 7_300_000, 9_450_000)])], LINES, "no CPU had it then"),
        ([("plain", [7_000_000], [(99, 7_300_000, 9_550_000)])], LINES, "task 99 says that it ran"),
        (TOLD, LINES + "3300000 1 unreadable\n", "'3300000 1 unreadable' is no switch"),
    ],
)
def test_what_does_not_match_is_refused(told: list[Told], lines: str, why: str) -> None:
    with pytest.raises(BrokenSwitchesError, match=why):
        explained(told, lines)


def test_a_workload_tells_its_slowest_begins_by_condition() -> None:
    """Of the processes that slept until they were to begin; as ktasks printed them, which knows no kernel's view."""
    captured = Path(__file__).parents[1] / "benchmarks/captured/kduel-programs/tasks-beat-pool-9f2e96-1s-2c"
    parameters = json.loads(captured.with_name(f"{captured.name}.json").read_text())["parameters"]
    step = Step(label=captured.name, benchmark="tasks", parameters=parameters)
    plain, other = told_by(Raw.read(captured), step)
    assert plain[0] == "plain" and other[0].startswith("1: phase ")
    for _, (clock, begin, end), slowest in (plain, other):
        waited = [woke - sent for _, sent, woke in slowest]
        assert len(slowest) == 5 and waited == sorted(waited, reverse=True)
        # The time begins a fifth of a second after the first mark, and takes one second.
        assert clock + 200_000_000 <= begin and all(clock + 200_000_000 <= sent < end for _, sent, _ in slowest)
