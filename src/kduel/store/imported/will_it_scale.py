"""will-it-scale's tables (runtest.py TEST >TEST.csv): a trial is one file, with a benchmark for each number of tasks."""

import re
from collections.abc import Iterator
from pathlib import Path

from kduel.core.errors import InputError
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, file_stem, location_text
from kduel.store.imported.support.table import check_end, records
from kduel.store.imported.values_csv import number

BEGIN = "tasks,processes,"
KINDS = ("processes", "threads")
TEST = re.compile(
    r"(brk|context_switch|dup|eventfd|fallocate|fcntl|futex|getppid|lock|lseek|malloc|mmap|open|page_fault|pipe|poll|"
    r"posix_semaphore|pread|pthread_mutex|pwrite|read|readseek|sched_yield|signal|tlb_flush|unix|unlink|write)\d?"
)
"""The names of its tests, by which a file is called that is not called by its contender."""


class WillItScale(ForeignFormat):
    name = "will-it-scale"
    summary = "will-it-scale's table of one test (NAME=TEST.csv, a file for each trial)"
    begins = BEGIN

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        stem = file_stem(path)
        test = stem if TEST.fullmatch(stem) else "will-it-scale"
        table = records(path, f"Its first line begins with {BEGIN}.")
        header = next(table)[1]
        line, lacking = 1, set[str]()
        for line, fields in table:
            facts = dict(zip(header, fields, strict=True))
            tasks = facts["tasks"]
            if not re.fullmatch(r"\d{1,6}", tasks, re.ASCII):
                raise InputError(
                    f"{location_text(path, line)}: {tasks[:60]!r} is no number of tasks", "Write the table again."
                )
            for kind in KINDS if int(tasks) else ():
                value = number(path, line, facts.get(kind, ""))
                if value < 0:
                    # What runtest.py writes for a test that has no such variant.
                    lacking.add(kind)
                    continue
                yield ForeignRow(
                    str(contender), 1, f"{test}-{int(tasks)}t", kind, "1/s", "higher", value, line, "mean", least=0.0,
                    aspect="operation-rate",
                )  # fmt: skip
        check_end(path, line)
        skipped += [f"{path.name}: {kind}, which this test lacks" for kind in sorted(lacking)]


PLUGIN = WillItScale()
