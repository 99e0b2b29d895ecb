"""schbench: message threads wake worker threads that do a request's work; how late they start, how long it takes."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kduel.benchmarks import Benchmark, ParseError, Raw
from kduel.benchmarks.support.parameters import Number, Seconds, Threads, label_of
from kduel.benchmarks.support.reading import ascending, carried, only_number, only_whole, positive
from kduel.core.experiment import Metric

PERCENTILES = ("50.0th", "90.0th", "99.0th", "99.9th")


class Schbench(Benchmark):
    """No distribution packages it: it is used where the user has put it into the guest's PATH (version 1.0 or later,
    whose report names wake-up latencies, request latencies and requests per second)."""

    name = "schbench"
    summary = "Wake-up and request latency of a server-like load; needs schbench 1.0 in the guest's PATH"

    class Parameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """schbench's own, but 5 seconds in place of 30, and 1 second of warming up in place of 5."""

        message_threads: Threads = 1
        worker_threads: Number = 0
        """Workers for each message thread; 0: one a CPU."""
        rps: Number = 0
        """Requests a second to be sent; 0: as many as go."""
        time: Seconds = 5
        warmup: Number = 1

    def label(self, parameters: Any) -> str:
        return label_of(
            "schbench-{message_threads}m",
            parameters,
            worker_threads="{}t",
            rps="{}rps",
            time="{}s",
            warmup="warmup{}",
        )

    def metrics(self, parameters: Any) -> tuple[Metric, ...]:
        rate = Metric(
            "requests-per-second", "1/s", "higher", "Throughput of the whole load.", "mean", aspect="scheduling"
        )
        if parameters.rps:
            about = "The rate that was asked for, unless the machine is overloaded: it measures the harness."
            rate = Metric(
                "requests-per-second",
                "1/s",
                "higher",
                about,
                "mean",
                fixed_at=float(parameters.rps),
                aspect="scheduling",
            )
        return (
            Metric(
                "wakeup-p99",
                "us",
                "lower",
                "99 of 100 workers started no later after they were woken.",
                "p99",
                aspect="wakeup-latency",
            ),
            Metric(
                "wakeup-p50",
                "us",
                "lower",
                "Half of the workers started no later.",
                "median",
                aspect="wakeup-latency",
            ),
            Metric(
                "wakeup-p99.9",
                "us",
                "lower",
                "999 of 1000 workers started no later.",
                "p999",
                aspect="wakeup-latency",
            ),
            Metric(
                "request-p50",
                "us",
                "lower",
                "Half of the requests took no longer.",
                "median",
                aspect="request-latency",
            ),
            Metric(
                "request-p99",
                "us",
                "lower",
                "99 of 100 requests took no longer: preemption shows in this metric.",
                "p99",
                aspect="request-latency",
            ),
            rate,
        )

    def script(self, parameters: Any) -> str:
        p = parameters
        workers = f" -t {p.worker_threads}" if p.worker_threads else ""
        rps = f" -R {p.rps}" if p.rps else ""
        return (
            "command -v schbench >/dev/null || {\n"
            '    echo "schbench is not in the PATH of the guest: no Debian package has it; put it there" >&2\n'
            "    exit 127\n"
            "}\n"
            f"schbench -m {p.message_threads}{workers}{rps} -r {p.time} -w {p.warmup} 2>&1\n"
        )

    def seconds(self, parameters: Any) -> float:
        return float(parameters.time + parameters.warmup + 1)

    def parse(self, raw: Raw, parameters: Any) -> dict[str, float]:
        text = raw.stdout
        # One line that only the last report has; the reports before it end in "current rps".
        rate = positive(only_number(r"average rps: (\S+)", text, "the average requests per second"), "the rate")
        wakeup = read_section(text, "Wakeup", 999)
        request = read_section(text, "Request", 990)
        return {
            "wakeup-p50": wakeup["50.0th"],
            "wakeup-p99": wakeup["99.0th"],
            "wakeup-p99.9": wakeup["99.9th"],
            "request-p50": request["50.0th"],
            "request-p99": request["99.0th"],
            "requests-per-second": rate,
        }


def read_section(text: str, kind: str, per_mille: int) -> dict[str, float]:
    """The percentiles of the last section of that kind, the whole run's, of which the one at `per_mille` thousandths is
    the highest that counts. Raises ParseError where one is missing, or has too few samples."""
    heading = f"{kind} Latencies percentiles (usec) runtime "
    found = text.rfind(heading)
    if found < 0:
        raise ParseError(f"the output has no {kind.lower()} latencies, as schbench 1.0 prints them")
    head, _, body = text[found:].partition("\n")
    what = f"the number of {kind.lower()} samples"
    samples = only_whole(r".* runtime \d+ \(s\) \((\S+) total samples\)", f"{head}\n", what)
    carried(samples, per_mille, f"the {kind.lower()} latency p{per_mille / 10:g}")
    section = body.partition("percentiles (")[0]
    values = {
        name: only_number(rf"[\t *]+{name.replace('.', '[.]')}: (\S+)[^\n]*", section, f"the {kind.lower()} {name}")
        for name in PERCENTILES
    }
    ascending(values)
    return values


PLUGIN = Schbench()
