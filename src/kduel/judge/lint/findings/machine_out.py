"""A machine of a fleet that did not finish its blocks."""

from kduel.judge.lint.finding import Finding

PLUGIN = Finding(
    name="machine-out", cause="A machine of the fleet did not finish its blocks", weight=60,
    meaning="A machine of the fleet was lost, or quarantined for void or slow trials, and the others continued without "
    "it. The rule does not use the values that are compared; the complete blocks of the machine count.",
    remedy="The message has the reason. Repair the machine before the next run.",
)  # fmt: skip
