"""redis: requests a second and their latency of an in-memory server over loopback TCP (redis-benchmark)."""

import math
import re
from typing import Annotated, Literal

from msgspec import Meta

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw, Service
from kduel.benchmarks.support import reading
from kduel.benchmarks.support.metrics import latencies, with_aspect
from kduel.benchmarks.support.parameters import Requests
from kduel.benchmarks.support.service import need, server
from kduel.core.experiment import Metric
from kduel.core.samples import Details, Distribution

PORT = 6390
COLUMNS = ["avg", "min", "p50", "p95", "p99", "max"]
"""Of the summary; milliseconds."""
ROW = re.compile(r"[0-9.]+% <= ([0-9]+\.[0-9]{3}) milliseconds \(cumulative count ([0-9]+)\)")
"""Of the two tables of latencies: by percentiles, ever finer towards the longest, and by steps of about 0.1 ms."""


class RedisParameters(Parameters, frozen=True):
    """redis-benchmark's own. `pipeline` is how many requests a client sends at once: many leave little for the network."""

    test: Literal["get", "set", "incr"] = "get"
    requests: Requests = 10_000
    clients: Annotated[int, Meta(ge=1, le=10_000)] = 20
    pipeline: Annotated[int, Meta(ge=1, le=10_000)] = 1
    size: Annotated[int, Meta(ge=1, le=1 << 20)] = 64
    """Bytes of a value."""


class Redis(Benchmark[RedisParameters]):
    """The server keeps nothing on disk. All requests are for one key: keys make no difference to the kernel."""

    name = "redis"
    summary = (
        "Requests a second and latency of Redis, over loopback (redis-benchmark): TCP, epoll, wake-ups, system calls"
    )
    packages = ("redis-server", "redis-tools")
    distributions = ("latency",)
    label_template = "redis-{test}"
    label_formats = {"requests": "{}x", "clients": "{}c", "pipeline": "pipeline{}", "size": "{}b"}
    declared_metrics = (
        *with_aspect("throughput", Metric("requests-per-second", "1/s", "higher", "All clients together.", "mean")),
        *latencies("ms", "requests", "p50", "p99"),
    )

    def service(self, parameters: RedisParameters) -> Service:
        return server(
            "redis",
            f"redis-server --port {PORT} --bind 127.0.0.1 --save '' --appendonly no --daemonize no",
            ready=f"redis-cli -p {PORT} ping",
            before=need(("redis-server", "redis-cli", "redis-benchmark"), self.packages),
        )

    def script(self, parameters: RedisParameters) -> str:
        p = parameters
        client = f"redis-benchmark -p {PORT} -d {p.size}"
        return (
            f"{client} -t set -n 500 -c 2 -q >/dev/null\n"
            f"{client} -t {p.test} -n {p.requests} -c {p.clients} -P {p.pipeline}\n"
        )

    def seconds(self, parameters: RedisParameters) -> float:
        return 1.0 + parameters.requests / 4000

    def parse(self, raw: Raw, parameters: RedisParameters) -> dict[str, float]:
        latencies = read_latencies(raw.stdout, parameters)
        rate = reading.find_number(r" *throughput summary: (\S+) requests per second", raw.stdout, "the rate")
        rows = [line.split() for line in reading.split_lines(raw.stdout, "stdout")]
        place = rows.index(COLUMNS) + 1 if rows.count(COLUMNS) == 1 else len(rows)
        figures = next(iter(rows[place:]), [])
        if rows[place + 1 :] != [[]] or len(figures) != len(COLUMNS):
            raise ParseError("stdout does not end in the summary of latencies of redis-benchmark (6.2 or later)")
        found = {name: reading.read_number(text, name) for name, text in zip(COLUMNS, figures, strict=True)}
        reading.check_samples(parameters.requests, 990, "the latency p99")
        reading.check_ascending({name: found[name] for name in COLUMNS[1:]})
        for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
            below = max((count for value, count in latencies.items() if value < found[name]), default=0)
            reached = min((count for value, count in latencies.items() if value >= found[name]), default=0)
            if not below <= share * parameters.requests <= reached:
                raise ParseError(f"the latency {name} is {found[name]}, and the tables have it elsewhere")
        return {
            "requests-per-second": reading.check_positive(rate, "the rate"),
            "latency-p50": reading.check_positive(found["p50"], "the latency p50"),
            "latency-p99": found["p99"],
        }

    def details(self, raw: Raw, parameters: RedisParameters) -> Details:
        latencies = read_latencies(raw.stdout, parameters)
        values, reached = list(latencies), list(latencies.values())
        counts = [count - before for before, count in zip([0, *reached], reached, strict=False)]
        floors = [0.0, *(math.nextafter(value, math.inf) for value in values[:-1])]
        kept = [one for one in zip(values, counts, floors, strict=True) if one[1]]
        return Details(
            distributions={
                "latency-p99": Distribution(
                    unit="ms",
                    values=[value for value, _, _ in kept],
                    counts=[count for _, count, _ in kept],
                    largest=kept[-1][0],
                    floors=[floor for _, _, floor in kept],
                )
            }
        )


def read_latencies(text: str, parameters: RedisParameters) -> dict[float, int]:
    """By milliseconds in rising order: how many requests took no longer. Raises ParseError for contradictions."""
    reading.expect(r"(?:.*\r)?====== (\S+) ======", text, "the test", parameters.test.upper())
    reading.expect(
        r" *([0-9]+) requests completed in \S+ seconds", text, "the number of requests", parameters.requests
    )
    rows = [found.groups() for line in reading.split_lines(text, "stdout") if (found := ROW.fullmatch(line))]
    points = sorted(
        {(reading.read_number(value, "a latency"), reading.read_whole(count, "a count")) for value, count in rows}
    )
    counts = [count for _, count in points]
    if len(dict(points)) != len(points) or counts != sorted(counts) or counts[-1:] != [parameters.requests]:
        raise ParseError(f"the tables of latencies do not count {parameters.requests} requests in rising order")
    return dict(points)


PLUGIN = Redis()
