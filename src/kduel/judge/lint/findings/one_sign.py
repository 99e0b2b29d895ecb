"""Differences on several exact CPUs that so few conditions may show by chance."""

import math
from collections.abc import Iterator

from kduel.core.text import plural
from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Finding
from kduel.judge.verdict.headline import matters


def one_sign(case: Case) -> Iterator[str]:
    """A difference in what the scheduler's least decision changes, which chance explains more often than a verdict may err."""
    if not case.exact_cpus or not matters(case.result):
        return
    pairs = case.result.pairs or [(0.0, 0.0)]
    if (chance := chance_of_one_sign(pairs)) > case.rule.alpha:
        ranges = "ranges that do not overlap" if len(pairs) > 1 and lie_apart(pairs) else "one sign"
        yield (
            f"{plural(len(pairs), 'condition')}: a difference without any cause would have {ranges} in one of "
            f"{1 / chance:.0f} cases. Give the benchmark conditions = 8, or measure more blocks, whose conditions are others."
            if chance < 1
            else f"{'One condition' if case.result.pairs else 'No conditions'}: any difference between kernels, without any cause, would look so. wakeup, kload and tasks take conditions = 8."
        )


def lie_apart(pairs: list[tuple[float, float]]) -> bool:
    """True if all values of one contender lie above all of the other."""
    before, after = zip(*pairs, strict=True)
    return bool(max(before) < min(after) or max(after) < min(before))


def chance_of_one_sign(pairs: list[tuple[float, float]]) -> float:
    """The chance that values which differ by chance alone look like these: all differences have one sign (the sign test), or all values
    of one contender lie above all others (Wilcoxon's rank sum)."""
    signs = 2.0 ** (1 - len(pairs))
    return min(signs, 2 / math.comb(2 * len(pairs), len(pairs))) if lie_apart(pairs) else signs


PLUGIN = Finding(
    name="one-sign", cause="So few conditions may agree by chance", weight=87,
    meaning="On exact CPUs with scheduling = true the least change makes the scheduler decide otherwise from some moment on, and a "
    "percentile of the same kernel can be seven times as large under another condition. A difference without any cause has one sign in "
    "all of three conditions in one of four cases, and in all of six in one of 32; without conditions it always has one. Told where "
    "that is likelier than the errors that the study allows.",
    remedy="Give the benchmark `conditions = 8`, or measure more blocks of one that has conditions: each draws others.",
    check=one_sign,
)  # fmt: skip
