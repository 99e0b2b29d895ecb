"""Operations that mean something else in one kernel."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kduel.core.results import Results
from kduel.core.samples import Samples
from kduel.explain.compare import Explanation
from kduel.explain.show import changed_kind, changed_work
from kduel.judge.lint.finding import Finding

OFTEN = 0.5
"""Times per operation from which a kind of work belongs to it."""


def other_work(results: Results, samples: list[Samples]) -> Iterator[str]:
    """A sentence for each operation that sleeps, switches or faults in one kernel only, by counts or explanations."""
    yield from dict.fromkeys([*counted_work(samples), *explained_work(results)])


def counted_work(samples: list[Samples]) -> Iterator[str]:
    """The sentences by what the benchmark counts besides."""
    for table in samples:
        given = {name: done for name, done in table.work.items() if done}
        for contender in list(given)[1:] if table.contenders[0] in given else ():
            pair = (table.contenders[0], contender)
            for what in sorted(given[pair[0]].keys() & given[contender].keys()):
                for sentence in changed_kind(what, {name: given[name][what] for name in pair}, OFTEN):
                    yield f"{table.benchmark}: {sentence}"


def explained_work(results: Results) -> Iterator[str]:
    """The sentences by the run's explanations."""
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
    meaning="An operation sleeps, switches tasks or takes page faults in one kernel, and not in the other: its count or its time there "
    "is of other work. Checked for all operations of kbench on the machine icount, and by what `kduel explain RUN` was asked for.",
    remedy="Read its verdict as one about what the operation means, and not about how fast the kernel does it.",
    check_run=other_work,
)  # fmt: skip
