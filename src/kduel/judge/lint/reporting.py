"""Figures that should not be quoted as they stand."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from kduel.core.results import Warning_
from kduel.judge.lint.case import Case, short
from kduel.judge.lint.findings import Code
from kduel.judge.verdict.wording import percent

FASTEST_DRIVE = 15e9
"""Bytes a second: more than a PCIe 5.0 x4 drive can carry (15.75 GB/s less its protocol)."""
RATES = {
    "B/s": 1.0, "KB/s": 1e3, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "KiB/s": 2.0**10, "MiB/s": 2.0**20, "GiB/s": 2.0**30,
}  # fmt: skip


def unreliable(case: Case) -> Iterator[Warning_]:
    """Of imported data: an interval wider than the effect, which a published table quotes without its interval.

    A run of KDuel's own needs no such finding: its report never shows an effect without the interval.
    """
    result = case.result
    if case.paired or result.scale != "ratio" or result.role != "primary":
        return
    effect, low, high = result.effect_pct, result.ci_low_pct, result.ci_high_pct
    if effect is None or low is None or high is None or low <= -100 or abs(effect) <= case.delta_pct:
        return
    if result.verdict == "undecided" and result.n < case.rule.equivalent_from:
        return  # That there are too few is another finding, and is the cause.
    # In logarithms, where up and down are alike.
    if math.log1p(high / 100) - math.log1p(low / 100) <= abs(math.log1p(effect / 100)):
        return
    certain = "Its direction is shown, its size is not" if not low <= 0 <= high else "Not even its direction is shown"
    yield Warning_(
        code=Code.UNRELIABLE,
        message=f"The interval, {percent(low, True)} to {percent(high, True)}, is wider than the effect, {percent(effect, True)}. {certain}: keep "
        "this figure out of headlines, or measure more blocks.",
    )


def page_cache(case: Case) -> Iterator[Warning_]:
    """File input and output faster than any drive: memory was measured."""
    rate = RATES.get(case.metric.unit)
    if rate is None or case.metric.aspect != "storage-throughput":
        return
    best = max((arm for arm in case.arms), key=lambda arm: float(np.median(arm.values)))
    fastest = float(np.median(best.values))
    if fastest * rate > FASTEST_DRIVE:
        yield Warning_(
            code=Code.PAGE_CACHE,
            message=f"{short(fastest)} {case.metric.unit} ({best.name}) is faster than any drive: this is the page cache, "
            "that is memory. Use direct I/O, a file larger than RAM, or report it as a throughput of memory.",
        )
