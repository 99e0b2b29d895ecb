"""Metrics that have something in common."""

from msgspec.structs import replace

from kduel.core.experiment import Aspect, Metric, Statistic


def with_aspect(aspect: Aspect, *metrics: Metric, derived: str = "", words: str = "") -> tuple[Metric, ...]:
    """The metrics with that aspect and, where they are given, that arithmetic and these words of what is done."""
    return tuple(
        replace(one, aspect=aspect, derived=derived or one.derived, words=words or one.words) for one in metrics
    )


def latencies(unit: str, of: str, *percentiles: str) -> tuple[Metric, ...]:
    """Metrics such as `latency-p99`; `of` are the requests, in the plural, and percentiles `p50`, `p99`, `p99.9`."""
    known: dict[str, tuple[str, Statistic]] = {
        "p50": ("Half of the {} took no longer.", "median"),
        "p99": ("99 of 100 {} took no longer.", "p99"),
        "p99.9": ("999 of 1000 {} took no longer.", "p999"),
    }
    return with_aspect(
        "request-latency",
        *(
            Metric(f"latency-{name}", unit, "lower", known[name][0].format(of), known[name][1])
            for name in percentiles
        ),
    )
