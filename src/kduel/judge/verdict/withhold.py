"""Verdicts that the rule gives and that may not be said of the kernels: they are taken back in this one place, so that whatever
reads a result, a report format or a question to the index, finds no claim."""

from __future__ import annotations

from kduel.core.format import effect_in_words
from kduel.core.metric_results import CONTRADICTED, SET_BY_HARNESS, MetricResult
from kduel.judge.verdict.wording import about_machines, not_judged_text


def withhold(result: MetricResult) -> None:
    """Take back the verdict on what the benchmark's settings determine, and a common verdict of machines that contradict each
    other. How many blocks decided it stays: the run has ended."""
    torn = result.decided and result.machines is not None and bool(result.machines.contradicting)
    if not (result.by_harness or torn):
        return
    result.verdict, result.withheld = "undecided", SET_BY_HARNESS if result.by_harness else CONTRADICTED
    result.below_delta = result.contradicted = False
    result.blocks_more = result.unseen_mode_pct = result.former_verdict = result.former_at = None
    result.told = (
        not_judged_text(result)
        if result.by_harness
        else f"No verdict for all machines together: {effect_in_words(result)} on the mean. {about_machines(result)}"
    )
