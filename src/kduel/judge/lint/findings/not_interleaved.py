"""Contenders that were measured one after the other."""

from collections.abc import Iterator

from kduel.core.results import Results
from kduel.core.samples import Samples
from kduel.judge.lint.finding import Finding


def not_interleaved(results: Results, samples: list[Samples]) -> Iterator[str]:
    if not results.paired:
        yield (
            "Imported: nothing shows that the trials were interleaved or randomised, and the environment "
            "is known only as far as the import states it. What changed between the contenders' measurements counts as their "
            "difference. Measure again with `kduel run` to be sure."
        )
        return
    for name, last, following, first in successions(samples):
        yield (
            f"All trials of {name} (up to number {last + 1}) preceded all of {following} (from number "
            f"{first + 1}): a drift of the machine would look like a difference. Use randomised blocks."
        )
        return


def successions(samples: list[Samples]) -> Iterator[tuple[str, int, str, int]]:
    """Pairs of contenders of which one was through before the other began: name, last, name, first."""
    for table in samples[:1]:
        spans = {
            name: (min(known), max(known))
            for name, order in table.order.items()
            if len(known := [place for place in order if place is not None]) > 1
        }
        baseline = table.contenders[0]
        for name, (first, last) in spans.items():
            if name == baseline or baseline not in spans:
                continue
            if last < spans[baseline][0]:
                yield name, last, baseline, spans[baseline][0]
            elif spans[baseline][1] < first:
                yield baseline, spans[baseline][1], name, first


PLUGIN = Finding(
    name="not-interleaved", cause="The contenders were not measured in turn", weight=90,
    meaning="All trials of one contender came before all trials of another, or the results were imported and their "
    "order is unknown. Any change of the machine in between counts as a difference between the contenders.",
    remedy="Measure again in randomised blocks (`kduel run`).",
    check_run=not_interleaved,
)  # fmt: skip
