"""The output of `perf stat -x`: a trial is one call of perf, so that calls are appended to one file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kduel.core.errors import InputError
from kduel.core.experiment import Better
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, location_text, text_lines
from kduel.store.imported.values_csv import number

VALUE = r"\d+(?:\.\d+)?|<not supported>|<not counted>"
LINE = re.compile(
    rf"(?P<value>{VALUE})(?P<sep>[^\w\s.<>-]|\t)(?P<unit>[^\d<]*?)(?P=sep)(?P<event>\D.*?)"
    r"(?:(?P=sep)(?P<spread>[\d.]+|nan)%)?(?P=sep)\d+(?P=sep)[\d.]+(?:(?P=sep)(?:nan|inf|-?[\d.]*)(?P=sep).*)?",
    re.ASCII,
)
"""The fields of the manual's section "CSV format", without those that name an interval or a CPU."""
OTHERWISE = re.compile(r"\s*\d+\.\d{9}[,;].*|\d+,\d+;[^;]*;[a-z][\w-]*;.*")
"""A line of -I, or of a language that has a decimal comma."""
COSTS = re.compile(
    r"(cpu|task)-clock|duration_time|(user|system)_time|(cpu-|ref-)?cycles|instructions|.*(misses|faults)"
)
"""Events of which fewer are better."""


class PerfStat(ForeignFormat):
    """Counters of a command."""

    name = "perf-stat"
    summary = "perf stat -x (such as -x ';' -o FILE --append), a trial being one call of perf"

    def recognises(self, head: str) -> bool:
        return any(LINE.fullmatch(line.strip(" ")) or OTHERWISE.fullmatch(line) for line in head.splitlines()[:20])

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        seen: dict[str, int] = {}
        uncounted: dict[str, str] = {}
        means = False
        for line, text in text_lines(path):
            if not text.strip() or text.startswith("#"):
                continue
            # A line of a derived metric alone has empty fields before it.
            if re.match(r"([^\w\s.<>-]|\t)\1\1", text):
                continue
            found = LINE.fullmatch(text.strip(" "))
            if found is None:
                raise InputError(
                    f"{location_text(path, line)}: {text.strip()[:60]!r} is not value, unit, event, run time and share of perf stat -x",
                    "Measure without -I, -A and --per-*, with LC_ALL=C and a separator that no event has: -x ';'.",
                )
            event = found["event"]
            seen[event] = seen.get(event, 0) + 1
            if found["value"].startswith("<"):
                uncounted[event] = found["value"].strip("<>")
                continue
            means = means or found["spread"] is not None
            better: Better = "lower" if COSTS.fullmatch(event.partition(":")[0]) else "none"
            yield ForeignRow(
                str(contender),
                seen[event],
                "perf-stat",
                event,
                found["unit"],
                better,
                number(path, line, found["value"]),
                line,
                "value" if found["spread"] is None else "mean",
                least=0.0,
            )
        skipped.extend(f"{path.name}: {event} was {why}." for event, why in uncounted.items())
        if means:
            skipped.append(
                f"{path.name}: the spread within each call (-r); its mean is one value. "
                "For more values call perf several times with -o FILE --append."
            )


PLUGIN = PerfStat()
