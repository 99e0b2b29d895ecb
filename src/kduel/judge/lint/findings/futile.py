"""A run in which no primary metric could be decided any more."""

from kduel.judge.lint.finding import Finding

PLUGIN = Finding(
    name="futile", cause="The run could not decide anything any more", weight=74,
    meaning="At the spread of the values no primary metric can be decided within the maximum number of blocks.",
    remedy="The message names the reason: host load, two groups of boots, or a delta that is too small.",
)  # fmt: skip
