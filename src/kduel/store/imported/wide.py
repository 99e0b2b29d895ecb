"""Wide tables (CSV): a trial a line, with a column for each metric, or with a column for each contender."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count, pairwise
from pathlib import Path

from kduel.core.errors import InputError
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, location_text
from kduel.store.imported.support.names import is_size, statistic
from kduel.store.imported.values_csv import NUMBER, SIDES, check_end, number, records, separator, without_quote

TRIALS = ("trial", "run", "iteration", "repetition", "block", "")
"""What the column of the trials' numbers may be called; a data frame's index has no name."""
IDENTITY = ("contender", "benchmark", "metric", "unit", "better")
KERNELS = ("kernel", "kernel_version", "release", "version")
"""What a column that names the contender may be called besides."""
NO_CONTENDER = {
    "time", "timestamp", "date", "datetime", "elapsed", "epoch", "uptime", "interval", "s", "sec", "secs", "second", "seconds",
    "ms", "us", "ns", "percent", "percentage", "percentile", "quantile", "task", "tasks", "threads", "cpu", "cpus", "cores",
    "clients", "jobs", "size",
}  # fmt: skip
"""Words in the heading of a time, a share or a parameter, of which each line has another."""
MOMENTS = {"time", "timestamp", "date", "datetime", "epoch", "uptime", "elapsed"}
"""Words in the heading of a moment: lines that differ in it are samples of one series, and no trials."""
HEADING = re.compile(r"(.*?)\s*(?:\[([^\]:]*)(?::\s*(\w+))?\])?")
"""`latency [ms: lower]`: name, unit, the better side."""


class Wide(ForeignFormat):
    """Several values a line."""

    name = "wide"
    summary = (
        "a table with a column for each contender (trial,old,new), or for each metric "
        "(contender,trial,latency [ms: lower],rate [1/s: higher])"
    )
    general = True
    names_contenders = True

    def recognises(self, head: str) -> bool:
        first = head.lstrip("\n").split("\n", 1)[0].rstrip("\r")
        names = [name.strip().strip('"') for name in first.split(separator(first))]
        columns = [name for name in names if name not in (*TRIALS, *IDENTITY, *KERNELS)]
        if first.startswith(("{", "[", "<", "#", "|")) or "value" in names or {"contender", "metric"} <= {*names}:
            return False
        alone = {"contender", *KERNELS} & {*names} or any("[" in name for name in columns)
        # Numbers are releases (6.1, 6.12) where another heading shows that it is no line of values.
        if any(map(NUMBER.fullmatch, columns)) and len(columns) == len(names):
            return False
        return len(columns) >= (1 if alone else 2)

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        table = records(path, "Its first line names the columns.")
        _, header = next(table)
        names = [without_quote(name.strip()) for name in header]
        if len({*names}) < len(names):
            raise InputError(
                f"{location_text(path, 1)}: a column is named twice", "Give each column a name of its own."
            )
        numbering = [name for name in names if name in TRIALS]
        if len(numbering) > 1:
            raise InputError(
                f"{location_text(path, 1)}: {' and '.join(map(repr, numbering))} both number trials", "Keep one."
            )
        if contender is None and "contender" not in names and len(also := [n for n in names if n in KERNELS]) == 1:
            names[names.index(also[0])] = "contender"
        by_metric = contender is not None or "contender" in names
        odd = [name for name in names if not by_metric and name not in TRIALS and NO_CONTENDER & words_of(name)]
        if odd:
            raise InputError(
                f"{location_text(path, 1)}: the column {odd[0][:60]!r} is a time, a share or a parameter, and no contender",
                "Leave it out, or name the column of the trials' numbers 'trial' and that of the contenders "
                "'contender'; for one file a contender: NAME=FILE.",
            )
        moments = [name for name in names if by_metric and "[" not in name and MOMENTS & words_of(name)]
        series: dict[str, list[float]] = {name: [] for name in moments if not numbering}
        if by_metric and (contender is not None) == ("contender" in names):
            raise InputError(f"{path.name} names its contenders itself", f"Give it without {contender!r} before it.")
        misplaced = [name for name in ("metric", "unit", "better") if by_metric and name in names]
        if misplaced:
            raise InputError(
                f"{location_text(path, 1)}: a table with a column for each metric has a column {misplaced[0]!r}",
                "Write unit and better side into the heading: latency [ms: lower].",
            )
        counters: dict[tuple[str, ...], Iterator[int]] = {}
        line = 1
        for line, fields in table:
            facts = {name: without_quote(field.strip()) for name, field in zip(names, fields, strict=True)}
            key = tuple(facts.get(name, "") for name in IDENTITY)
            trial = (
                trial_of(path, line, facts[numbering[0]]) if numbering else next(counters.setdefault(key, count(1)))
            )
            for name in names:
                if name in numbering or name in IDENTITY or not facts[name]:
                    continue
                if name in series and not NUMBER.fullmatch(facts[name]):
                    raise series_error(path, name)
                value = number(path, line, facts[name], f"the column {name[:60]!r}")
                series.get(name, []).append(value)
                if by_metric:
                    arm = contender if contender is not None else facts["contender"]
                    metric, unit, better = heading(path, name)
                else:
                    arm, metric = name, facts.get("metric", "value")
                    unit, better = facts.get("unit", ""), facts.get("better", "none")
                benchmark = facts.get("benchmark", "")
                if not (arm and metric and (benchmark or "benchmark" not in facts)):
                    raise InputError(
                        f"{location_text(path, line)}: a contender, benchmark or metric has no name", "Name it."
                    )
                if better not in SIDES:
                    where, column = (1, f" the column {name[:60]!r}:") if by_metric else (line, "")
                    raise InputError(
                        f"{location_text(path, where)}:{column} better is {better[:60]!r}",
                        f"It is {', '.join(SIDES)}.",
                    )
                yield ForeignRow(
                    arm,
                    trial,
                    benchmark,
                    metric,
                    unit,
                    SIDES[better],
                    value,
                    line,
                    statistic(metric),
                    exact=is_size(benchmark, metric, unit),
                    numbered=bool(numbering),
                )
        check_end(path, line)
        for name, values in series.items():
            if len(values) > 2 and all(one < other for one, other in pairwise(values)):
                raise series_error(path, name)


def series_error(path: Path, name: str) -> InputError:
    """The refusal of a table with a moment in each line."""
    return InputError(
        f"{location_text(path, 1)}: the column {name[:60]!r} is a moment, so that the lines are samples of one series and no "
        "trials",
        "Give one line for each trial, such as the mean of its samples. A duration has its unit in the heading: time [s: lower].",
    )


def heading(path: Path, name: str) -> tuple[str, str, str]:
    """Metric, unit and better side of a column."""
    found = HEADING.fullmatch(name)
    if found is None or not found[1]:
        raise InputError(
            f"{location_text(path, 1)}: the heading {name[:60]!r} is not NAME [UNIT: SIDE]", "Name the metric."
        )
    return found[1], (found[2] or "").strip(), found[3] or "none"


def words_of(name: str) -> set[str]:
    """The words of a heading in lower case: of `elapsed_ms`, `elapsedMs` and `Elapsed [ms]` the same two."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", name)}


def trial_of(path: Path, line: int, text: str) -> int:
    """The number of the trial."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise InputError(
            f"{location_text(path, line)}: the trial is {text[:60]!r}, not a whole number",
            "Number the trials 1, 2, 3.",
        )
    return int(text)


PLUGIN = Wide()
