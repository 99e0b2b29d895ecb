"""wakeup: how long tasks wait to run after they were woken, at a fixed rate of requests or one after the other (our kwake)."""

import bisect
import itertools
from typing import Annotated

from msgspec import Meta, Struct

from kduel.benchmarks import ParseError, Raw
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Number
from kduel.benchmarks.support.reading import Amount, Natural, check_ascending, read_json
from kduel.benchmarks.support.varied import VariedBenchmark, VariedParameters, over_conditions, under_conditions
from kduel.core.experiment import Metric
from kduel.core.samples import Details, Distribution

USUAL_RATE = 200
RATE = "All requests, over the time from the first post to the last answer."
Workers = Annotated[int, Meta(ge=1, le=4096)]
Hogs = Annotated[int, Meta(ge=0, le=4096)]
Rate = Annotated[int, Meta(ge=1, le=10_000)]
Requests = Annotated[int, Meta(ge=100, le=4_000_000)]


class WakeupTimes(Struct):
    """Nanoseconds; a percentile is null where too few samples lie above it."""

    n: Natural
    histogram: list[tuple[Natural, Natural]]
    """The lower end of each bucket that is not empty, and its samples, in rising order: 32 buckets to each doubling."""
    min: Natural | None = None
    max: Natural | None = None
    p50: Natural | None = None
    p99: Natural | None = None
    p999: Natural | None = None


class WakeupOutput(Struct):
    kwake: int
    workers: int
    rate: int
    requests: int
    work: int
    hogs: int
    dispatcher_policy: str
    seconds: Amount
    queued: Natural
    late: Natural | None
    wake_ns: WakeupTimes
    start_ns: WakeupTimes
    response_ns: WakeupTimes
    dispatch_ns: WakeupTimes
    hog_points_per_s: Amount | None = None
    messengers: int = 0
    clock: Natural = 0
    """When the program executed the mark that QEMU's plug-in `turns` knows, nanoseconds."""
    slowest: list[tuple[Natural, Natural, Natural]] = []
    """Of the slowest wake-ups: the worker's process, when it was woken, when it ran."""

    @property
    def marks(self) -> list[int]:
        return [self.clock]


class WakeupParameters(VariedParameters, frozen=True):
    """`rate` and `requests` are for each worker; `work` is points of pi for each request. With `messengers` there is no rate: so
    many ordinary tasks wake those workers that have answered, as schbench's message threads do."""

    workers: Workers = 2
    rate: Rate = USUAL_RATE
    requests: Requests = 1000
    work: Number = 20_000
    hogs: Hogs = 0
    messengers: Annotated[int, Meta(ge=0, le=4096)] = 0

    def __post_init__(self) -> None:
        if self.messengers > self.workers:
            raise ValueError(f"{self.messengers} messengers have only {self.workers} workers: give each one at least")
        if self.messengers and self.rate != USUAL_RATE:
            raise ValueError("requests that messengers send have no rate: leave out rate, or messengers")


class Wakeup(VariedBenchmark[WakeupParameters]):
    """It answers the same question as schbench, by a program of our own: a dispatcher above all others posts requests
    at planned times, whatever the answers do, so that a stall is noticed by every request that falls into it."""

    name = "wakeup"
    summary = "Wake-up latency at a fixed rate, p50, p99, p99.9, with or without CPU load (KDuel's kwake)"
    programs = ("kwake", "kvary")
    takes_policy = True
    distributions = ("latency",)
    label_template = "wakeup-{workers}w"
    label_formats = {"rate": "{}hz", "requests": "{}r", "hogs": "{}hogs", "messengers": "{}m", "conditions": "{}c"}

    def metrics(self, parameters: WakeupParameters) -> tuple[Metric, ...]:
        beside = f" beside {parameters.hogs} busy tasks" if parameters.hogs else ""
        p999 = Metric("latency-p99.9", "us", "lower", "999 of 1000 requests were begun no later.", "p999")
        rate = Metric("requests-per-second", "1/s", "higher", RATE, "mean", derived="requests / time")
        words = f"the slowest of 100 wake-ups{beside}"
        begun, done = (f"99 of 100 requests were {what} no later after their time." for what in ("begun", "done"))
        own = (
            *with_aspect(
                "wakeup-latency",
                Metric("latency-p99", "us", "lower", begun, "p99", words=words),
                *([p999] if parameters.workers * parameters.requests >= 1000 else ()),
                Metric("latency-p50", "us", "lower", "Half of the requests were begun no later.", "median"),
                Metric("latency-max", "us", "lower", "The latest begin; grows with the number of requests.", "max"),
            ),
            *with_aspect("scheduling", *([rate] if parameters.messengers else ())),
            *with_aspect("request-latency", Metric("response-p99", "us", "lower", done, "p99")),
        )
        return over_conditions(own) if parameters.conditions else own

    def script(self, parameters: WakeupParameters) -> str:
        return under_conditions(parameters) + kwake_command(parameters)

    def seconds(self, parameters: WakeupParameters) -> float:
        p = parameters
        took = p.workers * p.requests * (p.work * 4e-9 + 1e-5) if p.messengers else float(p.requests) / float(p.rate)
        return max(1, p.conditions) * (0.5 + took)

    def policy_tasks(self, parameters: WakeupParameters) -> int | None:
        return int(parameters.workers)

    def parse_once(self, raw: Raw, parameters: WakeupParameters) -> dict[str, float]:
        out = read_kwake(raw.stdout, parameters)
        found = {
            "latency-p50": microseconds(out.start_ns, "p50"),
            "latency-p99": microseconds(out.start_ns, "p99"),
            "latency-max": microseconds(out.start_ns, "max"),
            "response-p99": microseconds(out.response_ns, "p99"),
        }
        if parameters.workers * parameters.requests >= 1000:
            found["latency-p99.9"] = microseconds(out.start_ns, "p999")
        if parameters.messengers:
            if not out.seconds:
                raise ParseError("the requests took no time")
            found["requests-per-second"] = parameters.workers * parameters.requests / out.seconds
        return found

    def details(self, raw: Raw, parameters: WakeupParameters) -> Details:
        if parameters.conditions:
            return super().details(raw, parameters)
        return Details(
            distributions={"latency-p99": histogram_of(read_kwake(raw.stdout, parameters).start_ns, "us", 1e3)}
        )


def histogram_of(times: WakeupTimes, unit: str, nanoseconds: float) -> Distribution:
    """All measurements, in buckets of 3 % width, by the upper end of each, in a unit of so many nanoseconds."""
    if times.max is None:
        raise ParseError("the output has no largest value")
    return Distribution(
        unit=unit,
        values=[(edge + (1 << max(0, edge.bit_length() - 6)) - 1) / nanoseconds for edge, _ in times.histogram],
        counts=[count for _, count in times.histogram],
        largest=times.max / nanoseconds,
        floors=[edge / nanoseconds for edge, _ in times.histogram],
    )


def kwake_command(parameters: WakeupParameters) -> str:
    """The shell line that starts kwake; the parameters are those that `read_kwake` checks."""
    p = parameters
    return (
        f'"$KDUEL_PROGRAMS/kwake" --workers {p.workers} --rate {p.rate} --requests {p.requests} --work {p.work} '
        f"--hogs {p.hogs}{f' --messengers {p.messengers}' if p.messengers else ''}\n"
    )


def read_kwake(text: str, parameters: WakeupParameters) -> WakeupOutput:
    """kwake's output, checked against the parameters and for consistency. Raises ParseError."""
    out = read_json(text, WakeupOutput, "kwake's output")
    p = parameters
    for what in ("workers", "rate", "requests", "work", "hogs", "messengers"):
        if getattr(out, what) != getattr(p, what):
            raise ParseError(f"{what} is {getattr(out, what)} in the output; asked for was {getattr(p, what)}")
    total = p.workers * p.requests
    for name, distribution in (("start", out.start_ns), ("response", out.response_ns), ("dispatch", out.dispatch_ns)):
        if distribution.n != total:
            raise ParseError(f"the {name} times are not of all {total} requests")
    if out.wake_ns.n + out.queued != total or sum(count for _, count in out.wake_ns.histogram) != out.wake_ns.n:
        raise ParseError("woken and queued requests are not all requests")
    if (out.late is None) != bool(p.messengers) or (out.late or 0) > total:
        raise ParseError(f"{out.late} requests of {total} were late")
    for name, distribution in (("start", out.start_ns), ("response", out.response_ns)):
        check_distribution(distribution, name)
    return out


def check_distribution(distribution: WakeupTimes, name: str) -> None:
    """Raises ParseError unless minimum, percentiles and maximum lie in the buckets of the histogram that carry them."""
    edges = [edge for edge, _ in distribution.histogram]
    reached = list(itertools.accumulate(count for _, count in distribution.histogram))
    if edges != sorted(set(edges)) or reached[-1:] != [distribution.n]:
        raise ParseError(f"the histogram of the {name} times does not hold {distribution.n} requests in order")
    told: dict[str, float] = {}
    for figure, share in (("min", 0.0), ("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)):
        value: int | None = getattr(distribution, figure)
        if value is None:
            continue
        # By nearest rank, as kwake does it.
        rank = min(max(0, int(share * distribution.n - 1e-9)), distribution.n - 1)
        shift = max(0, value.bit_length() - 6)
        if edges[bisect.bisect_right(reached, rank)] != (value >> shift << shift):
            raise ParseError(f"the {name} {figure} is {value} ns, and its samples lie elsewhere in the histogram")
        told[figure] = value
    check_ascending(told)


def microseconds(distribution: WakeupTimes, name: str) -> float:
    """Percentile in microseconds. Raises ParseError where there is none."""
    value: int | None = getattr(distribution, name)
    if value is None:
        raise ParseError(f"the output has no {name}: too few requests")
    return value / 1000


PLUGIN = Wakeup()
