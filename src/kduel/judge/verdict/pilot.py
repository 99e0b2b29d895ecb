"""A pilot's values from a CSV: like results to import, but a boot may hold several iterations."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import NamedTuple

from kduel.core.errors import InputError
from kduel.core.experiment import Metric
from kduel.core.samples import Samples

COLUMNS = ("contender", "trial", "benchmark", "metric", "unit", "better", "value")


class Pilot(NamedTuple):
    """Tables of one number a boot (the mean of its iterations), and the iterations themselves."""

    samples: list[Samples]
    iterations: dict[str, dict[str, list[list[float]]]]
    """By metric (`benchmark/metric`) and contender: the values of each boot."""


def read_pilot(path: Path) -> Pilot:
    """Read `contender,trial,benchmark,metric,unit,better,value`, one value a line; lines of one trial that repeat a
    metric are its iterations. The first contender is the baseline, trials of one number are a block.

    Raises InputError naming file and line.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            if reader.fieldnames is None or missing(reader.fieldnames):
                raise InputError(
                    f"{path} lacks the column(s) {', '.join(missing(reader.fieldnames or []))}",
                    f"A pilot's first line is {','.join(COLUMNS)}",
                )
            return assemble(path, [(reader.line_num, row) for row in reader])
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is no CSV: {error}", "Give a run's directory or a CSV file in UTF-8.") from error


def missing(names: list[str] | tuple[str, ...] | object) -> list[str]:
    """The columns that are not there."""
    found = names if isinstance(names, list | tuple) else []
    return [column for column in COLUMNS if column not in found]


def assemble(path: Path, rows: list[tuple[int, dict[str, str]]]) -> Pilot:
    """The tables. Raises InputError naming the line."""
    metrics: dict[tuple[str, str], Metric] = {}
    values: dict[tuple[str, str], dict[str, dict[int, list[float]]]] = {}
    contenders: list[str] = []
    for line, row in rows:
        where = f"{path}, line {line}"
        key = row["benchmark"], row["metric"]
        better = row["better"]
        if better not in ("higher", "lower", "none"):
            raise InputError(f"{where}: better is {better!r}", "It is higher, lower or none.")
        metric = Metric(name=row["metric"], unit=row["unit"], better=better)  # type: ignore[arg-type]
        if metrics.setdefault(key, metric) != metric:
            raise InputError(f"{where}: {'/'.join(key)} has another unit or direction than before", "Give it one.")
        if row["contender"] not in contenders:
            contenders.append(row["contender"])
        boots = values.setdefault(key, {}).setdefault(row["contender"], {})
        boots.setdefault(whole(where, row["trial"]), []).append(finite(where, row["value"]))
    if len(contenders) < 2:
        raise InputError(f"{path} has {len(contenders)} contender(s)", "A verdict compares two at least.")
    samples, iterations = [], {}
    for key, metric in metrics.items():
        boots_of = {name: values[key].get(name, {}) for name in contenders}
        blocks = sorted({trial for boots in boots_of.values() for trial in boots})
        table = Samples(
            benchmark=key[0],
            metric=metric,
            primary=True,
            blocks=blocks,
            values={
                name: [math.fsum(boots[block]) / len(boots[block]) if block in boots else None for block in blocks]
                for name, boots in boots_of.items()
            },
        )
        samples.append(table)
        iterations[table.key] = {name: list(boots.values()) for name, boots in boots_of.items()}
    return Pilot(samples, iterations)


def whole(where: str, text: str) -> int:
    try:
        return int(text)
    except (TypeError, ValueError):
        raise InputError(f"{where}: trial is {text!r}", "It is the number of the boot: 1, 2, ...") from None


def finite(where: str, text: str) -> float:
    try:
        value = float(text)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{where}: value is {text!r}", "Give a finite number, or leave the line out.")
    return value
