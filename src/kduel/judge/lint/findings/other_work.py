"""Operations that mean something else in one kernel."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kduel.core.results import Results
from kduel.core.samples import Samples
from kduel.explain.compare import Explanation
from kduel.explain.show import changed_work
from kduel.judge.lint.finding import Finding


def other_work(results: Results, _samples: list[Samples]) -> Iterator[str]:
    """A sentence for each operation that sleeps, switches or faults in one kernel only, by the run's explanations."""
    for raw in results.explanations:
        try:
            found = msgspec.convert(raw, Explanation)
        except msgspec.ValidationError:
            # Of shared lines, or damaged.
            continue
        for sentence in changed_work(found):
            yield f"{found.benchmark}: {sentence}"


PLUGIN = Finding(
    name="other-work", cause="An operation does other work in one kernel", weight=68,
    meaning="By an explanation that is kept in the run, an operation sleeps, switches tasks or takes page faults in one kernel, and "
    "not in the other: its count or its time there is of other work. Only what `kduel explain RUN` was asked for is checked.",
    remedy="Read its verdict as one about what the operation means, and not about how fast the kernel does it.",
    check_run=other_work,
)  # fmt: skip
