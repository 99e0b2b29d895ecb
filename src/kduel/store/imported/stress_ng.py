"""stress-ng --yaml: a trial is one call, so that reports are appended to one file."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from kduel.benchmarks import ParseError
from kduel.benchmarks.stress_ng import read_stressors, stressor_metrics
from kduel.core.errors import InputError
from kduel.store.imported.support.call_output import CallOutput, PrintedFormat, pieces
from kduel.store.imported.support.foreign import location_text, text_lines

FIGURE = re.compile(r"^ +([a-z][\w-]*): \S", re.MULTILINE)
READ = {
    "stressor", "bogo-ops", "bogo-ops-per-second-usr-sys-time", "bogo-ops-per-second-real-time", "wall-clock-time", "user-time",
    "system-time", "cpu-usage-per-instance", "cpu-usage", "max-rss", "instance",
}  # fmt: skip
"""Figures of a stressor that become metrics, and those that these follow from; it may have more of its own."""


class StressNg(PrintedFormat):
    name = "stress-ng"
    summary = "stress-ng --metrics --yaml FILE (reports appended), a trial being one call"
    begins = "---"
    holds = ("stress-ng-version",)

    def call_outputs(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[CallOutput]:
        for line, text in pieces(text_lines(path), lambda text: text == "---"):
            try:
                # A prompt may come behind the last report.
                report, end, _ = text.partition("\n...\n")
                found = read_stressors(report + end, "the report")
            except ParseError as error:
                raise InputError(
                    f"{location_text(path, line)}: {error}", "Remove this report from the file, or measure again."
                ) from error
            others = sorted({*FIGURE.findall(text.partition("\nmetrics:")[2].partition("\ntimes:")[0])} - READ)
            if others:
                skipped.append(f"{location_text(path, line)}: {', '.join(others)[:300]}.")
            for stressor, values in found.items():
                name = f"stress-ng-{stressor}"
                if not values["operations-per-second"]:
                    skipped.append(f"{location_text(path, line)}: {name} did no operation.")
                    continue
                yield CallOutput(line, name, stressor_metrics(""), partial(dict, values))


PLUGIN = StressNg()
