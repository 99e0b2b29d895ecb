"""A value that sits on a configured duration."""

from collections.abc import Iterator

from kduel.core.format import amount
from kduel.core.samples import SECONDS
from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Finding

TOLERANCE = 0.005
"""How near to the configured value counts as there."""
STEADY = 0.005
"""A coefficient of variation that only a limit explains, where the limit itself is not known."""
FEWEST = 3
ROUND_SECONDS = (1, 2, 3, 5, 10, 15, 20, 30, 40, 60, 90, 120, 180, 240, 300, 600, 900, 1800, 3600)
"""Durations that people configure, some times a number of CPUs."""


def fixed_by_harness(case: Case) -> Iterator[str]:
    medians = list(case.medians)
    limit = case.metric.fixed_at
    if limit is not None:
        if all(abs(median / limit - 1) <= TOLERANCE for median in medians):
            yield message_of(case, medians, f"{amount(limit)} {case.metric.unit}, which the harness itself sets")
        return
    second = SECONDS.get(case.metric.unit)
    if second is None or any(arm.values.size < FEWEST for arm in case.arms):
        return
    if any(arm.values.std(ddof=1) > STEADY * abs(median) for arm, median in zip(case.arms, medians, strict=True)):
        return
    for limit in ROUND_SECONDS:
        if all(abs(median * second / limit - 1) <= TOLERANCE for median in medians):
            yield message_of(
                case,
                medians,
                f"{amount(limit / second)} {case.metric.unit}: a limit that is set (perhaps times CPUs)",
            )
            return


def message_of(case: Case, medians: list[float], limit: str) -> str:
    seen = " and ".join(amount(median) for median in medians)
    return (
        f"The medians, {seen} {case.metric.unit}, are close to {limit}. This measures the harness, not the kernel: "
        "judge how much work was done in that time instead (operations, bytes, switches)."
    )


PLUGIN = Finding(
    name="fixed-by-harness", cause="The benchmark's settings fix the value", weight=88,
    meaning="The medians of all contenders lie within 0.5 % of a duration that the benchmark is configured with, or "
    "of a round number of seconds that hardly varies. The metric does not depend on the kernel.",
    remedy="Judge the work done in that time instead: operations, bytes, context switches.",
    chance=True, check=fixed_by_harness,
)  # fmt: skip
