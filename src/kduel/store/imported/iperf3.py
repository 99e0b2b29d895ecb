"""iperf3 --json: a trial is one call, so that calls are appended to one file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from kduel.core.errors import InputError
from kduel.store.imported.support.foreign import (
    ForeignFormat,
    ForeignRow,
    file_stem,
    json_documents,
    json_number,
    location_text,
)


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


class Start(Struct):
    """The beginning of the report."""

    test_start: Transfer | None = None


class End(Struct):
    """Its end: `sum` is UDP's."""

    sum_sent: Sum | None = None
    sum_received: Sum | None = None
    sum: Sum | None = None


class Report(Struct):
    """One call; `error` stands in it where the transfer failed."""

    start: Start
    end: End
    error: str = ""


class Iperf3(ForeignFormat):
    """iperf3 from version 3.1 on."""

    name = "iperf3"
    summary = "iperf3 --json (>>FILE), a trial being one call"
    calls = True

    def recognises(self, head: str) -> bool:
        return bool(re.match(r'\s*\{\s*"start"\s*:\s*\{\s*"connected"', head)) and '"iperf 3' in head

    def contender_of(self, path: Path, given: str | None, alone: bool) -> str | None:
        return given or file_stem(path)

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        trials: dict[str, int] = {}
        for call, report in enumerate(json_documents(path, Report, "iperf3 --json"), 1):
            place, asked = f"call {call}", report.start.test_start
            received = report.end.sum_received or report.end.sum
            if report.error or asked is None or received is None:
                raise InputError(
                    f"{location_text(path, place)}: {report.error[:120] or 'it has no result'}",
                    "Remove this call from the file, and repeat it.",
                )
            way = " reverse" if asked.reverse else ""
            name = f"{asked.protocol} {asked.num_streams} stream{'s' * (asked.num_streams != 1)}{way}"
            trials[name] = trials.get(name, 0) + 1
            sent = report.end.sum_sent
            throughput: float | None = received.bits_per_second
            if report.end.sum_received is None and asked.protocol.upper() == "UDP":
                # Before 3.11 the one sum of UDP is what was sent.
                lost = received.lost_percent
                throughput = None if lost is None else received.bits_per_second * (1 - lost / 100)
                note = (
                    f"{name}: iperf3 before 3.11 reports what was sent; the throughput is that, less the share lost"
                    if lost is not None
                    else f"{name}: throughput, as iperf3 before 3.11 reports what was sent, and not what was lost"
                )
                if note not in skipped:
                    skipped.append(note)
            figures = (
                ("throughput", "bit/s", "higher", throughput, "throughput"),
                ("retransmits", "segments", "lower", sent.retransmits if sent else None, ""),
                ("jitter", "ms", "lower", received.jitter_ms, ""),
                ("lost", "%", "lower", received.lost_percent, ""),
            )
            for metric, unit, better, value, aspect in figures:
                if value is not None:
                    yield ForeignRow(
                        str(contender), trials[name], name, metric, unit, better,  # type: ignore[arg-type]
                        json_number(path, place, metric, value), place,
                        "mean" if metric == "throughput" else "value", least=0.0, aspect=aspect or None,  # type: ignore[arg-type]
                    )  # fmt: skip


PLUGIN = Iperf3()
