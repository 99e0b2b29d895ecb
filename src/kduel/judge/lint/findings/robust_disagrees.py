"""Robust tests as a check of the verdict: a finding where they disagree with it. They never decide."""

from collections.abc import Iterator

import numpy as np

from kduel.core.evidence import Evidence
from kduel.core.format import effect_numbers
from kduel.judge.lint.case import Case, Floats, gap_text
from kduel.judge.lint.finding import Cause, Finding
from kduel.judge.verdict.secondary import trimmed_mean, trimmed_t, wilcoxon

FEWEST = 8
LIBERAL = 0.25
"""The trimmed t test has up to twice the false alarms that it states, so its share of the level is a quarter."""
UNSUPPORTED = 0.1
"""A called difference whose robust p-values both exceed this rests on few trials."""
NAMED = 3


def robust_disagrees(case: Case) -> Iterator[str]:
    """The trimmed t test and the signed-rank test on the pairs, against the verdict, at a far lower level of their
    own. They are not applied to several machines, nor where missing trials forbid a verdict."""
    if not case.paired or case.result.machines is not None or case.result.withheld:
        return
    gaps = case.gaps
    if gaps.size < FEWEST or not np.isfinite(gaps).all():
        return
    trimmed, ranks = trimmed_t(gaps), wilcoxon(gaps)
    if trimmed is None or ranks is None:
        return
    if case.result.verdict == "undecided" and (trimmed < LIBERAL * case.level or ranks < case.level / 2):
        test = f"20 % trimmed t test, p = {trimmed:.1g}" if trimmed <= ranks else f"signed-rank test, p = {ranks:.1g}"
        yield (
            f"A test that ignores outlying trials would have found a difference, {gap_text(trimmed_mean(gaps), case.logarithmic, case.metric.unit)} "
            f"({test}). {extremes(case, gaps)} it: if they are disturbances of the host, remove the cause and repeat; if "
            "they belong to the kernel, undecided is right."
        )
    elif is_shown(case) and trimmed > UNSUPPORTED and ranks > UNSUPPORTED:
        yield (
            "Tests that ignore outlying trials do not support the difference (20 % trimmed t test p = "
            f"{trimmed:.2g}, signed-rank test p = {ranks:.2g}). {extremes(case, gaps)} it: a rare event, or a disturbance? "
            "Read the logs of these trials."
        )


def is_shown(case: Case) -> bool:
    """True if the verdict is a difference, and its interval excludes 0."""
    _, low, high, _ = effect_numbers(case.result)
    called = case.result.verdict not in ("undecided", "equivalent", "equal")
    return called and low is not None and high is not None and not low <= 0 <= high


def extremes(case: Case, gaps: Floats) -> str:
    """`Blocks 4 and 9 decide`."""
    _, _, blocks = case.counterpart
    far = np.argsort(-np.abs(gaps - np.median(gaps)))[:NAMED]
    listed = ", ".join(str(blocks[place]) for place in sorted(far))
    return f"The outermost pairs (blocks {listed}) decide"


PLUGIN = Finding(
    name="robust-disagrees", cause=Cause.OUTLIERS, weight=80,
    meaning="A 20 % trimmed t test or the signed-rank test, each at a stricter level of its own, would have found a "
    "difference where the verdict is undecided; or neither supports the difference that the verdict reports. These "
    "tests ignore outlying trials. They never decide, because they would also ignore a rare slow mode.",
    remedy="Examine the outlying trials: if they are disturbances of the host, remove the cause and repeat; if they "
    "belong to the kernel, the mean is the right measure.",
    chance=True, check=robust_disagrees, least=Evidence.VARYING,
    undecided="a few outlying trials hide the answer: read their logs, then repeat",
)  # fmt: skip
