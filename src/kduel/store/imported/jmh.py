"""JMH's JSON. Its independent unit is the fork (a Java process), so each fork gives one number: its iterations' mean."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import Struct

from kduel.core.errors import InputError
from kduel.core.experiment import Better
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, json_number, location_text, read_json

MODES = {"thrpt": "throughput", "avgt": "average_time", "sample": "sampled_time", "ss": "single_shot_time"}


class JmhMetric(Struct, rename="camel"):
    """By fork: the iterations' values, or a histogram of each, where times were sampled."""

    score_unit: str
    raw_data: list[list[Any]] | None = None
    raw_data_histogram: list[list[list[tuple[Any, Any]]]] | None = None


class JmhResult(Struct, rename="camel"):
    benchmark: str
    mode: str
    primary_metric: JmhMetric
    secondary_metrics: dict[str, JmhMetric] = {}
    params: dict[str, str] | None = None
    threads: int | None = None
    jmh_version: str | None = None
    jdk_version: str | None = None
    vm_name: str | None = None
    vm_version: str | None = None
    jvm_args: list[str] | None = None


class Jmh(ForeignFormat):
    name = "jmh"
    summary = "JMH -rf json, a trial being one fork"
    derived = "mean of a fork's iterations"
    begins = r"\s*\[\s*\{"
    holds = ('"primaryMetric"', '"mode"')

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        results = read_json(path, list[JmhResult], "JMH -rf json")
        names = [benchmark_of(result) for result in results]
        modes = Counter(names)
        for name, result in zip(names, results, strict=True):
            place = f"benchmark {name[:80]} ({result.mode[:20]})"
            if result.mode not in MODES:
                raise InputError(f"{location_text(path, place)}: the mode is unknown", f"It is {', '.join(MODES)}.")
            metrics = {MODES[result.mode]: result.primary_metric}
            for key, metric in result.secondary_metrics.items():
                forks = metric.raw_data or []
                if "NaN" in chain(*forks) or len({len(fork) for fork in forks}) > 1 or not all(forks):
                    skipped.append(f"{path.name}: {place} has no number for {key[:80]} in every iteration.")
                    continue
                # With a mode of its own where there are several: each has its own values of these metrics.
                metrics[f"{key} ({result.mode})" if modes[name] > 1 else key] = metric
            for key, metric in metrics.items():
                means = [mean(path, f"{place}, {key[:80]}", pairs) for pairs in weighted_values(metric)]
                if not means:
                    raise InputError(
                        f"{location_text(path, place)}: {key[:80]} has no raw data", "Export it again, unabridged."
                    )
                for fork, value in enumerate(means, 1):
                    yield ForeignRow(
                        str(contender), fork, name, key, metric.score_unit, better_side(metric.score_unit), value,
                        place, "mean", least=0.0 if metric is result.primary_metric else None,
                        settings=(("threads", str(result.threads)),) if result.threads else (),
                    )  # fmt: skip

    def environments(self, path: Path, contender: str | None) -> dict[str, dict[str, Any]]:
        found: dict[str, Any] = {}
        for result in read_json(path, list[JmhResult], "JMH -rf json"):
            found |= {
                "version": result.jmh_version,
                "jdk": result.jdk_version,
                "vm": f"{result.vm_name} {result.vm_version}",
                "arguments": " ".join(result.jvm_args or []),
            }
        return {str(contender): {"jmh": found}}


def benchmark_of(result: JmhResult) -> str:
    """The name with the parameters: `demo.Words.join(count=10)`."""
    parameters = ", ".join(f"{key}={value}" for key, value in (result.params or {}).items())
    return f"{result.benchmark}({parameters})" if parameters else result.benchmark


def better_side(unit: str) -> Better:
    """Operations per time are better the more there are, everything per operation the less."""
    return "higher" if unit.startswith("ops/") else "lower" if unit.endswith("/op") else "none"


def weighted_values(metric: JmhMetric) -> list[list[tuple[Any, Any]]]:
    """By fork: values, and how often each occurred."""
    if metric.raw_data_histogram:
        return [[pair for iteration in fork for pair in iteration] for fork in metric.raw_data_histogram]
    return [[(value, 1) for value in fork] for fork in metric.raw_data or []]


def mean(path: Path, place: str, pairs: list[tuple[Any, Any]]) -> float:
    """The weighted mean. Raises InputError where a value is no number, or there is none."""
    count = sum(json_number(path, place, "a count", weight) for _, weight in pairs)
    if not pairs or any(weight < 1 for _, weight in pairs):
        raise InputError(f"{location_text(path, place)} has a fork without values", "Export it again, unabridged.")
    return sum(json_number(path, place, "a value", value) * float(weight) for value, weight in pairs) / count


PLUGIN = Jmh()
