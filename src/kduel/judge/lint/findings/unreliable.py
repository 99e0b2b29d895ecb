"""An imported effect whose interval is wider than itself."""

import math
from collections.abc import Iterator

from kduel.core.evidence import Evidence
from kduel.core.format import percent
from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Finding


def unreliable(case: Case) -> Iterator[str]:
    """An interval of imported data that is wider than the effect, which a published table quotes without it. A run of
    KDuel's own needs no such finding: its report never shows an effect without the interval."""
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
    yield (
        f"The interval, {percent(low)} to {percent(high)}, is wider than the effect, {percent(effect)}. {certain}: "
        "quote it with the interval only, or measure more trials."
    )


PLUGIN = Finding(
    name="unreliable", cause="The size of the effect is uncertain", weight=38,
    meaning="Imported results: the interval of a primary metric is wider than its effect, so that the effect alone, as "
    "published tables print it, shows neither its size nor, perhaps, its direction.",
    remedy="Do not quote the size without its interval, or measure more trials.",
    check=unreliable, least=Evidence.CONSTANT,
)  # fmt: skip
