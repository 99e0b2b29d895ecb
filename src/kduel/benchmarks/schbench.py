"""schbench: message threads wake worker threads that do a request's work; how late they start, how long it takes."""

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Number, Seconds, Threads
from kduel.benchmarks.support.reading import check_ascending, check_positive, check_samples, find_number, find_whole
from kduel.core.experiment import Metric

STARTED = "99 of 100 workers started no later after they were woken."
PREEMPTED = "99 of 100 requests took no longer: preemption shows in this metric."
PERCENTILES = ("50.0th", "90.0th", "99.0th", "99.9th")


class SchbenchParameters(Parameters, frozen=True):
    """schbench's own, but 5 seconds in place of 30, and 1 second of warming up in place of 5."""

    message_threads: Threads = 1
    worker_threads: Number = 0
    """Workers for each message thread; 0: one a CPU."""
    rps: Number = 0
    """Requests a second to be sent; 0: as many as go."""
    time: Seconds = 5
    warmup: Number = 1


class Schbench(Benchmark[SchbenchParameters]):
    """No distribution packages it: it is used where the user has put it into the guest's PATH (version 1.0 or later,
    whose report names wake-up latencies, request latencies and requests per second)."""

    name = "schbench"
    summary = "Wake-up and request latency of a server-like load; needs schbench 1.0 in the guest's PATH"
    label_template = "schbench-{message_threads}m"
    label_formats = {"worker_threads": "{}t", "rps": "{}rps", "time": "{}s", "warmup": "warmup{}"}

    def metrics(self, parameters: SchbenchParameters) -> tuple[Metric, ...]:
        about = "Throughput of the whole load."
        if parameters.rps:
            about = "The rate that was asked for, unless the machine is overloaded: it measures the harness."
        rate = float(parameters.rps) or None
        return (
            *with_aspect(
                "wakeup-latency",
                Metric("wakeup-p99", "us", "lower", STARTED, "p99"),
                Metric("wakeup-p50", "us", "lower", "Half of the workers started no later.", "median"),
                Metric("wakeup-p99.9", "us", "lower", "999 of 1000 workers started no later.", "p999"),
            ),
            *with_aspect(
                "request-latency",
                Metric("request-p50", "us", "lower", "Half of the requests took no longer.", "median"),
                Metric("request-p99", "us", "lower", PREEMPTED, "p99"),
            ),
            *with_aspect("scheduling", Metric("requests-per-second", "1/s", "higher", about, "mean", fixed_at=rate)),
        )

    def script(self, parameters: SchbenchParameters) -> str:
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

    def seconds(self, parameters: SchbenchParameters) -> float:
        return float(parameters.time + parameters.warmup + 1)

    def parse(self, raw: Raw, parameters: SchbenchParameters) -> dict[str, float]:
        text = raw.stdout
        # One line that only the last report has; the reports before it end in "current rps".
        rate = check_positive(find_number(r"average rps: (\S+)", text, "the average requests per second"), "the rate")
        wakeup = read_section(text, "Wakeup", 999)
        request = read_section(text, "Request", 990)
        return {
            "wakeup-p50": wakeup["50.0th"], "wakeup-p99": wakeup["99.0th"], "wakeup-p99.9": wakeup["99.9th"],
            "request-p50": request["50.0th"], "request-p99": request["99.0th"], "requests-per-second": rate,
        }  # fmt: skip


def read_section(text: str, kind: str, per_mille: int) -> dict[str, float]:
    """The percentiles of the last section of that kind, the whole run's, of which the one at `per_mille` thousandths is
    the highest that counts. Raises ParseError where one is missing, or has too few samples."""
    heading = f"{kind} Latencies percentiles (usec) runtime "
    found = text.rfind(heading)
    if found < 0:
        raise ParseError(f"the output has no {kind.lower()} latencies, as schbench 1.0 prints them")
    head, _, body = text[found:].partition("\n")
    what = f"the number of {kind.lower()} samples"
    samples = find_whole(r".* runtime \d+ \(s\) \((\S+) total samples\)", f"{head}\n", what)
    check_samples(samples, per_mille, f"the {kind.lower()} latency p{per_mille / 10:g}")
    section = body.partition("percentiles (")[0]
    values = {
        name: find_number(rf"[\t *]+{name.replace('.', '[.]')}: (\S+)[^\n]*", section, f"the {kind.lower()} {name}")
        for name in PERCENTILES
    }
    check_ascending(values)
    return values


PLUGIN = Schbench()
