"""nginx: requests a second and their latency of a web server, by ab over loopback or on a peer."""

from typing import Annotated, Literal

from msgspec import Meta

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw, Service
from kduel.benchmarks.support import reading
from kduel.benchmarks.support.metrics import latencies, with_aspect
from kduel.benchmarks.support.parameters import Requests, Threads
from kduel.benchmarks.support.service import need, port_of, run_on_peer, server
from kduel.core.experiment import Metric

PORT = 8390
CONFIGURATION = """daemon off;
user root;
worker_processes {workers};
error_log stderr;
pid nginx.pid;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    sendfile on;
    keepalive_requests 1000000000;
    server {{ listen {address}:{port} backlog=4096; root www; }}
}}
"""
PERCENTILES = "percentiles.csv"


class NginxParameters(Parameters, frozen=True):
    """ab's own; `size` and `workers` are the server's."""

    connections: Literal["keep-alive", "new"] = "keep-alive"
    """Whether a client keeps its connection, or opens one for each request."""
    requests: Requests = 6000
    clients: Annotated[int, Meta(ge=1, le=2000)] = 10
    size: Annotated[int, Meta(ge=1, le=1 << 30)] = 1024
    """Bytes of the file that is requested."""
    workers: Threads = 1
    path: Literal["loopback", "link"] = "loopback"
    """"link": ab runs on the peer, a second machine."""


def name_server(parameters: NginxParameters) -> str:
    """The server's name: steps with the same one share it."""
    p = parameters
    return f"nginx-{p.workers}w-{p.size}b" + ("-link" if p.path == "link" else "")


def find_port(parameters: NginxParameters) -> int:
    return port_of(name_server(parameters), name_server(NginxParameters()), PORT)


class Nginx(Benchmark[NginxParameters]):
    name = "nginx"
    summary = "Requests a second and latency of nginx, over loopback or from a peer (ab), on kept or new connections: TCP, accept, epoll, sendfile"
    packages = ("nginx-light", "apache2-utils")
    label_template = "nginx-{connections}"
    label_formats = {"requests": "{}x", "clients": "{}c", "size": "{}b", "workers": "{}w", "path": "{}"}
    declared_metrics = (
        *with_aspect("throughput", Metric("requests-per-second", "1/s", "higher", "All clients together.", "mean")),
        *latencies("ms", "requests", "p50", "p99"),
    )

    def service(self, parameters: NginxParameters) -> Service:
        p = parameters
        linked, port = p.path == "link", find_port(p)
        configuration = CONFIGURATION.format(workers=p.workers, port=port, address="*" if linked else "127.0.0.1")
        return server(
            name_server(p),
            'nginx -p "$PWD" -c "$PWD/nginx.conf" -e stderr',
            ready=f"ab -q -n 1 http://127.0.0.1:{port}/file",
            before=need(("nginx", "ab"), self.packages)
            + f"cat >nginx.conf <<'EOF'\n{configuration}EOF\n"
            + f"mkdir www; head -c {p.size} /dev/zero | tr '\\0' x >www/file\n",
        )

    def script(self, parameters: NginxParameters) -> str:
        p = parameters
        kept = "-k " if p.connections == "keep-alive" else ""
        linked = p.path == "link"
        url = f"http://{'$KDUEL_ADDRESS' if linked else '127.0.0.1'}:{find_port(p)}/file"
        where = f"/tmp/{PERCENTILES}" if linked else f'"$KDUEL_STEP/{PERCENTILES}"'
        lines = (
            f"ab -q {kept}-n 200 -c 2 {url} >/dev/null\nab -q {kept}-n {p.requests} -c {p.clients} -e {where} {url}\n"
        )
        if not linked:
            return lines
        fetch = f'echo cat {where} | peer >"$KDUEL_STEP/{PERCENTILES}"\n'
        return run_on_peer(lines) + fetch

    def seconds(self, parameters: NginxParameters) -> float:
        return 1.0 + parameters.requests / (2500 if parameters.connections == "keep-alive" else 500)

    def parse(self, raw: Raw, parameters: NginxParameters) -> dict[str, float]:
        p = parameters
        reading.expect(r"Concurrency Level: +(\S+)", raw.stdout, "the number of clients", p.clients)
        reading.expect(r"Complete requests: +(\S+)", raw.stdout, "the number of complete requests", p.requests)
        reading.expect(r"Failed requests: +(\S+)", raw.stdout, "the number of failed requests", 0)
        reading.expect(r"Document Length: +(\S+) bytes", raw.stdout, "the file's size", p.size)
        if "Non-2xx responses:" in raw.stdout:
            raise ParseError("the server answered with errors")
        if p.connections == "keep-alive":
            reading.expect(
                r"Keep-Alive requests: +(\S+)", raw.stdout, "the number of kept connections' requests", p.requests
            )
        rate = reading.find_number(r"Requests per second: +(\S+) \[#/sec\] \(mean\)", raw.stdout, "the rate")
        reading.check_samples(p.requests, 990, "the latency p99")
        rows = reading.read_table(
            reading.read_file(raw, PERCENTILES), ("Percentage served", "Time in ms"), PERCENTILES
        )
        if [row[0] for row in rows] != [str(percentile) for percentile in range(101)]:
            raise ParseError(f"{PERCENTILES} does not have the percentiles 0 to 100")
        times = {f"the percentile {row[0]}": reading.read_number(row[1], f"the percentile {row[0]}") for row in rows}
        reading.check_ascending(times)
        values = list(times.values())
        return {
            "requests-per-second": reading.check_positive(rate, "the rate"),
            "latency-p50": reading.check_positive(values[50], "the latency p50"),
            "latency-p99": values[99],
        }


PLUGIN = Nginx()
