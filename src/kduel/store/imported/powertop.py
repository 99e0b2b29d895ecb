"""PowerTOP's report, a file a trial: power as the battery tells it, wake-ups, CPU use; no estimates for parts."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kduel.core.errors import InputError
from kduel.core.experiment import Aspect, Better, Statistic
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, location_text, text_lines
from kduel.store.imported.values_csv import number

PREFIXES = {"u": 1e-6, "µ": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3}
BEGIN = re.compile(r"^(?:PowerTOP Version[;,]|# PowerTOP Report|PowerTOP$)", re.MULTILINE)


class Figure(NamedTuple):
    """A line's part with a figure and the prefix of its unit, and what the figure is."""

    pattern: re.Pattern[str]
    metric: str
    unit: str
    better: Better
    statistic: Statistic
    aspect: Aspect | None


FIGURES = (
    Figure(
        re.compile(r"The battery reports a discharge rate of:[ \";,]*(\S+) +([uµmk]?) *W\b"),
        "battery-power", "W", "lower", "value", "power",
    ),
    Figure(re.compile(r"\bSystem:[ ;,]*(\S+)()  *wakeup/s"), "wakeups", "1/s", "none", "mean", "activity"),
    Figure(re.compile(r"\bCPU:[ ;,]*([^\s%]+)%()  *usage"), "cpu-use", "%", "none", "mean", None),
)  # fmt: skip
"""Of version 2, which separates by semicolons, and of later ones, by commas."""


class PowerTop(ForeignFormat):
    name = "powertop"
    summary = "PowerTOP's report (LC_ALL=C powertop --time=60 --csv=a.csv), a trial being one file"

    def recognises(self, head: str) -> bool:
        return BEGIN.search(head) is not None

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        found: dict[str, tuple[int, float]] = {}
        for line, text in text_lines(path):
            for figure in FIGURES:
                if (match := figure.pattern.search(text)) is None:
                    continue
                if figure.metric in found:
                    raise InputError(
                        f"{location_text(path, line)}: {figure.metric} for the second time", "Give one report a file."
                    )
                found[figure.metric] = line, number(path, line, match[1], figure.metric) * PREFIXES[match[2]]
        if not found:
            raise InputError(
                f"{path.name} has none of {', '.join(figure.metric for figure in FIGURES)}",
                "Report in English: LC_ALL=C powertop --time=60 --csv=FILE.",
            )
        if "battery-power" not in found:
            skipped.append(f"{path.name}: no battery-power, which a battery reports only while it discharges")
        for figure in FIGURES:
            if figure.metric in found:
                line, value = found[figure.metric]
                if value == 0:
                    # As where the kernel lets powertop count no events.
                    skipped.append(f"{path.name}: {figure.metric} is 0, so powertop could not measure it")
                    continue
                yield ForeignRow(
                    str(contender), 1, "session", figure.metric, figure.unit, figure.better, value, line,
                    figure.statistic, least=0.0, aspect=figure.aspect,
                )  # fmt: skip


PLUGIN = PowerTop()
