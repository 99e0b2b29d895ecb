"""Output of netperf 2.7 (TCP_RR, TCP_CRR, UDP_RR, TCP_STREAM, UDP_STREAM, ...): a trial is one call, appended."""

import re
from collections.abc import Iterator
from pathlib import Path

from kduel.core.errors import InputError
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, check_complete, location_text, text_lines
from kduel.store.imported.values_csv import number

BEGIN = re.compile(r"(?:MIGRATED )?((?:TCP|UDP|SCTP)\S*) (\S.*?) TEST from .*")
LOAD = r"(?: +-?[0-9.]+){4}"
"""Load of the CPUs and demand for them, on both sides, which -c and -C add."""
RESPONSES = re.compile(rf"((?:\d+ +){{4}})[0-9.]+ +([0-9.]+)(?:{LOAD})?\s*")
STREAM = re.compile(rf"((?: *\d+){{3}}) +[0-9.]+ +([0-9.]+)(?:{LOAD})?\s*")
UNIT = re.compile(r".* (10\^[369]bits|[KMG]Bytes)/s(?:ec)?\b.*")
MEGABITS = {
    "10^3bits": 1e-3, "10^6bits": 1.0, "10^9bits": 1e3,
    "KBytes": 8 * 2**10 / 1e6, "MBytes": 8 * 2**20 / 1e6, "GBytes": 8 * 2**30 / 1e6,
}  # fmt: skip
"""In one of the units that netperf's option -f chooses."""
RECEIVED = re.compile(r"( *\d+) {6,}[0-9.]+ +\d+ +([0-9.]+)(?: +-?[0-9.]+ +-?[0-9.]+)?\s*")
"""The line of the receiver, of a UDP stream, with its own load and demand."""
SENT = re.compile(r"( *\d+ +\d+) +[0-9.]+ +\d+ +\d+ +[0-9.]+(?: .*)?")
"""That of its sender."""


class Netperf(ForeignFormat):
    name = "netperf"
    summary = "what netperf prints (>>FILE), a trial being one call"
    calls = True

    def recognises(self, head: str) -> bool:
        return bool(BEGIN.match(head)) and " port 0 AF_INET" in head.partition("\n")[0]

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        trials: dict[str, int] = {}
        test, value, megabits, sizes = "", RESPONSES, 0.0, ""
        complete = True
        for line, text in text_lines(path):
            if found := BEGIN.fullmatch(text):
                check_complete(path, line, complete, "its numbers")
                test, complete, megabits, sizes = f"{found[1]} {found[2].lower()}", False, 0.0, ""
                trials[test] = trials.get(test, 0) + 1
                value = RESPONSES if "response" in test else RECEIVED if test.startswith("UDP") else STREAM
            elif not complete and (found := UNIT.fullmatch(text)):
                megabits = MEGABITS[found[1]]
            elif not complete and value is RECEIVED and (found := SENT.fullmatch(text)):
                sizes = found[1]
            elif not complete and (found := value.fullmatch(text)):
                complete = True
                figure = number(path, line, found[2])
                metric, unit = ("transactions-per-second", "1/s") if value is RESPONSES else ("throughput", "Mbit/s")
                if value is not RESPONSES:
                    if not megabits:
                        raise InputError(
                            f"{location_text(path, line)}: the heading above it names no unit of the throughput",
                            "Keep netperf's heading, which ends in a unit such as 10^6bits/sec.",
                        )
                    figure *= megabits
                yield ForeignRow(
                    str(contender), trials[test], test, metric, unit, "higher", figure, line, "mean", least=0.0,
                    aspect="throughput", settings=(("message sizes in bytes", message_sizes(sizes or found[1], value is RESPONSES)),),
                )  # fmt: skip
        check_complete(path, "its end", complete, "its numbers")


def message_sizes(sizes: str, responses: bool) -> str:
    """The sizes of requests and responses, or of messages, from a line's sizes. Those of sockets, which come before, are the kernel's
    own unless options set them, which netperf does not say; a stream's messages are as large as its socket unless one is given."""
    *sockets, message = sizes.split()
    if responses:
        return f"{sockets.pop()} {message}"
    return "that of the socket" if message in sockets else message


PLUGIN = Netperf()
