"""What the three sysbench benchmarks share: the report that sysbench 1.0 prints below each test's own figures."""

from __future__ import annotations

from kduel.benchmarks.support.reading import agree, ascending, expect, number, only, only_number, only_whole, positive
from kduel.core.experiment import Metric

PACKAGES = ("sysbench",)
VALUE = r"(\S+)"
ROUNDING = 0.0051
"""Milliseconds that rounding to two decimals takes or gives."""


def latency_metrics(of: str) -> tuple[Metric, ...]:
    """The latency metrics; `of` what."""
    return (
        Metric("latency-avg", "ms", "lower", f"Mean time of one {of}.", "mean", derived="sum / number of events"),
        Metric(
            "latency-p95",
            "ms",
            "lower",
            f"19 of 20 {of}s took no longer; in steps of about 2 % (a histogram's).",
            "p95",
        ),
        Metric(
            "latency-max", "ms", "lower", f"The slowest {of}: grows with the duration; a hint, no verdict.", "max"
        ),
    )


def fixed_time(seconds: int) -> Metric:
    """The total time of a test that stops by the clock."""
    return Metric(
        "total-time",
        "s",
        "lower",
        "How long the test ran: its time limit, whatever the kernel. It measures the harness.",
        "value",
        fixed_at=float(seconds),
    )


def read_report(text: str, threads: int) -> dict[str, float]:
    """`total-time`, `total-events`, `latency-min`, `-avg`, `-p95`, `-max` and `events-sd`, from the whole output.

    Raises ParseError where any of it is missing, or the report is not sysbench 1.0's.
    """
    expect(rf"Number of threads: {VALUE}", text, "the number of threads", threads)
    values = {
        "total-time": positive(only_number(r" *total time: +(\S+)s", text, "the total time"), "the total time"),
        "total-events": only_whole(rf" *total number of events: +{VALUE}", text, "the number of events"),
        "latency-min": only_number(rf" +min: +{VALUE}", text, "the minimum latency"),
        "latency-p95": only_number(rf" +95th percentile: +{VALUE}", text, "the 95th percentile of latency"),
        "latency-max": only_number(rf" +max: +{VALUE}", text, "the maximum latency"),
    }
    positive(values["total-events"], "the number of events")
    # The printed average has two decimals, too coarse for fast operations; the sum has as many for all of them.
    total = only_number(rf" +sum: +{VALUE}", text, "the sum of latencies")
    values["latency-avg"] = total / values["total-events"]
    printed = only_number(rf" +avg: +{VALUE}", text, "the average latency")
    if abs(printed - values["latency-avg"]) > ROUNDING:
        agree(printed, values["latency-avg"], "the average latency", 0.001)
    ascending({name: values[name] for name in ("latency-min", "latency-avg", "latency-max")}, ROUNDING)
    # The percentile is the upper edge of a histogram's step, which may lie a little above the maximum.
    ascending({"latency-p95": values["latency-p95"], "1.1 x latency-max": 1.1 * values["latency-max"]}, ROUNDING)
    events = only(rf" +events \(avg/stddev\): +{VALUE}", text, "the fairness of events")
    values["events-sd"] = number(events.partition("/")[2], "the standard deviation of events per thread")
    # The report's last line: with it, the report is whole.
    only(rf" +execution time \(avg/stddev\): +{VALUE}", text, "the fairness of execution time")
    return values
