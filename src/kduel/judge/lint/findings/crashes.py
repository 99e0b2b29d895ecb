"""Void trials that depend on the contender."""

from collections import Counter
from collections.abc import Iterator

from kduel.core.experiment import LEFT_OUT
from kduel.core.results import Results
from kduel.core.samples import Samples
from kduel.core.void_codes import may_be_contenders
from kduel.judge.lint.finding import Cause, Finding
from kduel.judge.verdict.voids import Missing, depends


def void_counts(results: Results) -> dict[str, tuple[Counter[str], int]]:
    """By contender: its void trials by code, and the number of its trials; without those that are void for another's fault."""
    found: dict[str, tuple[Counter[str], int]] = {}
    for trial in results.trials:
        if trial.void and (trial.void.code == LEFT_OUT or not may_be_contenders(trial.void)):
            continue
        void, total = found.get(trial.contender, (Counter(), 0))
        if trial.status == "void":
            void[trial.void.code if trial.void else ""] += 1
        found[trial.contender] = void, total + 1
    return found


def crashes(results: Results, _samples: list[Samples]) -> Iterator[str]:
    totals = {name: (void.total(), total) for name, (void, total) in void_counts(results).items()}
    if not results.contenders or results.contenders[0].name not in totals:
        return
    baseline = results.contenders[0].name
    void, total = totals[baseline]
    for name, (other_void, other_total) in totals.items():
        told = depends(Missing(void, total), Missing(other_void, other_total))
        if name != baseline and told:
            yield (
                f"{other_void} of {other_total} trials of {name} are void, and {void} of {total} of {baseline} "
                f"({told}): that is a result in itself, and the trials that are left may be the better ones. Read the console "
                "logs of the void trials."
            )


PLUGIN = Finding(
    name="crashes", cause=Cause.MISSING, weight=98,
    meaning="Void trials depend on the contender: Fisher's exact test is below .05, or two or more trials are void "
    "and all of them belong to one contender. The missing trials may be the slow ones.",
    remedy="Read the console logs of the void trials. That one contender fails is a result in itself.",
    check_run=crashes,
)  # fmt: skip
