"""UnixBench 5's report: a trial is one call of Run, so that reports are appended to one file."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from kduel.core.errors import InputError
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, location_text, text_lines
from kduel.store.imported.values_csv import number

COPIES = re.compile(r"\d+ CPUs? in system; running (\d{1,6}) parallel cop(?:y|ies) of tests")
TEST = re.compile(r"(\S.*?) {2,}(\S+) (lps|lpm|KBps|MWIPS|MFLOPS|samples|score)\s+\(\d+\.\d s, \d+ samples\)")
INDEX = re.compile(r"System Benchmarks Index Score( \(Partial Only\))? +(\d\S*)")
"""Partial is that of a call with some of the tests."""


class UnixBench(ForeignFormat):
    name = "unixbench"
    summary = "the report of UnixBench's Run (>>FILE), a trial being one call"
    calls = True

    def recognises(self, head: str) -> bool:
        return any(map(COPIES.fullmatch, head.splitlines())) and " samples)" in head

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        trials: Counter[str] = Counter()
        name = ""
        for line, text in text_lines(path):
            if found := COPIES.fullmatch(text):
                name = f"unixbench-{found[1]}t"
                trials[name] += 1
                continue
            found, index = TEST.fullmatch(text.strip()), INDEX.fullmatch(text.strip())
            metric, value, unit = (
                found.groups()
                if found
                else (f"index{(index[1] or '').lower()}", index[2], "")
                if index
                else ("", "", "")
            )
            if not metric:
                continue
            if not name:
                raise InputError(
                    f"{location_text(path, line)}: a test before the line with the number of its copies",
                    "Give the report from its beginning.",
                )
            yield ForeignRow(
                str(contender), trials[name], name, metric, unit, "higher", number(path, line, value), line, "mean", least=0.0,
                aspect="operation-rate",
            )  # fmt: skip


PLUGIN = UnixBench()
