"""Output of schbench 1.0 and later: a trial is one call, so that calls are appended to one file."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from kduel.benchmarks.schbench import PLUGIN as SCHBENCH
from kduel.benchmarks.schbench import SchbenchParameters
from kduel.core.errors import InputError
from kduel.store.imported.support.call_output import CallOutput, PrintedFormat, as_stdout
from kduel.store.imported.support.foreign import check_complete, location_text, text_lines

END = "average rps: "
SECTION, OLD = "Wakeup Latencies percentiles (usec)", "Latency percentiles (usec)"
"""Of version 1.0, and of those before it, whose report lacks what is compared."""


class Schbench(PrintedFormat):
    name = "schbench"
    summary = "what schbench prints (>>FILE 2>&1), a trial being one call"

    def recognises(self, head: str) -> bool:
        return OLD in head.replace(SECTION, OLD)

    def call_outputs(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[CallOutput]:
        asked = SchbenchParameters()
        first, found, complete = 1, list[str](), True
        for line, text in text_lines(path):
            found.append(f"{text}\n")
            complete = complete and not text.startswith(SECTION)
            if text.startswith(OLD):
                raise InputError(
                    f"{location_text(path, line)}: a report of schbench before 1.0, which lacks what is compared",
                    "Measure with schbench 1.0 or later.",
                )
            if text.startswith(END):
                # Only the last report of a call ends so.
                read = partial(SCHBENCH.parse, as_stdout("".join(found)), asked)
                yield CallOutput(first, "schbench", SCHBENCH.metrics(asked), read)
                first, found, complete = line + 1, [], True
        check_complete(path, "its end", complete, END.strip())


PLUGIN = Schbench()
