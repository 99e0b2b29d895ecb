"""A storage benchmark that measures memory."""

from collections.abc import Iterator

import numpy as np

from kduel.core.format import amount
from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Finding

FASTEST_DRIVE = 15e9
"""Bytes a second: more than a PCIe 5.0 x4 drive can carry (15.75 GB/s less its protocol)."""
RATES = {
    "B/s": 1.0, "KB/s": 1e3, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "KiB/s": 2.0**10, "MiB/s": 2.0**20, "GiB/s": 2.0**30,
}  # fmt: skip


def page_cache(case: Case) -> Iterator[str]:
    rate = RATES.get(case.metric.unit)
    if rate is None or case.metric.aspect != "storage-throughput":
        return
    best = max((arm for arm in case.arms), key=lambda arm: float(np.median(arm.values)))
    fastest = float(np.median(best.values))
    if fastest * rate > FASTEST_DRIVE:
        yield (
            f"{amount(fastest)} {case.metric.unit} ({best.name}) is faster than any drive: this is the page cache, "
            "that is memory. Use direct I/O, a file larger than RAM, or report it as a throughput of memory."
        )


PLUGIN = Finding(
    name="page-cache", cause="The storage benchmark measures memory", weight=64,
    meaning="A storage benchmark reports a rate that no drive reaches: it reads from or writes to memory.",
    remedy="Use direct I/O, or more data than there is memory.",
    check=page_cache,
)  # fmt: skip
