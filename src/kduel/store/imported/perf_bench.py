"""Output of `perf bench` in its default format: a trial is one call, so that calls are appended to one file."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from kduel.core.errors import InputError
from kduel.core.experiment import Better
from kduel.store.imported.support.call_output import pieces
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, location_text, text_lines
from kduel.store.imported.values_csv import number

BEGIN = re.compile(r"# Running '?(\w[\w-]*)/(\w[\w-]*)'? benchmark(?::|\.\.\.)")
PART = re.compile(
    r"# function '([^']+)' .*|(\d+ operations \d+ bits set of \d+ bits)|Computing performance of (\S+) threaded .*"
    r"| +Number of synthesis (threads: \d+)"
)
"""Lines that say what the figures below them are of, in a call that has several kinds of them."""
SETTING = re.compile(r" ?# \S.*|Run summary.*")
"""With what a call was made; of that, what each call has of its own:"""
OF_THE_CALL = re.compile(r" ?\[PID \d+\]|0x[0-9a-f]+")
SCALES = {"ms": 1e3, "msec": 1e3, "usec": 1.0, "K": 2.0**-20, "M": 2.0**-10, "G": 1.0, "": 2.0**-30}
"""To microseconds and to GiB/s, of which perf writes GB/sec."""
Figure = tuple[re.Pattern[str], str, str, Better]
FIGURES: tuple[Figure, ...] = (
    (re.compile(r" +(?P<value>\S+) usecs/op"), "time-per-operation", "us", "lower"),
    (re.compile(r"Averaged (?P<value>\S+) operations/sec .*"), "operations-per-second", "1/s", "higher"),
    (re.compile(r"Averaged (?P<value>\S+) (?P<name>[A-Z]+ operations) .*"), "", "1", "higher"),
    (re.compile(r"(?:Wokeup|Requeued) \d+ of \d+ threads in (?P<value>\S+) (?P<scale>ms) .*"), "time", "us", "lower"),
    (
        re.compile(r"Avg per-thread latency .* in (?P<value>\S+) (?P<scale>ms) .*"),
        "latency-per-thread",
        "us",
        "lower",
    ),
    (re.compile(r" +Average (?P<name>\S.*?) took: +(?P<value>\S+) (?P<scale>ms|msec|usec)\b.*"), "", "us", "lower"),
    (re.compile(r" +(?P<value>\S+) (?P<scale>[KMG]?)B/sec"), "throughput", "GiB/s", "higher"),
    (re.compile(r" +(?P<value>\S+) cycles/byte"), "cycles-per-byte", "cycles", "lower"),
    (re.compile(r" +(?P<value>\S+) GB/sec total speed"), "throughput", "GB/s", "higher"),
)
TOTAL: Figure = (re.compile(r" +Total time: +(?P<value>\S+) \[sec\]"), "total-time", "s", "lower")
"""Of a call that has no other figure, of which it is else a multiple."""


class PerfBench(ForeignFormat):
    name = "perf-bench"
    summary = "what perf bench prints (>>FILE) in its default format, a trial being one call"
    calls = True
    begins = BEGIN.pattern

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        trials = Counter[str]()
        for first, text in pieces(text_lines(path), lambda line: BEGIN.fullmatch(line) is not None):
            head, *lines = text.split("\n")
            called = "perf-" + "-".join(re.findall(r"[\w-]+", head)[1:3])
            settings = dict.fromkeys(
                OF_THE_CALL.sub("", line).strip("# ") for line in lines if SETTING.fullmatch(line)
            )
            found = figures_of(lines, FIGURES) or figures_of(lines, (TOTAL,))
            if not found:
                raise InputError(
                    f"{location_text(path, first)}: a call without a figure",
                    "Remove what is left of this call from the file.",
                )
            trials.update({f"{called}{part}" for _, part, *_ in found})
            for line, part, value, scale, metric, unit, better in found:
                name = f"{called}{part}"
                yield ForeignRow(
                    str(contender), trials[name], name, metric, unit, better,
                    number(path, first + line, value) * SCALES[scale], first + line, "mean", least=0.0,
                    settings=(("settings", "; ".join(settings)),),
                )  # fmt: skip


def figures_of(lines: Sequence[str], figures: Sequence[Figure]) -> list[tuple[int, str, str, str, str, str, Better]]:
    """The figures of a call: line, part, value, its scale, metric, unit and better side."""
    found, part = [], ""
    for line, text in enumerate(lines, 1):
        if told := PART.fullmatch(text):
            part = " " + " ".join(filter(None, told.groups()))
        for pattern, metric, unit, better in figures:
            if match := pattern.fullmatch(text):
                groups = match.groupdict()
                named = groups.get("name", metric).lower().replace(" ", "-")
                found.append((line, part, groups["value"], groups.get("scale", "usec"), named, unit, better))
    return found


PLUGIN = PerfBench()
