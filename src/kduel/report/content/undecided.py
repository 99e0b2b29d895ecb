"""Reasons why a metric is undecided, which the reader can act on."""

from kduel.core.metric_results import MetricResult
from kduel.core.results import Results
from kduel.core.text import plural
from kduel.judge.lint.finding import catalogue
from kduel.judge.lint.findings import beyond_histogram, missing_by_arm
from kduel.judge.verdict.headline import lies_within
from kduel.judge.verdict.rule import Rule, gating_rule
from kduel.judge.verdict.strata import FEWEST_OF_CLASS
from kduel.judge.verdict.unfinished import find_unfinished, may_continue

WORTH_ADDING = 2.0
"""So many times the blocks of the run are a way to a verdict; beyond that something else has to change."""
REMEDIES = {
    "": "measure longer in each trial, or in slices spread over it",
    "more-blocks": "it comes from the boots, so that longer trials hardly help; measure more blocks",
    "more-slices": "measure in more slices",
    "longer-slices": "measure in longer slices",
}
"""By what varies most; without slices it is not known how much of the spread is the boot's."""


def advice(metric: MetricResult) -> str:
    """Advice of its components; empty for a metric in one piece."""
    parts = metric.components
    return parts.advice if parts is not None and parts.slices > 1 else ""


def reason(metric: MetricResult, delta: float | None, rule: Rule, waits: str = "", begun: bool = True) -> str:
    """Clause on why it is undecided and what would help. `waits`: clause on the analysis that is still to come; `begun`: false
    where no trial was made."""
    if metric.beyond and (metric.withheld or not metric.n):
        return beyond_histogram.PLUGIN.undecided
    if metric.n == 0 and not begun:
        return "no trial was measured yet: continue the run"
    if metric.n == 0:
        go_on = "continue the run, or " if waits else ""
        return f"no block gave a value for both contenders: {go_on}read why trials are void or steps failed"
    if metric.few:
        return metric.withheld
    if metric.torn:
        return "the machines contradict each other, which more blocks cannot settle: judge each machine by itself"
    if waits and not metric.withheld:
        return f"{waits}: continue the run"
    if metric.n == 1:
        more = f" ({rule.equivalent_from} to show that no difference matters)" * (rule.equivalent_from > rule.fewest)
        return f"each contender was measured once: measure each {rule.fewest} times or more{more}"
    if metric.withheld:
        return missing_by_arm.PLUGIN.undecided
    if metric.n < rule.fewest:
        return f"only {plural(metric.n, 'value')} of each contender can be compared, and a verdict takes {rule.fewest}: measure more"
    if metric.contradicted:
        return "the data contradict the verdict of an earlier look, which more blocks cannot settle: start a new run"
    if (found := metric.machines) is not None and found.scope == "class":
        if len(found.effects) < FEWEST_OF_CLASS:
            return f"a verdict about a class takes {FEWEST_OF_CLASS} machines, and {len(found.effects)} measured"
        return (
            "the machines differ too much for a verdict about their class: measure on more machines, not more blocks"
        )
    if found_reason := reason_of_findings(metric):
        return found_reason
    if metric.n < rule.equivalent_from and lies_within(metric, rule):
        counts = f"which counts from {rule.equivalent_from} values of each contender on"
        return f"the interval lies within ±{rule.delta_pct:g} %, {counts}: measure more"
    if metric.blocks_more and metric.blocks_more <= WORTH_ADDING * metric.n:
        return "there are too few values for this spread: measure more"
    target = "" if delta is None else f" to tell whether the change reaches {delta:g} %"
    return f"the spread is too large{target}: {REMEDIES[advice(metric)]}, stop other work on the host, or accept a larger delta"


def reason_of_findings(metric: MetricResult) -> str:
    """The clause of its weightiest finding that explains it; empty where none does."""
    codes = {warning.code for warning in metric.warnings}
    return next((one.undecided for one in catalogue().values() if one.undecided and one.name in codes), "")


def by_reason(metrics: list[MetricResult], results: Results) -> dict[str, list[MetricResult]]:
    """The undecided metrics of a run by their reason, the most frequent reason first."""
    found: dict[str, list[MetricResult]] = {}
    rule = gating_rule(results)
    unfinished = find_unfinished(results)
    for metric in metrics:
        primary = metric.role == "primary"
        judged = rule if primary else rule.for_exploring()
        waits = unfinished.waits if primary and unfinished and may_continue(results) else ""
        found.setdefault(
            reason(metric, results.study.delta, judged, waits, bool(results.trials) or not results.paired), []
        ).append(metric)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def foremost_reason(undecided: list[MetricResult], results: Results) -> str:
    """`, as ...`: the most frequent reason, called so where others have another."""
    why, those = next(iter(by_reason(undecided, results).items()))
    how = "" if len(those) == len(undecided) else "mostly " if 2 * len(those) > len(undecided) else "partly "
    return f", {how}as {why}."
