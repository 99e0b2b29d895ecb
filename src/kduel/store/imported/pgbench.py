"""Output of pgbench 10 and later: a trial is one call, so that calls are appended to one file."""

import re
from collections.abc import Iterator
from pathlib import Path

from kduel.core.errors import InputError
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, check_complete, location_text, text_lines
from kduel.store.imported.values_csv import number

TYPE = re.compile(r"transaction type: (?:<builtin: )?(.+?)>?")
SETTING = re.compile(
    r"(scaling factor|query mode|number of clients|number of threads|number of transactions per client|duration|maximum number of tries"
    r"|partition method|partitions): (.+)"
)
PROCESSED = re.compile(r"number of transactions actually processed: (\d+)(?:/(\d+))?")
FAILED = re.compile(r"number of failed transactions: (\d{1,20}) .*")
LATENCY = re.compile(r"latency average = (\S+) ms")
RATE = re.compile(
    r"tps = (\S+) \((?:without initial connection time|excluding connections establishing|including reconnection times)\)"
)


ABORTED = re.compile(r"^pgbench: error: |\babove results are incomplete")
"""What it says of a client that ended early, before or below figures of the others."""


class Pgbench(ForeignFormat):
    name = "pgbench"
    summary = "what pgbench prints (>>FILE), a trial being one call"
    calls = True

    def recognises(self, head: str) -> bool:
        if re.search(r"^progress: [\d.]+ s, [\d.]+ tps, ", head, re.MULTILINE):
            return True
        return bool(re.search(r"^transaction type: ", head, re.MULTILINE)) and "\nscaling factor: " in head

    def check(self, path: Path, contender: str | None) -> None:
        for line, text in text_lines(path):
            if ABORTED.search(text):
                raise InputError(
                    f"{location_text(path, line)}: {text[:80]!r}, so that the call is incomplete",
                    "Remove this call from the file, and repeat it.",
                )

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        trials: dict[str, int] = {}
        kind, complete, settings = "", True, dict[str, str]()
        for line, text in text_lines(path):
            if found := TYPE.fullmatch(text):
                check_complete(path, line, complete, "tps =")
                kind, complete, settings = found[1], False, {}
                trials[kind] = trials.get(kind, 0) + 1
            elif not kind or complete:
                continue
            elif found := SETTING.fullmatch(text):
                settings[found[1]] = found[2]
            elif (found := PROCESSED.fullmatch(text)) and found[2] not in (None, found[1]):
                raise InputError(
                    f"{location_text(path, line)}: only {found[1]} of {found[2]} transactions were processed",
                    "Remove this call from the file, and repeat it.",
                )
            elif (found := FAILED.fullmatch(text)) and found[1].strip("0"):
                raise InputError(
                    f"{location_text(path, line)}: {found[1]} transactions failed",
                    "Remove this call from the file, and repeat it.",
                )
            elif found := LATENCY.fullmatch(text):
                yield ForeignRow(
                    str(contender), trials[kind], kind, "latency-mean", "ms", "lower", number(path, line, found[1]),
                    line, "mean", least=0.0, aspect="request-latency", settings=(*settings.items(),),
                )  # fmt: skip
            elif found := RATE.fullmatch(text):
                complete = True
                yield ForeignRow(
                    str(contender), trials[kind], kind, "transactions-per-second", "1/s", "higher",
                    number(path, line, found[1]), line, "mean", least=0.0, aspect="throughput",
                    settings=(*settings.items(),),
                )  # fmt: skip
        check_complete(path, "its end", complete, "tps =")


PLUGIN = Pgbench()
