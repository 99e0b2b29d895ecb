"""iperf3 --json from version 3.1 on: a trial is one call, so that calls are appended to one file."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from kduel.core.errors import InputError
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, json_documents, json_number, location_text


class Sum(Struct):
    """A direction's sum; jitter and losses are of UDP, retransmits of TCP's sender."""

    bits_per_second: float
    retransmits: int | None = None
    jitter_ms: float | None = None
    lost_percent: float | None = None


class Transfer(Struct):
    """Protocol, streams and direction that were asked for."""

    protocol: str
    num_streams: int
    reverse: int = 0
    blksize: int = 0
    duration: int = 0
    target_bitrate: int = 0


class Start(Struct):
    test_start: Transfer | None = None


class End(Struct):
    """Its end: `sum` is UDP's; those of the second direction are there with --bidir."""

    sum_sent: Sum | None = None
    sum_received: Sum | None = None
    sum: Sum | None = None
    sum_sent_bidir_reverse: Sum | None = None
    sum_received_bidir_reverse: Sum | None = None
    sum_bidir_reverse: Sum | None = None

    def directions(self) -> dict[str, tuple[Sum | None, Sum | None, Sum | None]]:
        """Sums of what was sent and received, and UDP's own, by the addition to the benchmark's name."""
        second = self.sum_sent_bidir_reverse, self.sum_received_bidir_reverse, self.sum_bidir_reverse
        first = self.sum_sent, self.sum_received, self.sum
        return {" bidir": first, " bidir reverse": second} if any(second) else {"": first}


class Report(Struct):
    """One call; `error` stands in it where the transfer failed."""

    start: Start
    end: End
    error: str = ""


class Iperf3(ForeignFormat):
    name = "iperf3"
    summary = "iperf3 --json (>>FILE), a trial being one call"
    calls = True
    begins = r'\s*\{\s*"start"\s*:\s*\{\s*"connected"'
    holds = ('"iperf 3',)

    def check(self, path: Path, contender: str | None) -> None:
        for call, report in enumerate(json_documents(path, Report, "iperf3 --json"), 1):
            asked = report.start.test_start
            for _, received, _ in report.end.directions().values():
                if asked and received and not received.bits_per_second and asked.protocol.upper() != "UDP":
                    raise InputError(
                        f"{location_text(path, f'call {call}')}: nothing arrived, or this is the report of a server that sent",
                        "Give the client's report, or remove this call from the file.",
                    )

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        trials: dict[str, int] = {}
        for call, report in enumerate(json_documents(path, Report, "iperf3 --json"), 1):
            place, asked = f"call {call}", report.start.test_start
            for direction, (sent, received, udp) in report.end.directions().items():
                total = received or udp
                if report.error or asked is None or total is None:
                    raise InputError(
                        f"{location_text(path, place)}: {report.error[:120] or 'it has no result'}",
                        "Remove this call from the file, and repeat it.",
                    )
                way = direction or " reverse" * bool(asked.reverse)
                name = f"{asked.protocol} {asked.num_streams} stream{'s' * (asked.num_streams != 1)}{way}"
                trials[name] = trials.get(name, 0) + 1
                throughput: float | None = total.bits_per_second
                if received is None and asked.protocol.upper() == "UDP":
                    # Before 3.11 the one sum of UDP is what was sent.
                    lost = total.lost_percent
                    throughput = None if lost is None else total.bits_per_second * (1 - lost / 100)
                    note = (
                        f"{name}: iperf3 before 3.11 reports what was sent; the throughput is that, less the share lost"
                        if lost is not None
                        else f"{name}: throughput, as iperf3 before 3.11 reports what was sent, and not what was lost"
                    )
                    if note not in skipped:
                        skipped.append(note)
                settings = tuple((key, str(getattr(asked, key))) for key in ("blksize", "duration", "target_bitrate"))
                figures = (
                    ("throughput", "bit/s", "higher", throughput, "throughput"),
                    ("retransmits", "segments", "lower", sent.retransmits if sent else None, ""),
                    ("jitter", "ms", "lower", total.jitter_ms, ""),
                    ("lost", "%", "lower", total.lost_percent, ""),
                )
                for metric, unit, better, value, aspect in figures:
                    if value is not None:
                        yield ForeignRow(
                            str(contender), trials[name], name, metric, unit, better,  # type: ignore[arg-type]
                            json_number(path, place, metric, value), place,
                            "mean" if metric == "throughput" else "value", least=0.0, aspect=aspect or None,  # type: ignore[arg-type]
                            settings=settings,
                        )  # fmt: skip


PLUGIN = Iperf3()
