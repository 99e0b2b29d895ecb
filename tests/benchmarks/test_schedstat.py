"""The scheduler's counters around a step, by name. The text of 6.1 is captured from a guest of four CPUs with two last-level
caches beside six busy processes; those of other versions are the same counters in the columns that their documents name."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kduel.benchmarks.support import delays, schedstat
from kduel.benchmarks.support.output import ParseError

BEFORE, AFTER = (Path(__file__).parent / "schedstat-6.1.txt").read_text().split("---\n")


def in_version(text: str, version: str) -> str:
    """A text of version 15 with its counters where another version has them."""
    lines = []
    for line in text.splitlines():
        name, *words = line.split()
        if name == "version":
            words = [version]
        elif name.startswith("cpu") and version == "14":
            words = ["7", "8", "9", *words]
        elif name.startswith("domain") and version in ("16", "17"):
            mask, idle, busy, rest = words[0], words[1:9], words[9:17], words[17:]
            if version == "17":
                newidle, last = rest[:8], rest[8:]
                idle, busy, newidle = ([*g[:3], g[3], "5", "6", "7", *g[4:]] for g in (idle, busy, newidle))
                mask, rest = f"MC {mask}", [*newidle, *last]
            words = [mask, *busy, *idle, *rest]
        lines.append(" ".join([name, *words]))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("version", ["14", "15", "16", "17"])
def test_counters_are_read_by_name_in_every_version(version: str) -> None:
    found = schedstat.difference(in_version(BEFORE, version), in_version(AFTER, version))
    # Added up by hand from the captured text.
    assert found["sched-schedules"] == 953 + 737 + 828 + 976 - (5 + 7 + 11 + 31)
    assert found["sched-wakeups-local"] == 297 + 140 + 243 + 302 - (1 + 1 + 4 + 8)
    assert found["sched-time-slices"] == 1224 + 933 + 1014 + 1107 - (444 + 397 + 369 + 324)
    assert found["sched-run-delay"] == pytest.approx(112_926.27, abs=0.01)
    assert found["sched-busy-pulled"] == 149 + 2 + 148 + 147 + 149
    assert found["sched-idle-pulled"] == 1 + 1 + 2 + 1 - 1
    assert found["sched-newidle-calls"] == 8 + 4 + 5 + 7 + 3 + 6 + 3 + 4 - (0 + 1 + 0 + 0 + 1 + 1 + 1 + 1)
    assert found["sched-active-pushed"] == 2
    assert found["sched-wakeups-remote"] == 7 + 6 + 12 + 8 + 8 + 9 + 0 + 5 - (1 + 1 + 0 + 4 + 5 + 0 + 0 + 0)
    assert found["sched-wakeups-affine"] == 1 + 6 + 3 + 2 + 1 + 2 + 2 + 4
    # The captured guest has two levels of domains: two CPUs with a cache, and all four.
    assert found["sched-domain0-wakeups-remote"] == 7 + 12 + 8 + 0 - (1 + 0 + 5 + 0)
    assert found["sched-domain1-wakeups-remote"] == 6 + 8 + 9 + 5 - (1 + 4 + 0 + 0)
    assert found["sched-local-share"] == pytest.approx(100 * found["sched-wakeups-local"] / found["sched-wakeups"])
    crossing = 100 * found["sched-domain1-wakeups-remote"] / found["sched-wakeups"]
    assert found["sched-domain1-remote-share"] == pytest.approx(crossing)
    assert found["sched-delay-per-slice"] == pytest.approx(1e3 * 112_926.27 / found["sched-time-slices"], rel=1e-6)
    by_level = [metric.name for metric in schedstat.metrics() if "-domain" in metric.name]
    others = {"sched-switches", "sched-pressure-cpu", "sched-pressure-io", "sched-pressure-memory"}
    others |= {f"sched-{name}" for name in delays.ABOUT}
    assert found.keys() == {metric.name for metric in schedstat.metrics()} - others - {
        name for name in by_level if not name.startswith(("sched-domain0-", "sched-domain1-"))
    }
    flat = [
        "\n".join(line for line in in_version(text, version).splitlines() if not line.startswith("domain1"))
        for text in (BEFORE, AFTER)
    ]
    assert not [name for name in schedstat.difference(*flat) if "domain" in name]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("version 15", "version 18"), r"of version 18; its counters are known for 14, 15, 16, 17"),
        (("version 15", "edition 15"), r"of version unknown"),
        (("version 15", "version 16\nversion 15"), None),
        (("version 15", "version 17"), r"line domain0 of /proc/schedstat has not 45 numbers"),
        (("cpu0 0 0 953 48", "cpu0 0 0 953"), r"line cpu0 of /proc/schedstat has not 9 numbers"),
        (("cpu0 0 0 953 48", "cpu0 0 0 x 48"), r"line cpu0 of"),
        (("cpu0 0 0 953 48 310", "cpu0 0 0 953 48 -1"), r"line cpu0 of"),
        (("cpu3 0 0 976", "cpu3 0 0 1"), None),
    ],
)
def test_what_is_not_understood_gives_no_number(change: tuple[str, str], message: str | None) -> None:
    changed = AFTER.replace(*change)
    assert changed != AFTER
    if message is None:
        schedstat.sum_counters(changed)
        return
    with pytest.raises(ParseError, match=message):
        schedstat.difference(BEFORE, changed)


def keep(directory: Path, switch: str) -> None:
    """What a step leaves whose counters were switched on, or could not be."""
    (directory / schedstat.BEFORE).write_text(BEFORE)
    (directory / schedstat.AFTER).write_text(AFTER)
    (directory / schedstat.SWITCH).write_text(switch)


@pytest.mark.parametrize(("switch", "there"), [("1\n", True), ("", True), ("0\n", False)])
def test_counters_that_stood_still_are_no_zeros(tmp_path: Path, switch: str, there: bool) -> None:
    """A kernel before 4.6 has no switch, and counts always."""
    keep(tmp_path, switch)
    assert bool(schedstat.read_step(tmp_path)) == there


@pytest.mark.parametrize("lines", ["true", "exit 3", "kill -TERM $$"])
def test_the_switch_is_put_back_however_a_step_ends(tmp_path: Path, lines: str) -> None:
    switch, delayed = tmp_path / "sched_schedstats", tmp_path / "task_delayacct"
    switch.write_text("0\n")
    delayed.write_text("0\n")
    script = schedstat.wrap(f"cat {switch} {delayed}\n{lines}", switch=str(switch), delay_switch=str(delayed))
    done = subprocess.run(
        ["sh", "-e", "-c", script],
        env={"KDUEL_STEP": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "1\n1\n" and switch.read_text() == delayed.read_text() == "0\n"
    assert (tmp_path / schedstat.SWITCH).read_text() == "1\n"


def test_a_counter_that_falls_is_refused() -> None:
    with pytest.raises(ParseError, match=r"counter schedules of /proc/schedstat fell"):
        schedstat.difference(AFTER, BEFORE)


def test_a_step_keeps_its_status_and_its_counters(tmp_path: Path) -> None:
    for lines, status in (("echo measured", 0), ("exit 3", 3), ("false\necho unreached", 1)):
        done = subprocess.run(
            ["sh", "-e", "-c", schedstat.wrap(lines)],
            env={"KDUEL_STEP": str(tmp_path), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status and "unreached" not in done.stdout
        assert (tmp_path / schedstat.BEFORE).is_file()
        assert "ctxt" in (tmp_path / schedstat.OTHERS_AFTER).read_text()
    assert done.stderr == ""


PRESSURE = """/proc/pressure/cpu:some avg10=1.00 avg60=0.00 avg300=0.00 total={}
/proc/pressure/cpu:full avg10=0.00 avg60=0.00 avg300=0.00 total=99
/proc/pressure/memory:some avg10=0.00 avg60=0.00 avg300=0.00 total=7
/proc/stat:ctxt {}
"""


def test_pressure_and_switches_are_beside_the_counters(tmp_path: Path) -> None:
    keep(tmp_path, "1\n")
    (tmp_path / schedstat.OTHERS_BEFORE).write_text(PRESSURE.format(1500, 10))
    (tmp_path / schedstat.OTHERS_AFTER).write_text(PRESSURE.format(4000, 52))
    found = schedstat.read_step(tmp_path)
    # A kernel without pressure, or without one of its files, has no such number.
    assert {name: value for name, value in found.items() if "pressure" in name or name == "sched-switches"} == {
        "sched-switches": 42,
        "sched-pressure-cpu": 2.5,
        "sched-pressure-memory": 0,
    }
    (tmp_path / schedstat.OTHERS_AFTER).write_text(PRESSURE.format(1499, 52))
    with pytest.raises(ParseError, match="pressure-cpu fell"):
        schedstat.read_step(tmp_path)


@pytest.mark.parametrize("counters", [None, "", "stood still"])
def test_pressure_and_switches_need_no_counters(counters: str | None, tmp_path: Path) -> None:
    (tmp_path / schedstat.OTHERS_BEFORE).write_text(PRESSURE.format(1500, 10))
    (tmp_path / schedstat.OTHERS_AFTER).write_text(PRESSURE.format(4000, 52))
    if counters is not None:
        keep(tmp_path, "0\n" if counters else "1\n")
    if counters == "":
        (tmp_path / schedstat.BEFORE).write_text("")
        (tmp_path / schedstat.AFTER).write_text("")
    assert schedstat.read_step(tmp_path) == {
        "sched-switches": 42, "sched-pressure-cpu": 2.5, "sched-pressure-memory": 0,
    }  # fmt: skip


def test_pressure_is_no_sum_over_cpus() -> None:
    about = {metric.name: metric.about for metric in schedstat.metrics()}
    assert all(("over all CPUs" in text) != ("pressure" in name) for name, text in about.items())


def test_a_kernel_without_the_file_gives_no_counters(tmp_path: Path) -> None:
    assert schedstat.read_step(tmp_path) == {}
    (tmp_path / schedstat.BEFORE).write_text("")
    (tmp_path / schedstat.AFTER).write_text("")
    assert schedstat.read_step(tmp_path) == {}
    keep(tmp_path, "1\n")
    assert schedstat.read_step(tmp_path)["sched-schedules"] == 3440


@pytest.mark.parametrize(
    ("kernel", "version"), [("5.10", "15"), ("6.1", "15"), ("6.12", "16"), ("6.18", "17"), ("7.3", "17")]
)
def test_counters_that_real_kernels_wrote_are_read(kernel: str, version: str) -> None:
    """Guests of four CPUs with two last-level caches, before and after six busy processes."""
    before, after = (Path(__file__).parent / f"schedstat/{kernel}.txt").read_text().split("---\n")
    assert before.startswith(f"version {version}\n")
    found = schedstat.difference(before, after)
    # Six processes on four CPUs: they wait, and are woken at least once; the sums are those of the levels.
    assert found["sched-wakeups"] >= 6 and found["sched-run-delay"] > 100
    for counter in ("newidle-calls", "busy-pulled", "wakeups-remote"):
        parts = [found[f"sched-domain{level}-{counter}"] for level in (0, 1)]
        assert found[f"sched-{counter}"] == sum(parts)
