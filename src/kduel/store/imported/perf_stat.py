"""The output of `perf stat -x` and `-j`: a trial is one call of perf, so that calls are appended to one file."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kduel.core.errors import InputError
from kduel.core.experiment import Better
from kduel.store.imported.support.foreign import MOST_BEFORE, ForeignFormat, ForeignRow, location_text, text_lines
from kduel.store.imported.values_csv import number

VALUE = r"\d+(?:\.\d+)?|<not supported>|<not counted>"
LINE = re.compile(
    rf"(?P<value>{VALUE})(?P<sep>[^\w\s.<>-]|\t)(?P<unit>[^\d<]*?)(?P=sep)(?P<event>\D.*?)"
    r"(?:(?P=sep)(?P<spread>[\d.]+|nan)%)?(?P=sep)\d+(?P=sep)(?P<share>[\d.]+)(?:(?P=sep)(?:nan|inf|-?[\d.]*)(?P=sep).*)?",
    re.ASCII,
)
"""The fields of the manual's section "CSV format", without those that name an interval or a CPU."""
OTHERWISE = re.compile(
    r"\s*\d+\.\d{9}[,;].*|\d+,\d+;[^;]*;[a-z][\w-]*;.*"
    r"|(?:CPU|[SDN])\d[\w-]*([,;|])(?:\d+\1)?(?:[\d.]+|<not \w+>)\1[^,;|]*\1[a-z][^,;|]*\1\d+\1.*"
)
"""A line of -I, of a language that has a decimal comma, or of -A and --per-*."""
COSTS = re.compile(
    r"(cpu|task)-clock|duration_time|(user|system)_time|(cpu-|ref-)?cycles|instructions|.*(misses|faults)"
)
"""Events of which fewer are better."""


JSON = re.compile(r'\s*\{"[a-z -]+" : .*')
DIVIDED = {"interval", "cpu", "core", "cache", "die", "cluster", "socket", "node", "thread", "cgroup"}
"""Keys of lines that are a part of a call: of -I, -A and --per-*."""


class PerfStat(ForeignFormat):
    name = "perf-stat"
    summary = "perf stat -j or -x (such as -x ';' -o FILE --append), a trial being one call of perf"

    def recognises(self, head: str) -> bool:
        return any(map(of_perf, head.splitlines()[:20]))

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        seen: dict[str, int] = {}
        uncounted: dict[str, str] = {}
        means, parts = False, set[str]()
        lines = list(text_lines(path))
        # A prompt or a warning may come before the first line.
        first = next(
            (
                at
                for at, (_, text) in enumerate(lines[: MOST_BEFORE + 1])
                if of_perf(text) or (text and text[0] in "0123456789<")
            ),
            0,
        )
        for line, text in lines[first:]:
            if not text.strip() or text.startswith("#"):
                continue
            # A line of a derived metric alone has empty fields before it.
            if re.match(r"([^\w\s.<>-]|\t)\1\1", text):
                continue
            found = read_object(path, line, text) if JSON.fullmatch(text) else fields_of(text)
            if found == {}:
                continue
            if found is None:
                raise InputError(
                    f"{location_text(path, line)}: {text.strip()[:60]!r} is not value, unit, event, run time and share of one call",
                    "Measure without -I, -A and --per-*, with LC_ALL=C, -o FILE and a separator that no event has: -x ';'.",
                )
            event = str(found["event"])
            seen[event] = seen.get(event, 0) + 1
            value, spread = str(found["value"]), found["spread"]
            if value.startswith("<"):
                uncounted[event] = value.strip("<>")
                continue
            means = means or spread is not None
            if number(path, line, str(found["share"] or 100)) < 100:
                parts.add(event)
            better: Better = "lower" if COSTS.fullmatch(event.partition(":")[0]) else "none"
            yield ForeignRow(
                str(contender), seen[event], "perf-stat", event, str(found["unit"]), better,
                number(path, line, value), line, "value" if spread is None else "mean", least=0.0,
            )  # fmt: skip
        skipped.extend(f"{path.name}: {event} was {why}." for event, why in uncounted.items())
        skipped.extend(
            f"{path.name}: that {event} was counted for a part of the time only, from which perf extrapolates."
            for event in sorted(parts)
        )
        if means:
            skipped.append(
                f"{path.name}: the spread within each call (-r); its mean is one value. "
                "For more values call perf several times with -o FILE --append."
            )


def of_perf(text: str) -> bool:
    """True for a line that perf stat writes."""
    return bool(
        LINE.fullmatch(text.strip(" "))
        or OTHERWISE.fullmatch(text)
        or (JSON.fullmatch(text) and '"event" : ' in text)
    )


def fields_of(text: str) -> dict[str, str | None] | None:
    """The fields of a line of -x; None where it is none."""
    found = LINE.fullmatch(text.strip(" "))
    return found.groupdict() if found else None


def read_object(path: Path, line: int, text: str) -> dict[str, str | None] | None:
    """The fields of a line of -j; None for a part of a call, empty for a derived metric. Raises InputError."""
    try:
        found = msgspec.json.decode(text, type=dict[str, str | float])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise InputError(
            f"{location_text(path, line)}: {error}", "It is not what perf stat -j writes, or it was cut off."
        ) from error
    if DIVIDED & found.keys():
        return None
    if "counter-value" not in found:
        return {}
    names = {
        "value": "counter-value",
        "unit": "unit",
        "event": "event",
        "spread": "variance",
        "share": "pcnt-running",
    }
    row = {name: str(found[key]) if key in found else None for name, key in names.items()}
    return None if None in (row["unit"], row["event"]) else row


PLUGIN = PerfStat()
