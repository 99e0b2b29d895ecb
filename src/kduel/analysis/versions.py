"""A run of several kernels as a history: each counted operation by version, and what changes from one version to the next."""

import shlex
from itertools import pairwise

from msgspec import Struct

from kduel.benchmarks.kbench import PLUGIN as KBENCH
from kduel.benchmarks.sharing import PLUGIN as SHARING
from kduel.core.experiment import Metric
from kduel.core.metric_results import COUNTS, MetricResult, conditions_of
from kduel.core.results import Results
from kduel.core.samples import Samples, StepResult
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import planned_rule


class Course(Struct, kw_only=True):
    """An operation's count in each version."""

    label: str
    unit: str
    group: str
    values: list[float | None]
    """By contender."""
    changes: list[MetricResult]
    """From each contender to the next one, judged as against a baseline."""
    explains: list[str]
    """The command that shows where each change comes from; empty where none does."""

    @property
    def nowhere(self) -> bool:
        return not any(self.values)


def courses(results: Results) -> list[Course]:
    """The counts of each operation's usual call, in the study's order. Nothing for a run that counts nothing."""
    if results.machine.evidence.varies:
        return []
    rule, names = planned_rule(results.study), [one.name for one in results.contenders]
    steps = {step.label: step for step in results.steps}
    found = []
    for (label, _), metrics in of_usual_call(results).items():
        first = metrics[0]
        metric = Metric(first.metric, first.unit, first.better, first.about, first.statistic, aspect=first.aspect)
        values = {name: counts for one in metrics for name, counts in one.values.items()}
        conditions = conditions_of(metrics, results.blocks)
        pairs = list(pairwise(names))
        samples = [
            Samples(
                benchmark=label,
                metric=metric,
                primary=True,
                counted=True,
                blocks=results.blocks,
                values={name: values.get(name, [None] * len(results.blocks)) for name in pair},
                conditions={name: conditions[name] for name in pair if name in conditions},
            )
            for pair in pairs
        ]
        course = Course(
            label=label,
            unit=first.unit,
            group=first.group,
            values=[next((value for value in values.get(name, []) if value is not None), None) for name in names],
            changes=[judge([one], rule)[0] for one in samples],
            explains=[explain_command(results, steps.get(label), pair) for pair in pairs],
        )
        found.append(course)
    return found


def of_usual_call(results: Results) -> dict[tuple[str, str], list[MetricResult]]:
    """The primary counts by label and metric, a result for each contender."""
    found: dict[tuple[str, str], list[MetricResult]] = {}
    for metric in results.metrics:
        if metric.role == "primary" and metric.unit in COUNTS:
            found.setdefault((metric.benchmark, metric.metric), []).append(metric)
    return found


def explain_command(results: Results, step: StepResult | None, pair: tuple[str, str]) -> str:
    """Command that shows where a change comes from, for kernels that their names alone determine."""
    arms = {one.name: one for one in results.contenders}
    if step is None or any(arms[name].cmdline for name in pair):
        return ""
    p = step.parameters
    if step.benchmark == SHARING.name:
        other = "" if p["other"] in ("", p["operation"]) else f"+{p['other']}"
        words = ["-b", f"{p['operation']}{other}/{p['workers']}/{p['objects']}", "--sharing"]
    elif step.benchmark == KBENCH.name:
        words = ["-b", p["operation"]]
    else:
        return ""
    return shlex.join(["kduel", "explain", *(arms[name].kernel for name in pair), *words])
