"""Output of netperf: a trial is one call, so that calls are appended to one file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, check_complete, text_lines
from kduel.store.imported.values_csv import number

BEGIN = re.compile(r"(?:MIGRATED )?((?:TCP|UDP|SCTP)\S*) (\S.*?) TEST from .*")
RESPONSES = re.compile(r"(?:\d+ +){4}[0-9.]+ +([0-9.]+)\s*")
STREAM = re.compile(r"(?: *\d+){3} +[0-9.]+ +([0-9.]+)\s*")
RECEIVED = re.compile(r" *\d+ {6,}[0-9.]+ +\d+ +([0-9.]+)\s*")
"""The line of the receiver, of a UDP stream."""


class Netperf(ForeignFormat):
    """netperf 2.7's tables: TCP_RR, TCP_CRR, UDP_RR, TCP_STREAM, UDP_STREAM and the like."""

    name = "netperf"
    summary = "what netperf prints (>>FILE), a trial being one call"

    def recognises(self, head: str) -> bool:
        return bool(BEGIN.match(head)) and " port 0 AF_INET" in head.partition("\n")[0]

    def contender_of(self, path: Path, given: str | None, alone: bool) -> str | None:
        return given or path.stem

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        trials: dict[str, int] = {}
        test, value = "", RESPONSES
        complete = True
        for line, text in text_lines(path):
            if found := BEGIN.fullmatch(text):
                check_complete(path, line, complete, "its numbers")
                test, complete = f"{found[1]} {found[2].lower()}", False
                trials[test] = trials.get(test, 0) + 1
                value = RESPONSES if "response" in test else RECEIVED if test.startswith("UDP") else STREAM
            elif not complete and (found := value.fullmatch(text)):
                complete = True
                metric, unit = ("transactions-per-second", "1/s") if value is RESPONSES else ("throughput", "Mbit/s")
                yield ForeignRow(
                    str(contender), trials[test], test, metric, unit, "higher", number(path, line, found[1]), line,
                    "mean", least=0.0, aspect="throughput",
                )  # fmt: skip
        check_complete(path, "its end", complete, "its numbers")


PLUGIN = Netperf()
