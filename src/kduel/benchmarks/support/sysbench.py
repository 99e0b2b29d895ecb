"""Code that the three sysbench benchmarks share: the report that sysbench 1.0 prints below each test's own figures.

sysbench divides its rates by the time until it *prints* the report, not by the "total time" of the test. Where the CPU is busy
the thread that prints waits, for seconds at times, and the printed rate is too low. So rates are computed from what was done in the total
time; `delay` checks what was printed."""

from kduel.benchmarks.support import reading
from kduel.benchmarks.support.output import ParseError
from kduel.core.experiment import Metric

PACKAGES = ("sysbench",)
VALUE = r"(\S+)"
ROUNDING = 0.0051
"""Error of rounding to two decimals."""
FEWEST_FOR_P95 = 20
"""Events of which one lies above the 95th percentile."""


def latency_metrics(of: str) -> tuple[Metric, ...]:
    """The latency metrics; `of` what."""
    steps = f"19 of 20 {of}s took no longer; in steps of about 2 % (a histogram's)."
    slowest = f"The slowest {of}: grows with the duration; a hint, no verdict."
    return (
        Metric("latency-avg", "ms", "lower", f"Mean time of one {of}.", "mean", derived="sum / number of events"),
        Metric("latency-p95", "ms", "lower", steps, "p95", optional=True),
        Metric("latency-max", "ms", "lower", slowest, "max"),
    )


def fixed_time(seconds: int) -> Metric:
    """The total time of a test that stops by the clock."""
    about = "How long the test ran: its time limit, whatever the kernel. It measures the harness."
    return Metric("total-time", "s", "lower", about, "value", fixed_at=float(seconds))


def read_report(text: str, threads: int) -> dict[str, float]:
    """`total-time`, `total-events`, `latency-min`, `-avg`, `-p95`, `-max` and `events-sd`, from the whole output.
    Raises ParseError where any is missing, or the report is not of sysbench 1.0."""
    reading.expect(rf"Number of threads: {VALUE}", text, "the number of threads", threads)
    values = {
        "total-time": reading.check_positive(
            reading.find_number(r" *total time: +(\S+)s", text, "the total time"), "the total time"
        ),
        "total-events": reading.find_whole(rf" *total number of events: +{VALUE}", text, "the number of events"),
        "latency-min": reading.find_number(rf" +min: +{VALUE}", text, "the minimum latency"),
        "latency-p95": reading.find_number(rf" +95th percentile: +{VALUE}", text, "the 95th percentile of latency"),
        "latency-max": reading.find_number(rf" +max: +{VALUE}", text, "the maximum latency"),
    }
    reading.check_positive(values["total-events"], "the number of events")
    # The printed average has two decimals, too coarse for fast operations; the sum has as many for all of them.
    total = reading.find_number(rf" +sum: +{VALUE}", text, "the sum of latencies")
    values["latency-avg"] = total / values["total-events"]
    printed = reading.find_number(rf" +avg: +{VALUE}", text, "the average latency")
    if abs(printed - values["latency-avg"]) > ROUNDING:
        reading.check_agreement(printed, values["latency-avg"], "the average latency", 0.001)
    reading.check_ascending({name: values[name] for name in ("latency-min", "latency-avg", "latency-max")}, ROUNDING)
    # The percentile is the upper edge of a histogram's step, which may lie a little above the maximum.
    reading.check_ascending(
        {"latency-p95": values["latency-p95"], "1.1 x latency-max": 1.1 * values["latency-max"]}, ROUNDING
    )
    # No thread works for longer than the test took.
    if total / 1000 > 1.01 * threads * values["total-time"] + ROUNDING:
        raise ParseError(
            f"the output contradicts itself: {total / 1000:g} s of events by {threads} threads in {values['total-time']:g} s"
        )
    if values["total-events"] < FEWEST_FOR_P95:
        del values["latency-p95"]
    events = reading.find_one(rf" +events \(avg/stddev\): +{VALUE}", text, "the fairness of events")
    each = reading.read_number(events.partition("/")[0], "the events per thread")
    reading.check_agreement(each * threads, values["total-events"], "the number of events", 0.001)
    values["events-sd"] = reading.read_number(events.partition("/")[2], "the standard deviation of events per thread")
    # The report's last line: with it, the report is whole.
    reading.find_one(rf" +execution time \(avg/stddev\): +{VALUE}", text, "the fairness of execution time")
    return values


def read_primes(text: str, threads: int, limit: int) -> dict[str, float]:
    """`read_report` of sysbench cpu with so many threads, 0 for any number. Raises ParseError."""
    ran = reading.find_whole(r"Number of threads: (\S+)", text, "the number of threads")
    if threads not in (0, ran):
        raise ParseError(f"it ran with {ran} threads; asked for was {threads}")
    reading.find_one(rf"Prime numbers limit: ({limit})", text, "the limit of primes asked for")
    return read_report(text, ran)


def compute_rate(amount: float, printed: float, report: dict[str, float], what: str) -> float:
    """`amount` over the total time. Raises ParseError where more was `printed`: no report precedes its test."""
    rate = reading.check_positive(amount, what) / report["total-time"]
    if printed > 1.01 * rate + ROUNDING:
        raise ParseError(f"the output contradicts itself: {what} is {printed:g} in one place and {rate:g} in another")
    return rate
