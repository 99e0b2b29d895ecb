"""netperf: transactions a second of one request and one response at a time, over loopback or to a peer."""

from typing import Literal

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw, Service
from kduel.benchmarks.support.metrics import latencies, with_aspect
from kduel.benchmarks.support.parameters import Requests
from kduel.benchmarks.support.reading import check_ascending, check_positive, check_samples, expect, find_number
from kduel.benchmarks.support.service import need, on_peer, server
from kduel.core.experiment import Metric

PORT = 12865
ADDRESS = "ip -4 address show scope global | grep -q inet || ip address add 192.0.2.1/32 dev lo\n"
"""A machine without any network gets an address: netperf finds none otherwise, not even the loopback's."""
KEYS = "PROTOCOL,DIRECTION,ELAPSED_TIME,THROUGHPUT,THROUGHPUT_UNITS,MIN_LATENCY,P50_LATENCY,P99_LATENCY,MAX_LATENCY"
HALF_A_DIGIT = 0.0051
"""Seconds by which the time is rounded."""
DIRECTIONS = {"tcp_rr": "Send|Recv", "udp_rr": "Send|Recv", "tcp_crr": "Connect|Send|Recv"}
"""What netperf calls the tests."""
RATES = {
    "loopback": {"tcp_rr": 5000.0, "udp_rr": 6000.0, "tcp_crr": 900.0},
    "link": {"tcp_rr": 500.0, "udp_rr": 600.0, "tcp_crr": 200.0},
}
"""Transactions a second in an emulator, about."""


class NetperfParameters(Parameters, frozen=True):
    """netperf's own; requests and responses are of one byte, which is its default."""

    test: Literal["tcp_rr", "tcp_crr", "udp_rr"] = "tcp_rr"
    """"tcp_crr": each transaction opens and closes a connection of its own."""
    path: Literal["loopback", "link"] = "loopback"
    """"link": the server is on the peer, a second machine."""
    transactions: Requests = 5000


class Netperf(Benchmark[NetperfParameters]):
    """A fixed number of transactions, one at a time. Its percentiles come from a histogram with steps of about 1 %."""

    name = "netperf"
    summary = "Request and response, one at a time, over loopback or to a peer (netperf TCP_RR, TCP_CRR, UDP_RR): TCP, UDP, wake-ups"
    packages = ("netperf", "iproute2")
    label_template = "netperf-{test}-{path}"
    label_formats = {"transactions": "{}x"}
    declared_metrics = (
        *with_aspect("throughput", Metric("transactions-per-second", "1/s", "higher", "One at a time.", "mean")),
        *latencies("us", "transactions", "p50", "p99"),
    )

    def service(self, parameters: NetperfParameters) -> Service:
        there = parameters.path == "link"
        started = server(
            f"netperf-{parameters.path}",
            f"netserver -D -4 -p {PORT}",
            ready=f"cat /proc/net/tcp | grep -q ':{PORT:04X} .* 0A '",
            before=need(("netserver",), self.packages) + ("" if there else ADDRESS),
            seconds=1.0,
        )
        return on_peer(started) if there else started

    def script(self, parameters: NetperfParameters) -> str:
        p = parameters
        address = '"$KDUEL_PEER"' if p.path == "link" else "127.0.0.1"
        # netperf counts transactions where its time is negative.
        options = f"-4 -P 0 -j -p {PORT} -t {p.test.upper()} -l -{p.transactions}"
        return f"{need(('netperf',), self.packages)}netperf -H {address} {options} -- -k {KEYS}\n"

    def seconds(self, parameters: NetperfParameters) -> float:
        return 0.5 + parameters.transactions / RATES[parameters.path][parameters.test]

    def parse(self, raw: Raw, parameters: NetperfParameters) -> dict[str, float]:
        p, text = parameters, raw.stdout
        expect(r"PROTOCOL=(\S+)", text, "the protocol", p.test.upper()[:3])
        expect(r"THROUGHPUT_UNITS=(\S+)", text, "the unit", "Trans/s")
        expect(r"DIRECTION=(\S+)", text, "the direction", DIRECTIONS[p.test])
        rate = check_positive(find_number(r"THROUGHPUT=(\S+)", text, "the rate"), "the rate")
        seconds = check_positive(find_number(r"ELAPSED_TIME=(\S+)", text, "the time"), "the time")
        if abs(rate * seconds - p.transactions) > rate * HALF_A_DIGIT + 0.01 * p.transactions:
            raise ParseError(f"{rate:g} transactions a second in {seconds:g} s are not {p.transactions}")
        check_samples(p.transactions, 990, "the latency p99")
        names = ("MIN", "P50", "P99", "MAX")
        times = {
            f"{name}_LATENCY": find_number(rf"{name}_LATENCY=(\S+)", text, f"the latency {name}") for name in names
        }
        # Percentiles are drawn within a bucket of netperf's histogram, a tenth of its decade, and may pass the largest time by it.
        check_ascending(times, 0.02 + times["MAX_LATENCY"] / 10)
        return {
            "transactions-per-second": rate,
            "latency-p50": check_positive(times["P50_LATENCY"], "the latency p50"),
            "latency-p99": check_positive(times["P99_LATENCY"], "the latency p99"),
        }


PLUGIN = Netperf()
