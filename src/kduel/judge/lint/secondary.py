"""Robust tests as a check of the verdict: a finding where they disagree with it. They never decide."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from kduel.core.results import Warning_
from kduel.judge.lint.case import Case, Floats, amount
from kduel.judge.lint.findings import Code
from kduel.judge.verdict.secondary import trimmed_mean, trimmed_t, wilcoxon
from kduel.judge.verdict.wording import percent

FEWEST = 8
LIBERAL = 0.25
"""The trimmed t test has up to twice the false alarms that it states, so its share of the level is a quarter."""
UNSUPPORTED = 0.1
"""A called difference whose robust p-values both exceed this rests on few trials."""
NAMED = 3


def robust_disagrees(case: Case) -> Iterator[Warning_]:
    """The trimmed t test and the signed-rank test on the pairs, against the verdict.

    They have a level of their own, far below the verdict's: what they add must be worth reading. They do not model
    several machines, whose effects may differ, and are not applied then.
    """
    if case.steady or not case.paired or case.result.scale == "exact" or case.result.machines is not None:
        return
    gaps = case.gaps
    if gaps.size < FEWEST or not np.isfinite(gaps).all():
        return
    trimmed, ranks = trimmed_t(gaps), wilcoxon(gaps)
    if trimmed is None or ranks is None:
        return
    if case.result.verdict == "undecided" and (trimmed < LIBERAL * case.level or ranks < case.level / 2):
        test = f"20 % trimmed t test, p = {trimmed:.1g}" if trimmed <= ranks else f"signed-rank test, p = {ranks:.1g}"
        yield Warning_(
            code=Code.ROBUST_DISAGREES,
            message=f"A test that ignores outlying trials would have found a difference, {size(case, trimmed_mean(gaps))} "
            f"({test}). {extremes(case, gaps)} it: if they are disturbances of the host, remove the cause and repeat; if "
            "they belong to the kernel, undecided is right.",
        )
    elif shown(case) and trimmed > UNSUPPORTED and ranks > UNSUPPORTED:
        yield Warning_(
            code=Code.ROBUST_DISAGREES,
            message="Tests that ignore outlying trials do not support the difference (20 % trimmed t test p = "
            f"{trimmed:.2g}, signed-rank test p = {ranks:.2g}). {extremes(case, gaps)} it: a rare event, or a disturbance? "
            "Read the logs of these trials.",
        )


def shown(case: Case) -> bool:
    """Whether the verdict is a difference, and its interval excludes 0."""
    low, high = case.result.ci_low_pct, case.result.ci_high_pct
    if case.result.scale != "ratio":
        low, high = case.result.ci_low, case.result.ci_high
    called = case.result.verdict not in ("undecided", "equivalent", "equal")
    return called and low is not None and high is not None and not low <= 0 <= high


def size(case: Case, value: float) -> str:
    """A difference on the verdict's scale as a message quotes it."""
    return percent(100 * math.expm1(value), True) if case.logarithmic else amount(value, case.metric.unit)


def extremes(case: Case, gaps: Floats) -> str:
    """`Blocks 4 and 9 decide`."""
    _, _, blocks = case.counterpart
    far = np.argsort(-np.abs(gaps - np.median(gaps)))[:NAMED]
    listed = ", ".join(str(blocks[place]) for place in sorted(far))
    return f"The outermost pairs (blocks {listed}) decide"
