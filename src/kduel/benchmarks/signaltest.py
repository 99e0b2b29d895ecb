"""signaltest: how long a signal takes around a ring of real-time threads."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from msgspec import Meta, Struct

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.benchmarks.support import load
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.reading import Amount, Natural, percentile_of, read_json_file, read_whole, split_lines
from kduel.core.experiment import Metric
from kduel.core.samples import Details, Distribution

REPORT = "signaltest.json"


class Thread(Struct):
    """One thread of signaltest's JSON; microseconds."""

    cycles: Natural
    min: Natural
    max: Natural
    avg: Amount


class SignaltestReport(Struct):
    num_threads: Natural
    return_code: int
    thread: dict[Natural, Thread]


class SignaltestParameters(Parameters, frozen=True):
    """signaltest's own, but a priority and 2,000 loops, without which it is no measurement."""

    threads: Annotated[int, Meta(ge=2, le=10_000)] = 2
    priority: Annotated[int, Meta(ge=0, le=99)] = 80
    """0 is SCHED_OTHER."""
    loops: Annotated[int, Meta(ge=1000, le=1_000_000_000)] = 2000
    load: load.Load = "idle"


class Signaltest(Benchmark[SignaltestParameters]):
    """Each thread signals the next one. The first one's rounds count: it rests after sixteen, outside of what it measures, and
    the others' figures include that rest."""

    name = "signaltest"
    summary = "Round trip of a signal among real-time threads: p50, p99, maximum; idle or under a load (signaltest)"
    packages = ("rt-tests", *load.PACKAGES)
    distributions = ("latency",)
    label_template = "signaltest-{load}-{threads}t"
    label_formats = {"priority": "p{}", "loops": "{}l"}
    declared_metrics = with_aspect(
        "realtime-latency",
        Metric("latency-p99", "us", "lower", "99 of 100 rounds took no longer.", "p99"),
        Metric("latency-p50", "us", "lower", "Half of the rounds took no longer.", "median"),
        Metric("latency-max", "us", "lower", "The longest round; grows with their number.", "max"),
    )

    def script(self, parameters: SignaltestParameters) -> str:
        p = parameters
        return load.wrap(
            p.load, f'signaltest -v -m -t{p.threads} -p{p.priority} -l{p.loops} --json="$KDUEL_STEP/{REPORT}"\n'
        )

    def seconds(self, parameters: SignaltestParameters) -> float:
        # It rests for 10 ms after every 16 rounds.
        return 0.5 + parameters.loops * 0.001 + load.extra_seconds(parameters.load)

    def parse(self, raw: Raw, parameters: SignaltestParameters) -> dict[str, float]:
        times, thread = read_rounds(raw, parameters)
        return {
            "latency-p99": percentile_of(times, 990, "the latency p99"),
            "latency-p50": percentile_of(times, 500, "the latency p50"),
            "latency-max": float(thread.max),
        }

    def details(self, raw: Raw, parameters: SignaltestParameters) -> Details:
        times, thread = read_rounds(raw, parameters)
        return Details(
            distributions={"latency-p99": Distribution.from_counts(Counter(times), "us", largest=thread.max)}
        )


def read_rounds(raw: Raw, parameters: SignaltestParameters) -> tuple[list[int], Thread]:
    """The first thread's rounds in microseconds, in rising order, and its summary. signaltest prints a 0 in place of the first one
    and leaves out the last. Raises ParseError where they do not fit each other or the parameters."""
    report = read_json_file(raw, REPORT, SignaltestReport)
    if report.return_code != 0:
        raise ParseError(f"{REPORT}: the return code is {report.return_code}")
    if not len(report.thread) == report.num_threads == parameters.threads:
        raise ParseError(f"{REPORT} has {len(report.thread)} threads; asked for were {parameters.threads}")
    first = report.thread.get(0)
    if first is None or first.cycles != parameters.loops:
        raise ParseError(f"{REPORT}: the first thread did not run the {parameters.loops} loops asked for")
    rows = [line.replace(" ", "").split(":") for line in split_lines(raw.stdout, "stdout")]
    mine = [row[1:] for row in rows if len(row) == 3 and row[0] == "0"]
    if [row[0] for row in mine] != [str(number) for number in range(first.cycles)]:
        raise ParseError(f"stdout has not a line for each of the first thread's {first.cycles} rounds")
    times = sorted(read_whole(row[1], "a round's time") for row in mine[1:])
    last = first.avg * first.cycles - sum(times)
    rounding = 0.0051 * first.cycles
    if times[0] < first.min or times[-1] > first.max or not first.min - rounding <= last <= first.max + rounding:
        raise ParseError("the rounds in stdout contradict the minimum, the average or the maximum")
    return times, first


PLUGIN = Signaltest()
