"""A pilot's values from a CSV: like results to import, but a boot may hold several iterations."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kduel.core.errors import InputError
from kduel.core.samples import Samples
from kduel.store.imported.support.foreign import ForeignRow, beginning
from kduel.store.imported.support.gather import Gathering
from kduel.store.imported.values_csv import COLUMNS
from kduel.store.imported.values_csv import PLUGIN as CSV


class Pilot(NamedTuple):
    """Tables of one number a boot (the mean of its iterations), and the iterations themselves."""

    samples: list[Samples]
    iterations: dict[str, dict[str, list[list[float]]]]
    """By metric (`benchmark/metric`) and contender: the values of each boot."""


def read_pilot(path: Path) -> Pilot:
    """Read the CSV that `kduel import` reads, the first contender being the baseline; a metric's several lines in a
    trial are iterations. Trials pair values if all contenders have the same ones. Raises InputError."""
    if not any(name in beginning(path).decode("utf-8", "replace").strip().split("\n", 1)[0] for name in COLUMNS):
        raise InputError(
            f"{path} is neither a run nor a CSV of values",
            f"Give the directory of an earlier run of at least five blocks, or a CSV that begins with {','.join(COLUMNS)}.",
        )
    gathering = Gathering()
    boots: dict[tuple[str, str], dict[str, dict[int, list[float]]]] = {}

    def rows() -> Iterator[ForeignRow]:
        """Numbered by line, so that the iterations of one trial are no second values of it."""
        for count, row in enumerate(CSV.rows(path, None, []), 1):
            arms = boots.setdefault((row.benchmark, row.metric), {})
            arms.setdefault(row.contender, {}).setdefault(row.trial, []).append(row.value)
            yield row._replace(trial=count)

    gathering.add(path, rows())
    names = gathering.order_contenders(None)
    samples = [
        table_of(
            benchmark, gathering, names, {name: boots[benchmark, metric].get(name, {}) for name in names}, metric
        )
        for benchmark, metric in gathering.found
    ]
    return Pilot(
        samples,
        {
            table.key: {
                name: list(boots[table.benchmark, table.metric.name].get(name, {}).values()) for name in names
            }
            for table in samples
        },
    )


def table_of(
    benchmark: str, gathering: Gathering, names: list[str], boots: dict[str, dict[int, list[float]]], metric: str
) -> Samples:
    blocks = sorted({trial for of_arm in boots.values() for trial in of_arm})
    return Samples(
        benchmark=benchmark,
        metric=gathering.found[benchmark, metric].metric,
        primary=gathering.found[benchmark, metric].role != "exploratory",
        paired=all(list(blocks) == sorted(of_arm) for of_arm in boots.values()),
        blocks=blocks,
        values={
            name: [
                math.fsum(boots[name][block]) / len(boots[name][block]) if block in boots[name] else None
                for block in blocks
            ]
            for name in names
        },
    )
