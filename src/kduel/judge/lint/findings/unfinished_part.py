"""A merged run that its own stopping rule had not ended."""

from kduel.judge.lint.finding import Finding

PLUGIN = Finding(
    name="unfinished-part", cause="A merged run is not finished", weight=59,
    meaning="One of the merged runs was interrupted, or its last trials were removed. Its complete blocks count.",
    remedy="Continue it with `kduel resume`, and merge again.",
)  # fmt: skip
