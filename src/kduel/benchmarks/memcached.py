"""memcached: requests a second and their latency of an in-memory cache, over loopback or from a peer (memcaslap)."""

from typing import Annotated, Literal

from msgspec import Meta

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw, Service
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Requests, Threads
from kduel.benchmarks.support.reading import check_positive, expect, find_number
from kduel.benchmarks.support.service import need, port_of, run_on_peer, server
from kduel.core.experiment import Metric

PORT = 11390
USUAL = "memcached-4t"


class MemcachedParameters(Parameters, frozen=True):
    """memcaslap's own, but fewer clients; `requests` are each client's, nine of ten are GET, one SET. `threads` are the server's."""

    requests: Requests = 500
    clients: Annotated[int, Meta(ge=1, le=1000)] = 20
    size: Annotated[int, Meta(ge=1, le=100_000)] = 64
    """Bytes of a value."""
    threads: Threads = 4
    path: Literal["loopback", "link"] = "loopback"
    """"link": memcaslap runs on the peer, a second machine."""


class MemcachedBenchmark(Benchmark[MemcachedParameters]):
    """All clients are one thread of memcaslap, which waits by epoll; each has a connection and keys of its own."""

    name = "memcached"
    summary = "Requests a second and latency of memcached, over loopback or from a peer (memcaslap): TCP, epoll, threads, wake-ups"
    packages = ("memcached", "libmemcached-tools")
    label_formats = {"requests": "{}x", "clients": "{}c", "size": "{}b", "threads": "{}t", "path": "{}"}
    declared_metrics = (
        *with_aspect("throughput", Metric("requests-per-second", "1/s", "higher", "All clients together.", "mean")),
        *with_aspect(
            "request-latency",
            Metric("latency-geometric-mean", "us", "lower", "Time of a request, as the mean of logarithms.", "mean"),
        ),
    )

    def service(self, parameters: MemcachedParameters) -> Service:
        p = parameters
        linked, port = p.path == "link", find_port(p)
        return server(
            name_server(p),
            f"memcached -u root -l {'0.0.0.0' if linked else '127.0.0.1'} -p {port} -U 0 -t {p.threads} -m 256 -c 2048",
            ready=f"memcping --servers=127.0.0.1:{port}",
            before=need(("memcached", "memcping", "memcaslap"), self.packages),
        )

    def script(self, parameters: MemcachedParameters) -> str:
        p = parameters
        linked = p.path == "link"
        client = f"memcaslap -s {'$KDUEL_ADDRESS' if linked else '127.0.0.1'}:{find_port(p)} -T 1 -c {p.clients} -X {p.size}"
        # Latencies are printed with a period of reports alone; none falls into the step.
        lines = f"{client} -x {20 * p.clients} >/dev/null\n{client} -x {p.requests * p.clients} -S 1d\n"
        return run_on_peer(lines) if linked else lines

    def seconds(self, parameters: MemcachedParameters) -> float:
        return 1.0 + parameters.requests * parameters.clients / 4000

    def parse(self, raw: Raw, parameters: MemcachedParameters) -> dict[str, float]:
        p, text = parameters, raw.stdout
        total = p.requests * p.clients
        expect(r"concurrency: (\S+)", text, "the number of clients", p.clients)
        expect(r"Total Statistics \((\S+) events\)", text, "the number of requests", total)
        if missed := find_number(r"get_misses: (\S+)", text, "the number of values that were gone"):
            raise ParseError(f"the server had dropped {missed:g} values: give fewer clients or a smaller size")
        end = r"Run time: \S+s Ops: {} TPS: {} Net_rate: \S+M/s"
        expect(end.format(r"(\S+)", r"\S+"), text, "the number of requests at the end", total)
        # The same lines stand there for GET and SET alone.
        latency = find_number(r" +Geo: +(\S+)", text.partition("\nTotal Statistics ")[2], "the latency")
        rate = find_number(end.format(r"\S+", r"(\S+)"), text, "the rate")
        return {
            "requests-per-second": check_positive(rate, "the rate"),
            "latency-geometric-mean": check_positive(latency, "the latency"),
        }


def name_server(parameters: MemcachedParameters) -> str:
    """The server's name: steps with the same one share it."""
    return f"memcached-{parameters.threads}t" + ("-link" if parameters.path == "link" else "")


def find_port(parameters: MemcachedParameters) -> int:
    return port_of(name_server(parameters), USUAL, PORT)


PLUGIN = MemcachedBenchmark()
