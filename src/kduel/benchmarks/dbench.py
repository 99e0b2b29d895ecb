"""dbench: throughput of a file server's load, on its file system (dbench) or on its network side (tbench)."""

from typing import Literal

from kduel.benchmarks import Benchmark, Parameters, Raw, Service
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Seconds, Threads
from kduel.benchmarks.support.reading import check_positive, expect, find_number
from kduel.benchmarks.support.service import need, server
from kduel.core.experiment import Metric

LOAD = "/usr/share/dbench/client.txt"


class DbenchParameters(Parameters, frozen=True):
    """dbench's own. `sync`: every write with O_SYNC."""

    program: Literal["dbench", "tbench"] = "dbench"
    clients: Threads = 2
    time: Seconds = 3
    sync: bool = False


class Dbench(Benchmark[DbenchParameters]):
    """Both play the calls that a Windows client sent to a file server, for a time: it knows no fixed amount of work."""

    name = "dbench"
    summary = "Throughput of a file server's load: on a file system (dbench: open, unlink, read, write, fsync), or over loopback TCP (tbench)"
    packages = ("dbench",)
    label_template = "{program}"
    label_formats = {"clients": "{}c", "time": "{}s"}
    needs_scratch = True
    besides = 1.5
    declared_metrics = (
        *with_aspect("throughput", Metric("throughput", "MB/s", "higher", "Of all clients.", "mean")),
        *with_aspect("request-latency", Metric("latency-max", "ms", "lower", "The slowest operation of all.", "max")),
    )

    def service(self, parameters: DbenchParameters) -> Service | None:
        if parameters.program == "dbench":
            return None
        started = need(("tbench_srv",), self.packages)
        return server(
            "tbench",
            "tbench_srv",
            ready="cat /proc/net/tcp /proc/net/tcp6 | grep -q ':1B5B .* 0A '",
            before=started,
            seconds=1.0,
        )

    def script(self, parameters: DbenchParameters) -> str:
        p = parameters
        where = '-D "$KDUEL_SCRATCH"' if p.program == "dbench" else "127.0.0.1"
        client = f"{p.program} -c {LOAD} -t {p.time}{' -s' if p.sync else ''}"
        return f"{need((p.program,), self.packages)}{client} {p.clients} {where}\n"

    def parse(self, raw: Raw, parameters: DbenchParameters) -> dict[str, float]:
        p, text = parameters, raw.stdout
        expect(r"Running for (\S+) seconds with load .*", text, "the time", p.time)
        sync = r" \(sync open\)" if p.sync else ""
        line = rf"Throughput {{}} MB/sec{sync}  {p.clients} clients  {p.clients} procs  max_latency={{}} ms"
        return {
            "throughput": check_positive(
                find_number(line.format(r"(\S+)", r"\S+"), text, "the throughput"), "the throughput"
            ),
            "latency-max": find_number(line.format(r"\S+", r"(\S+)"), text, "the longest latency"),
        }


PLUGIN = Dbench()
