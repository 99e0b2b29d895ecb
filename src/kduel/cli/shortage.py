"""The warning of a study with fewer blocks than any verdict takes: the same before a run and in a dry run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kduel.core.text import plural
from kduel.study.load import Study

if TYPE_CHECKING:
    from kduel.core.samples import Samples


def shortage_warning(study: Study) -> str:
    """The warning about a study whose blocks are too few for any statistical verdict; empty where they are not."""
    from kduel.judge.factors import gating
    from kduel.judge.verdict.comparison import family
    from kduel.judge.verdict.rule import fewest_for
    from kduel.machines import machine_kind

    if machine_kind(study.machine).counts:
        return ""
    comparisons = family(gating(list(expected_samples(study)), study.design))
    blocks, fewest = study.blocks.count, fewest_for(comparisons)
    if not comparisons or blocks >= fewest:
        return ""
    return (
        f"{plural(blocks, 'block')} {'is' if blocks == 1 else 'are'} too few for a statistical verdict: with "
        f"{plural(comparisons, 'primary comparison')} it takes {fewest} complete blocks. Only exact values can be decided."
    )


def expected_samples(study: Study) -> Iterator[Samples]:
    """The primary metrics of a study as one block would give them, each value 1."""
    from kduel.core.samples import Samples
    from kduel.store.collect import PreparedSteps

    prepared = PreparedSteps(study.steps, study.blocks)
    for index, step in enumerate(study.steps):
        for metric in prepared.metrics(index):
            if metric.name in step.primary:
                values: dict[str, list[float | None]] = {name: [1.0] for name in study.names}
                yield Samples(benchmark=step.label, metric=metric, primary=True, blocks=[1], values=values)
