"""pyperf's JSON. Its independent unit is the worker process, so each process gives one number: its values' mean."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from kduel.core.errors import InputError
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, location_text, read_json

UNITS = {"second": "s", "byte": "B", "integer": "count"}
VOLATILE = {"date", "duration", "uptime", "load_avg_1min", "runnable_threads", "boot_time", "mem_max_rss", "name"}


class PyperfRun(Struct):
    """A worker process; the one that calibrates has no values."""

    values: list[float] | None = None


class PyperfBenchmark(Struct):
    """Its metadata extends the file's."""

    runs: list[PyperfRun]
    metadata: dict[str, Any] = {}


class PyperfDocument(Struct):
    benchmarks: list[PyperfBenchmark]
    metadata: dict[str, Any] = {}


class Pyperf(ForeignFormat):
    name = "pyperf"
    summary = "pyperf's JSON, a trial being one worker process"
    derived = "mean of a worker's values"
    begins = r'\s*\{\s*"(benchmarks|version|metadata)"'
    holds = ('"runs"',)

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        document = read_json(path, PyperfDocument, "pyperf")
        for index, benchmark in enumerate(document.benchmarks, 1):
            metadata = document.metadata | benchmark.metadata
            name = str(metadata.get("name") or "")
            given = str(metadata.get("unit", "second"))
            metric = {"second": "time", "byte": "memory"}.get(given, "value")
            place = f"benchmark {index}" + f" ({name[:80]})" * bool(name)
            trials = [run.values for run in benchmark.runs if run.values]
            if not trials:
                raise InputError(
                    f"{location_text(path, place)} has no values", "Only calibration was stored; measure again."
                )
            for trial, values in enumerate(trials, 1):
                mean = sum(values) / len(values)
                yield ForeignRow(
                    str(contender), trial, name, metric, UNITS.get(given, given), "lower", mean, place, "mean",
                    least=0.0,
                )  # fmt: skip

    def environments(self, path: Path, contender: str | None) -> dict[str, dict[str, Any]]:
        document = read_json(path, PyperfDocument, "pyperf")
        kept = {key: value for key, value in document.metadata.items() if key not in VOLATILE | {"unit"}}
        return {str(contender): {"pyperf": kept}}


PLUGIN = Pyperf()
