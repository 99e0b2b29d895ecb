"""Why a metric is undecided, as a reason that the reader can act on."""

from __future__ import annotations

from kduel.core.results import MachinesResult, MetricResult
from kduel.judge.lint.findings import Code
from kduel.judge.verdict.rule import fewest_for
from kduel.judge.verdict.strata import FEWEST_OF_CLASS

WORTH_ADDING = 2.0
"""So many times the blocks of the run are a way to a verdict; beyond that something else has to change."""

MISSING = "values are missing, and which ones depends on the contender: repair this first"
CAUSES: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({Code.ONE_TRIAL, Code.ROBUST_DISAGREES}), "a few outlying trials hide the answer: read their logs, then repeat"),
    (frozenset({Code.TWO_MODES}), "the boots fall into two groups: find what differs between them"),
    (frozenset({Code.MISSING_BY_ARM}), MISSING),
    (frozenset({Code.DRIFT, Code.AUTOCORRELATION}), "the machine changed during the run: stop other work on the host"),
    (frozenset({Code.TIES, Code.QUANTISED}), "the values are too coarse: measure for longer"),
)  # fmt: skip
"""Findings that explain a wide interval, with what to do; the first that fits is the reason."""


def reason(metric: MetricResult, delta: float | None) -> str:
    """Why it is undecided and what would help, as a clause."""
    if metric.n == 0:
        return (
            "no block gave a value for both contenders: continue the run, or read why trials are void or steps failed"
        )
    if metric.n == 1:
        return "each contender was measured once: measure more blocks"
    if metric.withheld:
        return MISSING
    if metric.n < fewest_for(1):
        return f"only {metric.n} values of each contender can be compared: measure more"
    if (found := metric.machines) is not None and found.scope == "class":
        return class_reason(found)
    codes = {warning.code for warning in metric.warnings}
    for known, words in CAUSES:
        if codes & known:
            return words
    if metric.blocks_more and metric.blocks_more <= WORTH_ADDING * metric.n:
        return "the run is too short at this spread: measure more blocks"
    target = "" if delta is None else f" for ±{delta:g} %"
    return f"the spread is too large{target}: measure longer in each trial, stop other work on the host, or accept a larger delta"


def class_reason(found: MachinesResult) -> str:
    """Why nothing is decided of a class of machines."""
    if len(found.effects) < FEWEST_OF_CLASS:
        return f"a verdict about a class takes {FEWEST_OF_CLASS} machines, and {len(found.effects)} measured"
    return "the machines differ too much for a verdict about their class: measure on more machines, not more blocks"


def by_reason(metrics: list[MetricResult], delta: float | None) -> dict[str, list[MetricResult]]:
    """The undecided metrics by their reason, the most frequent reason first."""
    found: dict[str, list[MetricResult]] = {}
    for metric in metrics:
        found.setdefault(reason(metric, delta), []).append(metric)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))
