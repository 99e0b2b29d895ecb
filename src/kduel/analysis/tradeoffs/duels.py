"""Every contender against every other, not only against the baseline: what "best" needs."""

from collections.abc import Sequence
from itertools import combinations
from typing import Literal

from msgspec import Struct

from kduel.analysis.matrix.shape import judge_matrix, pair_table, tables
from kduel.core.metric_results import MetricResult
from kduel.core.results import Results
from kduel.core.samples import Samples
from kduel.judge.verdict.comparison import compared_values
from kduel.judge.verdict.headline import side
from kduel.judge.verdict.rule import planned_rule

Relation = Literal["better", "worse", "same", "undecided"]
OPPOSITE: dict[Relation, Relation] = {"better": "worse", "worse": "better", "same": "same", "undecided": "undecided"}
"""The lint's code for a metric whose value the benchmark's own settings make."""


class Duels(Struct, kw_only=True):
    """One metric of one benchmark."""

    first: MetricResult
    """The first contender against the baseline: names, unit, better side."""
    contenders: list[str]
    values: dict[str, list[float]]
    """By contender, those that enter a verdict against any of the others."""
    results: dict[tuple[str, str], MetricResult]
    """By (reference, contender); against the baseline the run's own verdicts, among the others exploratory ones."""

    @property
    def key(self) -> tuple[str, str]:
        return self.first.benchmark, self.first.metric

    def relation(self, one: str, other: str) -> Relation:
        """Relation of the first of two to the second. A difference too small to matter counts as none."""
        if (other, one) in self.results:
            return relation(self.results[other, one])
        if (one, other) in self.results:
            return OPPOSITE[relation(self.results[one, other])]
        return "undecided"

    def mean(self, contender: str) -> float | None:
        there = self.values[contender]
        return sum(there) / len(there) if there else None


def relation(result: MetricResult) -> Relation:
    """A verdict as a relation between contender and baseline."""
    if result.verdict in ("equivalent", "equal"):
        return "same"
    if not result.claimed or result.better == "none":
        return "undecided"
    if result.below_delta:
        return "same"
    found = side(result)
    return "undecided" if found == "neutral" else found


def duels(results: Results, wanted: Sequence[tuple[str, str]]) -> list[Duels]:
    """The requested metrics, in that order. Those that measure the harness are left out."""
    values, metrics = tables(results)
    names = [contender.name for contender in results.contenders]
    against: dict[tuple[str, str], dict[tuple[str, str], MetricResult]] = {}
    for result in results.metrics:
        against.setdefault((result.benchmark, result.metric), {})[result.baseline, result.contender] = result
    kept = [key for key in wanted if not any(result.by_harness for result in against[key].values())]
    missing = [
        (key, pair)
        for key in kept
        if metrics[key[0]][key[1]].better != "none"
        for pair in combinations(names, 2)
        if pair not in against[key] and pair[::-1] not in against[key]
    ]
    table_of = pair_table(results)

    def table(benchmark: str, metric: str, arms: Sequence[str]) -> Samples:
        held = {arm: values[benchmark, metric][arm] for arm in arms}
        return table_of(benchmark=benchmark, metric=metrics[benchmark][metric], values=held)

    whole = compared_values([table(*key, names) for key in kept], planned_rule(results.study))
    samples = [table(*key, pair) for key, pair in missing]
    for (key, pair), result in zip(missing, judge_matrix(results, samples), strict=True):
        against[key][pair] = result
    return [
        Duels(first=next(iter(against[key].values())), contenders=names, values=held, results=against[key])
        for key, held in zip(kept, whole, strict=True)
    ]
