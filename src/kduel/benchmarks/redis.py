"""redis: requests a second and their latency of an in-memory server over loopback TCP (redis-benchmark)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw, Service
from kduel.benchmarks.support.metrics import latencies, with_aspect
from kduel.benchmarks.support.parameters import Count
from kduel.benchmarks.support.reading import check_ascending, check_positive, check_samples, read_number, read_table
from kduel.benchmarks.support.service import need, server
from kduel.core.experiment import Metric

PORT = 6390
COLUMNS = (
    "test", "rps", "avg_latency_ms", "min_latency_ms", "p50_latency_ms", "p95_latency_ms", "p99_latency_ms", "max_latency_ms",
)  # fmt: skip


class RedisParameters(Parameters, frozen=True):
    """redis-benchmark's own. `pipeline` is how many requests a client sends at once: many leave little for the network."""

    test: Literal["get", "set", "incr"] = "get"
    requests: Count = 10_000
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
            f"{client} -t {p.test} -n {p.requests} -c {p.clients} -P {p.pipeline} --csv\n"
        )

    def seconds(self, parameters: RedisParameters) -> float:
        return 1.0 + parameters.requests / 4000

    def parse(self, raw: Raw, parameters: RedisParameters) -> dict[str, float]:
        rows = read_table(raw.stdout, COLUMNS, "the output of redis-benchmark (6.2 or later)")
        if len(rows) != 1 or rows[0][0] != parameters.test.upper():
            raise ParseError(f"the output is not of the test {parameters.test}")
        texts = rows[0][1:]
        found = {name: read_number(text, name) for name, text in zip(COLUMNS[1:], texts, strict=True)}
        check_samples(parameters.requests, 990, "the latency p99")
        check_ascending({name: found[name] for name in COLUMNS[3:]})
        return {
            "requests-per-second": check_positive(found["rps"], "the rate"),
            "latency-p50": check_positive(found["p50_latency_ms"], "the latency p50"),
            "latency-p99": found["p99_latency_ms"],
        }


PLUGIN = Redis()
