"""Output of memtier_benchmark, its text or its JSON: a trial is one run, so that calls are appended to one file."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kduel.core.errors import InputError
from kduel.core.experiment import Statistic
from kduel.store.imported.support.call_output import pieces
from kduel.store.imported.support.foreign import (
    JSON_BEGINS,
    ForeignFormat,
    ForeignRow,
    beginning,
    json_documents,
    json_number,
    location_text,
    text_lines,
)
from kduel.store.imported.values_csv import number

BEGIN = re.compile(r"\d+ +Threads")
SETTING = re.compile(r"(\d+) +(Threads|Connections per thread|Requests per client|Seconds)")
ASKED = (
    "protocol", "ratio", "pipeline", "data_size", "data_size_range", "key_pattern", "key_maximum", "rate_limit", "expiry_range",
)  # fmt: skip
"""Options of JSON that the run's own lines do not have."""
RUN, MEAN = re.compile(r"ALL STATS|RUN #\d+ RESULTS"), re.compile(r"AGGREGATED AVERAGE RESULTS \(\d+ runs\)")
"""Headings of one run, and of the mean of several, without which those of the best and the worst run are no trials."""
SECTION = re.compile(r"(?:[A-Z#\d]+ )+(?:STATS|RESULTS)(?: \(\d+ runs\))?")
ERRORS = "Connection Errors"
"""A key of JSON; text has lines for them."""
AVERAGES = ("Avg. Latency", "Average Latency", "Latency")
"""Of newer and of older versions."""
STATISTICS: dict[str, Statistic] = {"50": "median", "95": "p95", "99": "p99", "99.9": "p999"}

Kinds = dict[str, dict[str, float]]
"""By the kind of operation and the heading of a column."""


class Call(NamedTuple):
    where: int | str
    settings: dict[str, str]
    sections: dict[str, Kinds]


class Memtier(ForeignFormat):
    name = "memtier"
    summary = "what memtier_benchmark prints (>>FILE), or its --json-out-file, a trial being one run"
    calls = True

    def recognises(self, head: str) -> bool:
        return bool(
            re.search(rf"(?m)^{BEGIN.pattern}\n\d+ +Connections per thread$", head)
            or (re.match(r'\s*\{\s*"configuration"\s*:', head) and '"Connections per thread"' in head)
        )

    def check(self, path: Path, contender: str | None) -> None:
        refused: list[int | str] = (
            [
                call.where
                for call in json_calls(path)
                if any(one.get(ERRORS) for kinds in call.sections.values() for one in kinds.values())
            ]
            if is_json(path)
            else [line for line, text in text_lines(path) if text.startswith("connection error: ")]
        )
        if refused:
            raise InputError(
                f"{location_text(path, refused[0])}: a call with connection errors",
                "Remove this call from the file, and repeat it with fewer connections.",
            )

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        trials = Counter[str]()
        for call in (json_calls if is_json(path) else text_calls)(path):
            runs = [name for name in call.sections if RUN.fullmatch(name)]
            runs = runs or [name for name in call.sections if MEAN.fullmatch(name)]
            skipped += [f"{location_text(path, call.where)}: {name}" for name in call.sections if name not in runs]
            idle = {kind for name in runs for kind, one in call.sections[name].items() if not one.get("Ops/sec")}
            if not runs or "Totals" in idle:
                raise InputError(
                    f"{location_text(path, call.where)}: a call without operations", "Remove it from the file."
                )
            for kind, columns in ((kind, one) for name in runs for kind, one in call.sections[name].items()):
                if kind in idle:
                    continue
                benchmark = f"memtier-{kind.lower()}"
                trials[benchmark] += 1
                yield ForeignRow(
                    str(contender), trials[benchmark], benchmark, "operations-per-second", "1/s", "higher", columns["Ops/sec"],
                    call.where, "mean", least=0.0, aspect="throughput", settings=(*call.settings.items(),),
                )  # fmt: skip
                if not mean_latency(columns):
                    skipped.append(f"{location_text(path, call.where)}: latencies of {kind}, which JSON has as 0")
                    continue
                for metric, statistic, value in latencies(columns):
                    yield ForeignRow(
                        str(contender), trials[benchmark], benchmark, metric, "ms", "lower", value, call.where, statistic, least=0.0,
                        aspect="request-latency",
                    )  # fmt: skip


def is_json(path: Path) -> bool:
    return JSON_BEGINS.match(beginning(path)) is not None


def mean_latency(columns: Mapping[str, float]) -> float:
    """The mean; 0 of all kinds in JSON, whose other latencies are then none either."""
    return next((columns[name] for name in AVERAGES if name in columns), 0.0)


def latencies(columns: Mapping[str, float]) -> Iterator[tuple[str, Statistic, float]]:
    """The latencies of one kind of operation."""
    yield "latency-mean", "mean", mean_latency(columns)
    for name, value in columns.items():
        if found := re.fullmatch(r"p(\d+(?:\.\d+)?)(?: Latency)?", name):
            share = f"{float(found[1]):g}"
            yield f"latency-p{share}", STATISTICS.get(share, "value"), value


def text_calls(path: Path) -> Iterator[Call]:
    """The calls of a file with text."""
    for first, text in pieces(text_lines(path), lambda line: BEGIN.fullmatch(line) is not None):
        settings, sections, names, kinds = {}, dict[str, Kinds](), list[str](), Kinds()
        for line, content in enumerate(text.split("\n"), first):
            cells = content.split()
            if asked := SETTING.fullmatch(content):
                settings[asked[2]] = asked[1]
            elif SECTION.fullmatch(content):
                kinds, names = sections.setdefault(content, {}), []
            elif content.startswith("Type ") and "Ops/sec" in content:
                names = re.split(r"  +", content.strip())[1:]
            elif names and not cells:
                names = []
            elif names and not content.startswith("---"):
                if len(cells) != len(names) + 1:
                    raise InputError(
                        f"{location_text(path, line)} has {len(cells) - 1} figures under {len(names)} headings",
                        "Remove this call from the file.",
                    )
                values = zip(names, cells[1:], strict=True)
                kinds[cells[0]] = {name: number(path, line, one) for name, one in values if one != "---"}
        yield Call(first, settings, sections)


def json_calls(path: Path) -> Iterator[Call]:
    """The calls of a file with JSON."""
    for place, document in enumerate(json_documents(path, dict[str, dict[str, Any]], "memtier_benchmark"), 1):
        where = f"call {place}"
        asked = {name: value for name, value in document.get("configuration", {}).items() if name in ASKED}
        told = {name: value for name, value in document.get("run information", {}).items() if "version" not in name}
        sections: dict[str, Kinds] = {}
        for heading in (name for name in document if SECTION.fullmatch(name)):
            for kind, found in document[heading].items():
                if not isinstance(found, dict) or "Ops/sec" not in found:
                    continue
                shares = found.get("Percentile Latencies")
                columns = found | (shares if isinstance(shares, dict) else {})
                wanted = (
                    "Ops/sec",
                    ERRORS,
                    *AVERAGES,
                    *(name for name in columns if re.fullmatch(r"p\d+(\.\d+)?", name)),
                )
                sections.setdefault(heading, {})[kind] = {
                    name: json_number(path, where, f"{kind}: {name}", columns[name])
                    for name in wanted
                    if name in columns
                }
        yield Call(where, {name: str(value) for name, value in (asked | told).items()}, sections)


PLUGIN = Memtier()
