"""Tables to judge: from numbers, from a seed, and the published study 000."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from kduel.core.experiment import Better, Metric
from kduel.core.samples import Samples

PUBLISHED = Path(__file__).parents[2] / "studies/published/generations.csv"


def table(
    *arms: Sequence[float | None],
    better: Better = "higher",
    primary: bool = True,
    unit: str = "ops/s",
    name: str = "rate",
    order: dict[str, list[int | None]] | None = None,
    counted: bool = False,
) -> Samples:
    """One metric; the arms are called A, B, C."""
    return Samples(
        benchmark="cpu",
        metric=Metric(name=name, unit=unit, better=better),
        primary=primary,
        counted=counted,
        blocks=list(range(1, len(arms[0]) + 1)),
        values={chr(ord("A") + index): list(arm) for index, arm in enumerate(arms)},
        order=order or {},
    )


def noisy(seed: int, effect: float, spread: float, blocks: int, **more: object) -> Samples:
    """B is `effect` (a share) higher than A; `spread` is the standard deviation of the log-ratio."""
    generator = np.random.default_rng(seed)
    before = 1000 * np.exp(generator.normal(0, spread / np.sqrt(2), blocks))
    after = 1000 * (1 + effect) * np.exp(generator.normal(0, spread / np.sqrt(2), blocks))
    return table(before.tolist(), after.tolist(), **more)  # type: ignore[arg-type]


def generations() -> list[Samples]:
    """Study 000: seven metrics of ten boots each, every one of them primary."""
    values: dict[tuple[str, str, str, str], dict[str, dict[int, float]]] = {}
    with PUBLISHED.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            key = row["benchmark"], row["metric"], row["unit"], row["better"]
            values.setdefault(key, {}).setdefault(row["contender"], {})[int(row["trial"])] = float(row["value"])
    return [
        Samples(
            benchmark=benchmark,
            metric=Metric(name=name, unit=unit, better=better),  # type: ignore[arg-type]
            primary=True,
            blocks=list(range(1, 11)),
            values={contender: [trials[trial] for trial in range(1, 11)] for contender, trials in arms.items()},
        )
        for (benchmark, name, unit, better), arms in values.items()
    ]


def first_blocks(samples: Samples, blocks: int) -> Samples:
    """What was known after so many blocks."""
    return msgspec.structs.replace(
        samples,
        blocks=samples.blocks[:blocks],
        values={name: values[:blocks] for name, values in samples.values.items()},
        order={name: order[:blocks] for name, order in samples.order.items()},
    )
