"""Google Benchmark's JSON: a trial is one repetition; aggregates are left out, since they can be computed."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from kduel.core.errors import InputError
from kduel.core.experiment import Better
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, json_number, location_text, read_json

BOOKKEEPING = {
    "family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads", "iterations",
}  # fmt: skip
TIMES = ("real_time", "cpu_time")
RATES: dict[str, str] = {"bytes_per_second": "B/s", "items_per_second": "items/s"}


class GoogleDocument(Struct):
    """The file. Entries are open: a program adds counters under names of its own."""

    benchmarks: list[dict[str, Any]]
    context: dict[str, Any] = {}


class GoogleBenchmark(ForeignFormat):
    name = "google-benchmark"
    summary = "Google Benchmark --benchmark_format=json, a trial being one repetition"

    def recognises(self, head: str) -> bool:
        return bool(re.match(r'\s*\{\s*"(context|benchmarks)"', head)) and (
            '"real_time"' in head or '"context"' in head
        )

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        arm = str(contender)
        seen: dict[str, int] = {}
        aggregates = 0
        for index, entry in enumerate(read_json(path, GoogleDocument, "Google Benchmark").benchmarks, 1):
            name = str(entry.get("run_name") or entry.get("name") or "")
            place = f"benchmark {index} ({name[:80]})"
            if not name:
                raise InputError(f"{location_text(path, f'benchmark {index}')} has no name", "Export it again.")
            if entry.get("run_type", "iteration") != "iteration" or "aggregate_name" in entry:
                aggregates += 1
                continue
            if entry.get("error_occurred"):
                skipped.append(
                    f"{path.name}: {place} failed: {str(entry.get('error_message', 'no reason given'))[:200]}"
                )
                continue
            if entry.get("skipped"):
                skipped.append(f"{path.name}: {place} was skipped: {str(entry.get('skip_message', ''))[:200]}")
                continue
            seen[name] = seen.get(name, 0) + 1
            for key in [key for key, value in entry.items() if value is None and key not in TIMES]:
                skipped.append(f"{path.name}: {place}: {key[:80]} is no number.")
                del entry[key]
            for metric, unit, better in entry_metrics(path, place, entry):
                value = json_number(path, place, metric, entry[metric])
                least = 0.0 if metric in TIMES else None
                yield ForeignRow(arm, seen[name], name, metric, unit, better, value, place, least=least)
        if aggregates and not seen:
            raise InputError(
                f"{path.name} has aggregates only", "Measure again without --benchmark_report_aggregates_only."
            )

    def environments(self, path: Path, contender: str | None) -> dict[str, dict[str, Any]]:
        context = read_json(path, GoogleDocument, "Google Benchmark").context
        kept = {key: value for key, value in context.items() if key not in ("date", "load_avg")}
        return {str(contender): {"google-benchmark": kept}}


def entry_metrics(path: Path, place: str, entry: dict[str, Any]) -> Iterator[tuple[str, str, Better]]:
    """The metrics of an entry, with unit and side. Raises InputError where the times are not there."""
    unit = entry.get("time_unit")
    if "real_time" not in entry or "cpu_time" not in entry or not isinstance(unit, str):
        raise InputError(
            f"{location_text(path, place)} has no real_time, cpu_time and time_unit", "Export it again, unabridged."
        )
    for name in TIMES:
        yield name, unit, "lower"
    for key, value in entry.items():
        if key in RATES:
            yield key, RATES[key], "higher"
        elif key not in BOOKKEEPING.union(TIMES) and type(value) in (int, float):
            yield key, "", "none"


PLUGIN = GoogleBenchmark()
