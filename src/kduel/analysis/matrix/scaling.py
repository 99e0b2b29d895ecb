"""Growth of a rate with threads: in all, for each thread, and what is left of the first thread's share."""

import math

from msgspec import Struct

from kduel.analysis.matrix.grid import places
from kduel.analysis.matrix.shape import measured_steps, tables
from kduel.core.results import Results

THREADS = "threads"
"""The parameter of this name."""
LEAST_BLOCKS = 3
"""Fewer give no interval worth the name."""


class AtThreads(Struct, kw_only=True):
    threads: int
    total: float
    per_thread: float
    efficiency: float
    """In per cent of what a thread did at the fewest threads measured: geometric mean of the blocks' own ratios."""
    low: float | None = None
    high: float | None = None
    """Student's 95 % interval over blocks, in per cent; None for the fewest threads, and for fewer than three blocks."""
    n: int = 0


class Scaling(Struct, kw_only=True):
    benchmark: str
    """The label without its number of threads."""
    contender: str
    unit: str
    steps: list[AtThreads]
    told: str = ""


def scaling(results: Results) -> list[Scaling]:
    """Scaling of every benchmark that gives a throughput and was run at several numbers of threads."""
    values, metrics = tables(results)
    families: dict[str, dict[int, tuple[str, str]]] = {}
    for place in places(measured_steps(results)):
        rates = (metric.name for metric in metrics[place.label].values() if metric.aspect == "throughput")
        if place.parameter == THREADS and (name := next(rates, None)):
            families.setdefault(place.family, {})[place.count] = (place.label, name)
    found = []
    for family, counts in families.items():
        for contender in results.contenders:
            columns = {count: values[key][contender.name] for count, key in sorted(counts.items())}
            label, name = next(iter(counts.values()))
            if one := scale(family, contender.name, metrics[label][name].unit, columns):
                found.append(one)
    return found


def scale(benchmark: str, contender: str, unit: str, columns: dict[int, list[float | None]]) -> Scaling | None:
    """From the values of each number of threads by block. None where the fewest threads or all others have no value."""
    from kduel.judge.verdict.spending import mean_interval

    fewest = min(columns)
    steps = []
    for threads, column in columns.items():
        there = [value for value in column if value is not None]
        logs = [
            math.log(value / threads / (first / fewest))
            for value, first in zip(column, columns[fewest], strict=True)
            if value is not None and first is not None and value > 0 and first > 0
        ]
        if there and logs:
            mean = sum(there) / len(there)
            known = mean_interval(logs) if threads != fewest and len(logs) >= LEAST_BLOCKS else None
            low, high = (None, None) if known is None else (100 * math.exp(known[1]), 100 * math.exp(known[2]))
            steps.append(
                AtThreads(
                    threads=threads,
                    total=mean,
                    per_thread=mean / threads,
                    efficiency=100 * math.exp(sum(logs) / len(logs)),
                    low=low,
                    high=high,
                    n=len(logs),
                )
            )
    if len(steps) < 2 or steps[0].threads != fewest:
        return None
    found = Scaling(benchmark=benchmark, contender=contender, unit=unit, steps=steps)
    before, last = found.steps[-2:]
    gain = 100 * (last.total / before.total - 1)
    sign = "more" if gain >= 0 else "less"
    found.told = f"{last.threads} threads did {abs(gain):.1f} % {sign} in all than {before.threads}"
    return found
