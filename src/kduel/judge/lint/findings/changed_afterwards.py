"""Files of a run that were changed after it was measured."""

from kduel.judge.lint.finding import Finding

PLUGIN = Finding(
    name="changed-afterwards", cause="Files of the run were changed afterwards", weight=99,
    meaning="Files of the run do not match the checksums that were stored when they were written, or a trial is missing or "
    "was measured after those that the plan has later. The verdicts are computed from the files as they are now.",
    remedy="Restore the run from a copy, or measure again; `kduel verify` lists the files.",
)  # fmt: skip
