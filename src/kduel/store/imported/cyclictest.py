"""Output of cyclictest (rt-tests): its JSON, the threads of -q, or the histogram of -h; a trial is one call."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from kduel.benchmarks import ParseError, Raw
from kduel.benchmarks.cyclictest import PLUGIN as CYCLICTEST
from kduel.benchmarks.cyclictest import REPORT, CyclictestParameters, CyclictestReport, percentile
from kduel.benchmarks.support.output import need_within
from kduel.benchmarks.support.reading import check_samples, read_whole
from kduel.core.errors import InputError
from kduel.store.imported.support.call_output import CallOutput, PrintedFormat, pieces
from kduel.store.imported.support.foreign import JSON_BEGINS, beginning, json_documents, location_text, text_lines

THREAD = re.compile(
    r"T: ?(\d+) +\( *\d+\) P: ?(\d+) I: ?(\d+) C: *(\d+) Min: *(\d+) Act: *\d+ Avg: *(\d+) Max: *(\d+)\s*", re.ASCII
)
"""The line of a thread in microseconds, as -N is not known from it."""
HISTOGRAM = "# Histogram"
TOTALS = {"Total": "total", "Min Latencies": "min", "Avg Latencies": "avg", "Max Latencies": "max"}
FIGURES = re.compile(rf"# ({'|'.join(TOTALS)}): ([\d ]+)")
COUNTS = re.compile(r"(\d{6,7})[ \t]+(\d+(?:[ \t]+\d+)*)\s*")
OVERFLOWS = re.compile(r"# Histogram Overflows: ([\d ]+)")
ASKED = {"priority": r" -p ?(\d+)", "interval": r" -i ?(\d+)"}
"""On the command line."""
BROKEN = "# Break value:"
COLUMNS = "cycles", "min", "avg", "max"


class Cyclictest(PrintedFormat):
    name = "cyclictest"
    summary = "cyclictest -q, -h (>>FILE) or --json, in microseconds, a trial being one call"
    derived = "mean of the threads' averages, by their wake-ups; percentiles by counting"

    def recognises(self, head: str) -> bool:
        lines = head.splitlines()[:6]
        return (
            '"cyclictest' in head.partition("\n")[2].partition("\n")[2].partition("\n")[0]
            or HISTOGRAM in lines
            or any(map(THREAD.fullmatch, lines))
        )

    def check(self, path: Path, contender: str | None) -> None:
        for line, text in text_lines(path):
            if text.startswith(BROKEN):
                raise InputError(
                    f"{location_text(path, line)}: a call ended at its first late wake-up (-b)", "Measure without -b."
                )

    def call_outputs(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[CallOutput]:
        if JSON_BEGINS.match(beginning(path)):
            for call, report in enumerate(json_documents(path, CyclictestReport, "cyclictest --json"), 1):
                threads = report.thread.values()
                asked = CyclictestParameters(
                    threads=report.num_threads,
                    loops=max((thread.cycles for thread in threads), default=0),
                    histogram=1
                    + max((us for one in threads for us, count in one.histogram.items() if count), default=0),
                )
                raw = Raw("", "", 0, {REPORT: msgspec.json.encode(report).decode()})
                parts = 1000 if report.resolution_in_ns else 1
                settings = [
                    (name, found[1]) for name, key in ASKED.items() if (found := re.search(key, report.cmdline))
                ]
                yield make_call(f"call {call}", report.num_threads, partial(read_report, raw, asked, parts), settings)
            return
        lines = list(text_lines(path))
        for line, text in lines:
            if re.search(r"\x1b\[\d+A", text):
                raise InputError(
                    f"{location_text(path, line)}: the display of cyclictest, which it writes again and again",
                    "Measure with -q, which prints the result alone.",
                )
        if any(text == HISTOGRAM for _, text in lines):
            for line, text in pieces(iter(lines), lambda text: text == HISTOGRAM):
                yield make_call(
                    line,
                    len(text.partition("\n# Total: ")[2].partition("\n")[0].split()),
                    partial(read_histogram, text),
                )
            return
        own = list[tuple[int, re.Match[str]]]()
        for line, text in lines:
            if found := THREAD.fullmatch(text):
                if own and int(found[1]) <= int(own[-1][1][1]):
                    yield threads_of_call(own)
                    own = []
                own.append((line, found))
        if own:
            yield threads_of_call(own)


def read_report(raw: Raw, asked: CyclictestParameters, parts: int) -> dict[str, float]:
    """The metrics of a report in so many parts of a microsecond. Raises ParseError."""
    return {name: value / parts for name, value in CYCLICTEST.parse(raw, asked).items()}


def make_call(
    where: int | str, threads: int, read: Callable[[], dict[str, float]], settings: Sequence[tuple[str, str]] = ()
) -> CallOutput:
    name, metrics = f"cyclictest-{threads}t", CYCLICTEST.metrics(CyclictestParameters())
    return CallOutput(where, name, metrics, read, tuple(settings))


def threads_of_call(lines: list[tuple[int, re.Match[str]]]) -> CallOutput:
    where, first = lines[0]
    read = partial(read_threads, [match for _, match in lines])
    return make_call(where, len(lines), read, [("priority", first[2]), ("interval", first[3])])


def summarise(threads: list[dict[str, int]]) -> dict[str, float]:
    """Minimum, mean and maximum of all threads. Raises ParseError where one was not awake."""
    total = sum(thread["cycles"] for thread in threads)
    if not threads or min(thread["cycles"] for thread in threads) < 1:
        raise ParseError("a thread without a wake-up")
    if any(not thread["min"] <= thread["avg"] <= thread["max"] for thread in threads):
        raise ParseError("minimum, average and maximum contradict each other")
    return {
        "latency-avg": sum(thread["avg"] * thread["cycles"] for thread in threads) / total,
        "latency-min": float(min(thread["min"] for thread in threads)),
        "latency-max": float(max(thread["max"] for thread in threads)),
    }


def read_threads(found: list[re.Match[str]]) -> dict[str, float]:
    """The metrics that the threads' lines have. Raises ParseError."""
    return summarise([dict(zip(COLUMNS, map(int, match.groups()[3:]), strict=True)) for match in found])


def read_histogram(text: str) -> dict[str, float]:
    """The metrics of a histogram. Raises ParseError where it does not fit its totals."""
    figures = {TOTALS[name]: whole_row(row) for name, row in FIGURES.findall(text)}
    counts = {int(row[1]): whole_row(row[2]) for row in map(COUNTS.fullmatch, text.split("\n")) if row}
    found = OVERFLOWS.search(text)
    overflows = whole_row(found[1]) if found else []
    widths = {len(row) for row in [*figures.values(), *counts.values(), overflows]}
    if len(figures) < len(TOTALS) or not counts or len(widths) > 1 or not overflows:
        raise ParseError("a histogram without a column for each thread in every line, or without its totals")
    if len(overflows) > 1 and all(sum(row[:-1]) == row[-1] for row in counts.values()):
        # The last column of -H is of all threads.
        for row in [*figures.values(), *counts.values(), overflows]:
            del row[-1]
    for thread, total in enumerate(figures["total"]):
        if sum(row[thread] for row in counts.values()) != total:
            raise ParseError(f"the histogram of thread {thread} does not hold its {total} wake-ups")
    cycles = [total + more for total, more in zip(figures["total"], overflows, strict=True)]
    rows = zip(cycles, figures["min"], figures["avg"], figures["max"], strict=True)
    values: dict[str, float | None] = dict(summarise([dict(zip(COLUMNS, row, strict=True)) for row in rows]))
    latencies = Counter({latency: sum(row) for latency, row in counts.items()})
    for name, per_mille in (("latency-p99", 990), ("latency-p99.9", 999)):
        check_samples(sum(cycles), per_mille, name)
        values[name] = percentile(latencies, sum(cycles), per_mille)
    return need_within(max(counts) + 1, values)


def whole_row(text: str) -> list[int]:
    """A row of whole numbers. Raises ParseError."""
    return [read_whole(one, "a count") for one in text.split()]


PLUGIN = Cyclictest()
