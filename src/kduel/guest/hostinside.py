"""Record of a real machine during a step, from inside: read from the running totals that its script left (record.sh)."""

import re
from collections.abc import Mapping
from pathlib import Path

from kduel.core.host import HostStep
from kduel.guest import hosttotals
from kduel.guest.environment import read_captured


def step_inside(trial: Path, name: str) -> HostStep | None:
    """The record of one step by its directory's name; None where missing or cut. It has no times by program."""
    texts = [read_captured(trial / "host" / f"{name}.{moment}") for moment in ("begin", "end")]
    first, last = (snapshot(one) for one in texts)
    if first is None or last is None or last.at < first.at:
        return None
    readings = [
        clock for one in texts if (clock := hosttotals.clock_of(files(one, "cpufreq/scaling_cur_freq"))) is not None
    ]
    return hosttotals.compare_snapshots(first, last, sum(readings) / len(readings) if readings else None)


def snapshot(texts: Mapping[str, str]) -> hosttotals.HostSnapshot | None:
    """The totals at one moment; None where its time is missing."""
    uptime = re.match(r"[0-9]{1,12}(?:\.[0-9]{1,6})?(?= )", texts.get("/proc/uptime", ""))
    if uptime is None:
        return None
    stat = texts.get("/proc/stat", "")
    return hosttotals.HostSnapshot(
        at=float(uptime[0]),
        stalled=hosttotals.stalled_seconds(texts.get("/proc/pressure/cpu", "")),
        io_stalled=hosttotals.stalled_seconds(texts.get("/proc/pressure/io", "")),
        memory_stalled=hosttotals.stalled_seconds(texts.get("/proc/pressure/memory", "")),
        steal=hosttotals.cpu_times(stat)[1],
        interrupts=hosttotals.all_interrupts(stat),
        throttled=hosttotals.sum_of_files(files(texts, "thermal_throttle/core_throttle_count")),
    )


def files(texts: Mapping[str, str], name: str) -> list[str]:
    return [text for path, text in texts.items() if path.startswith("/sys/") and path.endswith(f"/{name}")]
