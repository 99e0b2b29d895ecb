"""MangoHud's log of every frame: a trial is one file."""

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, median
from typing import Any

from kduel.core.errors import InputError
from kduel.core.experiment import Better, Statistic
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, location_text, text_lines
from kduel.store.imported.values_csv import number

SYSTEM = "os,cpu,gpu,ram,kernel,driver"
FRAMES = "fps,frametime,"
SUMMARY = "0.1% Min FPS,"
MILLISECONDS = {1000.0: 1.0, 1_000_000.0: 0.001}
"""By frames a second times the time of one: what its unit is in milliseconds. Older versions write microseconds."""
FIGURES: tuple[tuple[str, str, Better, Statistic, int], ...] = (
    ("frame-time-p50", "ms", "lower", "median", 2),
    ("frame-time-p99", "ms", "lower", "p99", 100),
    ("frame-time-p99.9", "ms", "lower", "p999", 1000),
    ("frames-per-second", "frames/s", "higher", "mean", 2),
    ("low-1%", "frames/s", "higher", "mean", 100),
    ("low-0.1%", "frames/s", "higher", "mean", 1000),
)
"""Metric, unit, better side, statistic and the fewest frames of which it is one."""


class MangoHud(ForeignFormat):
    """Frame times of games. A low is the mean of the frames a second of the slowest 1 % (0.1 %) of frames, as MangoHud reports it."""

    name = "mangohud"
    summary = "MangoHud's log (CSV; log_interval=0), a trial being one file: old=a.csv old=b.csv new=c.csv new=d.csv"
    derived = "percentiles and lows of all frames"

    def recognises(self, head: str) -> bool:
        return head.startswith(SUMMARY) or (f"{FRAMES}" in head and SYSTEM in head)

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        times = read_frames(path)
        ordered = sorted(times)
        count = len(times)
        slowest = [[1000 / time for time in ordered[-math.ceil(count * share) :]] for share in (0.01, 0.001)]
        values = [
            *(ordered[math.ceil(count * share) - 1] for share in (0.5, 0.99, 0.999)),
            1000 * count / math.fsum(times),
            *map(fmean, slowest),
        ]
        for (metric, unit, better, statistic, fewest), value in zip(FIGURES, values, strict=True):
            if count < fewest:
                skipped.append(f"{path.name}: {metric}, for which {count} frames are too few")
                continue
            yield ForeignRow(
                str(contender), 1, "frames", metric, unit, better, value, f"{count} frames", statistic, least=0.0,
                aspect="frame-latency",
            )  # fmt: skip

    def environments(self, path: Path, contender: str | None) -> dict[str, dict[str, Any]]:
        lines = [text for _, text in text_lines(path)]
        place = next((number for number, text in enumerate(lines[:6]) if text.startswith(SYSTEM)), None)
        facts = list(csv.reader(lines[place : place + 2])) if place is not None else []
        known = dict(zip(*facts, strict=True)) if len(facts) == 2 and len(facts[0]) == len(facts[1]) else {}
        release = {"release": known.pop("kernel")} if "kernel" in known else {}
        return {str(contender): {**release, "mangohud": known}}


def read_frames(path: Path) -> list[float]:
    """The time of each frame in milliseconds. Raises InputError where it is not of every frame."""
    names, times, rates, elapsed = list[str](), list[float](), list[float](), list[float]()
    for line, text in text_lines(path):
        if line == 1 and text.startswith(SUMMARY):
            raise InputError(
                f"{path.name} is MangoHud's summary of a log", "Give the log itself: without '_summary'."
            )
        if text.startswith(FRAMES):
            names = text.split(",")
        elif names and text:
            facts = dict(zip(names, text.split(","), strict=False))
            if len(facts) < len(names):
                raise InputError(f"{location_text(path, line)} has fewer fields than the heading", "Log it again.")
            rates.append(number(path, line, facts["fps"]))
            times.append(number(path, line, facts["frametime"]))
            if times[-1] <= 0 or rates[-1] <= 0:
                raise InputError(f"{location_text(path, line)}: a frame that took no time", "Leave this line out.")
            if "elapsed" in facts:
                elapsed.append(number(path, line, facts["elapsed"]))
    if not times:
        raise InputError(f"{path.name} has no frames", "Log at least one frame.")
    product = median(rate * time for rate, time in zip(rates, times, strict=True))
    scale = next((scale for stated, scale in MILLISECONDS.items() if 0.5 < product / stated < 2), None)
    if scale is None:
        raise InputError(f"{path.name}: frames a second and frame times contradict each other", "Log it again.")
    times = [scale * time for time in times]
    if len(elapsed) == len(times) > 1:
        # Nanoseconds, from the first row on.
        span = (elapsed[-1] - elapsed[0]) / 1e6
        if not 0.75 * span <= math.fsum(times[1:]) <= 1.33 * span:
            raise InputError(
                f"{path.name} has rows of {math.fsum(times[1:]):.0f} ms in {span:.0f} ms: it does not hold every frame once",
                "Log with log_interval=0.",
            )
    return times


PLUGIN = MangoHud()
