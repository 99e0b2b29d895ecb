"""How the run as a whole was carried out: interleaving, import, trials that came to nothing."""

from __future__ import annotations

from collections.abc import Iterator

from kduel.core.experiment import LEFT_OUT
from kduel.core.results import Results, Warning_
from kduel.core.samples import Samples
from kduel.core.void_codes import may_be_contenders
from kduel.judge.lint.findings import Code
from kduel.judge.verdict.voids import Missing, depends


def not_interleaved(results: Results, samples: list[Samples]) -> Iterator[Warning_]:
    """Arms measured one after the other: whatever changed meanwhile looks like a difference between them."""
    if results.study.imported:
        yield Warning_(
            code=Code.NOT_INTERLEAVED,
            message="Imported: nothing shows that the trials were interleaved or randomised, and the environment "
            "is known only as far as the import states it. What changed between the contenders' measurements counts as their "
            "difference. Measure again with `kduel run` to be sure.",
        )
        return
    for name, last, following, first in successions(samples):
        yield Warning_(
            code=Code.NOT_INTERLEAVED,
            message=f"All trials of {name} (up to number {last + 1}) preceded all of {following} (from number "
            f"{first + 1}): a drift of the machine would look like a difference. Use randomised blocks.",
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


def crashes(results: Results) -> Iterator[Warning_]:
    """Void trials that depend on the contender."""
    totals: dict[str, tuple[int, int]] = {}
    for trial in results.trials:
        if trial.void and (trial.void.code == LEFT_OUT or not may_be_contenders(trial.void)):
            continue
        void, total = totals.get(trial.contender, (0, 0))
        totals[trial.contender] = void + (trial.status == "void"), total + 1
    if not results.contenders or results.contenders[0].name not in totals:
        return
    baseline = results.contenders[0].name
    void, total = totals[baseline]
    for name, (other_void, other_total) in totals.items():
        told = depends(Missing(void, total), Missing(other_void, other_total))
        if name != baseline and told:
            yield Warning_(
                code=Code.CRASHES,
                message=f"{other_void} of {other_total} trials of {name} are void, and {void} of {total} of {baseline} "
                f"({told}): that is a result in itself, and the trials that are left may be the better ones. Read the console "
                "logs of the void trials.",
            )
