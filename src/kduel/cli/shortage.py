"""Warnings before a run and in a dry run: too few blocks for any verdict, too many real-time tasks for a machine to answer."""

from __future__ import annotations

from collections.abc import Iterator

from kduel.benchmarks import benchmark
from kduel.core.samples import Samples
from kduel.core.text import plural
from kduel.judge.verdict.rule import fewest_for
from kduel.study.load import Study


def shortage_warning(study: Study) -> str:
    """The warning about a study whose blocks are too few for any statistical verdict; empty where they are not."""
    from kduel.judge.factors import gating
    from kduel.judge.verdict.comparison import family
    from kduel.machines import machine_kind

    if machine_kind(study.machine).exact:
        return ""
    comparisons = family(gating(list(expected_samples(study)), study.design))
    blocks, fewest = study.blocks.count, fewest_for(comparisons)
    if not comparisons or blocks >= fewest:
        return ""
    return (
        f"{plural(blocks, 'block')} {'is' if blocks == 1 else 'are'} too few for a statistical verdict: with "
        f"{plural(comparisons, 'primary comparison')} it takes {fewest} complete blocks. Only exact values can be decided."
    )


MANY_TASKS = 100
"""Of a real-time policy at once, from which on a machine may not answer before they end."""


def realtime_warning(study: Study) -> str:
    """The announcement that a real machine will be taken by many real-time tasks; empty where it is not."""
    from kduel.machines import machine_kind
    from kduel.schedulers.policy import REALTIME_SHARE, is_realtime

    contenders = [name for name, one in zip(study.names, study.contenders, strict=True) if is_realtime(one.policy)]
    known = [(step.label, benchmark(step.benchmark), step.parameters) for step in study.steps]
    tasks = {
        label: one.policy_tasks(one.read_parameters(given)) or 0 for label, one, given in known if one.takes_policy
    }
    many = [label for label, count in tasks.items() if count >= MANY_TASKS]
    if not contenders or not many or not machine_kind(study.machine).installed_kernels:
        return ""
    return (
        f"{', '.join(contenders)} run{'s' * (len(contenders) == 1)} up to {max(tasks.values()):,} tasks at once under a real-time "
        f"policy ({', '.join(many)}). They take {100 * REALTIME_SHARE:g} % of every CPU: until such a step ends the machine "
        f"{study.machine} may answer nobody, and its other services stand still."
    )


def expected_samples(study: Study) -> Iterator[Samples]:
    """The primary metrics of a study as one block would give them, each value 1."""
    from kduel.store.collect import PreparedSteps

    prepared = PreparedSteps(study.steps, study.blocks)
    for index, step in enumerate(study.steps):
        for metric in prepared.metrics(index):
            if metric.name in step.primary:
                values: dict[str, list[float | None]] = {name: [1.0] for name in study.names}
                yield Samples(benchmark=step.label, metric=metric, primary=True, blocks=[1], values=values)
