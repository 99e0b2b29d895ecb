"""iperf3: throughput of a TCP transfer over loopback, over a veth pair between two network namespaces, or to a peer."""

import zlib
from typing import Annotated, Literal

from msgspec import Meta, Struct, structs

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw, Service
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Number, Seconds, Threads
from kduel.benchmarks.support.reading import read_json
from kduel.benchmarks.support.service import need, on_peer, server
from kduel.core.experiment import Metric

PORT = 5209
OF_ALL_PATHS = 4
"""So many of the parameters are not of veth alone."""


class Iperf3Parameters(Parameters, frozen=True):
    """iperf3's own, and how client and server are connected."""

    path: Literal["loopback", "veth", "link"] = "loopback"
    """"veth": the server is in a network namespace of its own. All but the next three are of this path. "link": it is on the
    peer, a second machine."""
    time: Seconds = 3
    streams: Threads = 1
    reverse: bool = False
    """Whether the server sends, and this side receives."""
    qdisc: Literal["noqueue", "pfifo_fast", "fq", "fq_codel", "cake"] = "noqueue"
    """Queueing discipline of the client's end; "noqueue" is what the kernel gives a veth."""
    delay: Number = 0
    """Milliseconds that packets to the server are delayed by netem, which takes the place of a `qdisc`."""
    mtu: Annotated[int, Meta(ge=576, le=65535)] = 1500
    offload: bool = True
    """Segmentation and receive offloads (TSO, GSO, GRO) of both ends."""

    def __post_init__(self) -> None:
        others = structs.fields(self)[OF_ALL_PATHS:]
        own = [field.name for field in others if getattr(self, field.name) != field.default]
        if self.path != "veth" and own:
            raise ValueError(f'{own[0]} is of the path veth: give path = "veth", or leave it out')
        if self.delay and self.qdisc != "noqueue":
            raise ValueError("delay and qdisc exclude each other: netem is a queueing discipline itself")


class Transfer(Struct):
    """One direction's sum in iperf3's report."""

    bytes: int
    seconds: float
    retransmits: int | None = None


class End(Struct):
    sum_sent: Transfer
    sum_received: Transfer


class Report(Struct):
    """iperf3's report; `error` stands in it where the transfer failed."""

    end: End | None = None
    error: str = ""


class Iperf3(Benchmark[Iperf3Parameters]):
    """For a time: given a number of bytes, 3.12 ends before they have arrived, and 3.18 not before a whole second. The rate is the
    server's: bytes received / seconds."""

    name = "iperf3"
    summary = "Throughput of TCP over loopback, a veth pair or to a peer (iperf3): TCP, softirq, queueing, copies"
    packages = ("iperf3", "iproute2", "ethtool")
    label_template = "iperf3-{path}"
    by_clock = True
    besides = 0.5
    label_formats = {"streams": "{}streams", "time": "{}s", "delay": "delay{}ms"}
    declared_metrics = (
        *with_aspect(
            "throughput", Metric("throughput", "MB/s", "higher", "All streams.", "mean"), derived="bytes / seconds"
        ),
        Metric("retransmits", "segments", "lower", "Of the sender.", "value"),
    )

    def loaded_modules(self, parameters: Iperf3Parameters) -> tuple[str, ...]:
        if parameters.path != "veth":
            return ()
        discipline = "netem" if parameters.delay else parameters.qdisc
        return ("veth", *(() if discipline in ("noqueue", "pfifo_fast") else (f"sch_{discipline}",)))

    def service(self, parameters: Iperf3Parameters) -> Service:
        listening = f"grep -q ':{PORT:04X} .* 0A '"
        if parameters.path == "loopback":
            return server(
                "iperf3",
                f"iperf3 --server --port {PORT} --bind 127.0.0.1",
                ready=f"cat /proc/net/tcp /proc/net/tcp6 | {listening}",
                before=need(("iperf3",), self.packages),
                seconds=1.0,
            )
        if parameters.path == "link":
            return on_peer(
                server(
                    "iperf3-link",
                    f"iperf3 --server --port {PORT}",
                    ready=f"cat /proc/net/tcp /proc/net/tcp6 | {listening}",
                    before=need(("iperf3",), self.packages),
                    seconds=2.0,
                )
            )
        link = link_of(parameters)
        inside = f"ip netns exec {link.namespace}"
        service = server(
            link.name,
            f"{inside} iperf3 --server --port {PORT} --bind {link.server_address}",
            ready=f"{inside} cat /proc/net/tcp /proc/net/tcp6 | {listening}",
            before=need(("iperf3", "ip", "tc", "ethtool"), self.packages) + make_link(link, parameters),
            seconds=3.0,
        )
        return structs.replace(service, stop=f"ip netns del {link.namespace}\n")

    def script(self, parameters: Iperf3Parameters) -> str:
        p = parameters
        address = {"loopback": "127.0.0.1", "link": '"$KDUEL_PEER"'}.get(p.path) or link_of(p).server_address
        reverse = " --reverse" if p.reverse else ""
        return f"iperf3 --json --client {address} --port {PORT} --time {p.time} --parallel {p.streams}{reverse}\n"

    def parse(self, raw: Raw, parameters: Iperf3Parameters) -> dict[str, float]:
        found = read_json(raw.stdout, Report, "iperf3's report")
        if found.error or found.end is None:
            raise ParseError(f"iperf3 says: {found.error[:200]}" if found.error else "iperf3's report has no end")
        sent, received = found.end.sum_sent, found.end.sum_received
        if not 0 < received.bytes <= sent.bytes:
            raise ParseError(f"{received.bytes} bytes were received, and {sent.bytes} sent")
        # A guest that waits for its CPU takes longer: that is no reason to refuse its rate.
        if received.seconds < 0.95 * parameters.time:
            raise ParseError(f"the transfer ended after {received.seconds:g} of {parameters.time} s")
        if sent.retransmits is None:
            raise ParseError("iperf3's report names no retransmits")
        return {"throughput": received.bytes / received.seconds / 1e6, "retransmits": float(sent.retransmits)}


class Link(Struct):
    """A veth pair whose other end is in a namespace of its own. Links that differ may be there at the same time."""

    name: str
    number: int

    @property
    def namespace(self) -> str:
        return f"kduel-{self.number}"

    @property
    def server_address(self) -> str:
        return f"10.211.{self.number}.2"


def link_of(parameters: Iperf3Parameters) -> Link:
    """The link that a transfer takes."""
    name = PLUGIN.label(structs.replace(parameters, time=3, streams=1, reverse=False))
    return Link(name, zlib.crc32(name.encode()) % 256)


def make_link(link: Link, parameters: Iperf3Parameters) -> str:
    """Shell lines that make the namespace, and the pair of which one end is in it."""
    p, near, far = parameters, f"kduel{link.number}", f"kduel{link.number}p"
    inside = f"ip netns exec {link.namespace} "
    lines = [f"ip netns add {link.namespace}", f"ip link add {near} type veth peer name {far} netns {link.namespace}"]
    for place, name, address in (("", near, f"10.211.{link.number}.1"), (inside, far, link.server_address)):
        lines += [f"{place}ip addr add {address}/24 dev {name}", f"{place}ip link set {name} mtu {p.mtu} up"]
        if not p.offload:
            lines.append(f"{place}ethtool -K {name} tso off gso off gro off")
    if p.delay:
        lines.append(f"tc qdisc replace dev {near} root netem delay {p.delay}ms limit 100000")
    elif p.qdisc != "noqueue":
        lines.append(f"tc qdisc replace dev {near} root {p.qdisc}")
    return "\n".join([*lines, ""])


PLUGIN = Iperf3()
