"""`redis-benchmark --csv` (Redis 6.2 and later, Valkey): a trial is one call, appended to one file."""

import re
from collections.abc import Iterator
from pathlib import Path

from kduel.core.errors import InputError
from kduel.core.experiment import Statistic
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, location_text, text_lines
from kduel.store.imported.values_csv import number

HEADING = (
    '"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms",'
    '"max_latency_ms"'
)
LATENCIES: tuple[tuple[str, Statistic], ...] = (
    ("latency-mean", "mean"), ("latency-p50", "median"), ("latency-p99", "p99"), ("latency-max", "max"),
)  # fmt: skip


class RedisBenchmark(ForeignFormat):
    name = "redis-benchmark"
    summary = "redis-benchmark --csv or valkey-benchmark --csv (>>FILE), a trial being one call"
    calls = True
    begins = re.escape(HEADING)

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        trial = 0
        for line, text in text_lines(path):
            if text == HEADING:
                trial += 1
            if text == HEADING or not text or not trial:
                continue
            cells = text.split('","')
            if len(cells) != 8 or not (text.startswith('"') and text.endswith('"')):
                raise InputError(
                    f"{location_text(path, line)}: {text[:60]!r} is not a test with its seven figures",
                    "Keep what redis-benchmark --csv prints, without the lines of other programs.",
                )
            test, rate, mean, _, half, _, most, longest = (cell.strip('"') for cell in cells)
            name = str(contender)
            yield ForeignRow(
                name, trial, test, "requests-per-second", "1/s", "higher", number(path, line, rate), line,
                "mean", least=0.0, aspect="throughput", numbered=True,
            )  # fmt: skip
            for (metric, statistic), value in zip(LATENCIES, (mean, half, most, longest), strict=True):
                yield ForeignRow(
                    name, trial, test, metric, "ms", "lower", number(path, line, value), line,
                    statistic, least=0.0, aspect="request-latency", numbered=True,
                )  # fmt: skip


PLUGIN = RedisBenchmark()
