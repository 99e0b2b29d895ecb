"""A maximum as the metric."""

from collections.abc import Iterator

from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Finding


def maximum(case: Case) -> Iterator[str]:
    if case.metric.statistic == "max":
        yield (
            "This is a maximum: one sample decides it, and it grows with the time measured. Compare the 99th or "
            "99.9th percentile, and report the maximum as a further metric."
        )


PLUGIN = Finding(
    name="maximum", cause="The metric is a maximum", weight=44,
    meaning="The metric is the largest sample of a trial: one sample decides it, and it grows with the time measured.",
    remedy="Make the 99th or 99.9th percentile the primary metric, and report the maximum as a further metric.",
    check=maximum,
)  # fmt: skip
