"""The rule of a verdict: effect of interest, error probability, when interim analyses take place, covariates."""

from typing import Any

import msgspec
from msgspec import Struct

from kduel.core.editions import EDITION, EDITIONS
from kduel.core.errors import InputError
from kduel.core.experiment import Scope
from kduel.core.results import Results, StudyResult

MOST_COVARIATES = 3
PRESENT = EDITIONS[EDITION]


def fewest_for(comparisons: int, steps: tuple[tuple[int, int], ...] = PRESENT.fewest_by_comparisons) -> int:
    """Least number of complete pairs for a verdict of one of so many comparisons that share alpha, by `steps`: with
    two sharp modes each is a false alarm with 2 * 4**-n, whatever its share; one more for four times as many."""
    for most, pairs in steps:
        if comparisons <= most:
            return pairs
    while comparisons > most:
        most, pairs = 4 * most, pairs + 1
    return pairs


class Rule(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The stopping rule of a run, in blocks of the run, complete or not. Raises InputError for impossible numbers."""

    delta_pct: float = 1.0
    """The smallest effect of interest, in per cent."""
    alpha: float = 0.05
    """The chance of a false alarm, over all primary comparisons and all looks together."""
    first_look: int | None = PRESENT.first_look
    """The first look, in blocks; null: as soon as a verdict is possible."""
    look_every: int = PRESENT.look_every
    max_blocks: int = PRESENT.max_blocks
    equivalent_from: int = PRESENT.equivalent_from
    """"equivalent" and "equal" need so many complete pairs: fewer would miss a slow mode too easily."""
    fewest_pairs: int | None = PRESENT.fewest_pairs
    """No verdict rests on fewer complete pairs; null: as many as the number of comparisons requires."""
    fewest_by_comparisons: tuple[tuple[int, int], ...] = PRESENT.fewest_by_comparisons
    """Up to so many comparisons so many pairs, where `fewest_pairs` is null."""
    fewest_exploratory: int = PRESENT.fewest_exploratory
    """An exploratory metric takes so many: it is a hint, held to a false discovery rate, however many there are."""
    adjust_from: int | None = PRESENT.adjust_from
    """From so many complete pairs on, the place of a trial within its block and the covariates enter the interval;
    null: never. With fewer pairs each degree of freedom is worth more than what they explain, and noise that has two
    modes would give false alarms (docs/statistics.md)."""
    adjust_at_last_from: int = PRESENT.adjust_at_last_from
    """A run of at most this many blocks is never adjusted; one that ends before `adjust_from` is, at its last look."""
    covariates: tuple[str, ...] = ()
    """Names of the host's figures, measured with each trial, that enter the interval; declared before the run."""
    carry_over: bool = False
    """Whether the contender of the trial before enters the interval, from the pairs on from which covariates do, and no verdict is
    reached before: what a contender leaves behind then counts against none, at twice the variance."""
    scope: Scope = "these"
    """What verdicts are about where several machines measured."""
    in_turns: bool = False
    """Whether a block's contenders ran at the same time, in turns: place and other work are the same for all of them, and
    never enter the interval; nor is there a verdict on what they share (docs/turns.md)."""

    def __post_init__(self) -> None:
        if not 0 < self.delta_pct <= 100:
            raise InputError(f"delta is {self.delta_pct:g} %", "Give the per cent that matter, such as 1.")
        if not 0 < self.alpha < 0.5:
            raise InputError(f"alpha is {self.alpha:g}", "Give a chance of a false alarm, such as 0.05.")
        for name in ("first_look", "look_every", "max_blocks", "equivalent_from", "fewest_pairs"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise InputError(f"{name} is {number}", "Give 1 or more.")
        if self.adjust_from is not None and self.adjust_from < MOST_COVARIATES + 3:
            raise InputError(f"adjust_from is {self.adjust_from}", f"Give {MOST_COVARIATES + 3} or more.")
        if len(self.covariates) > MOST_COVARIATES:
            raise InputError(f"{len(self.covariates)} covariates are declared", f"Declare {MOST_COVARIATES} at most.")

    @property
    def adjusts_from(self) -> int | None:
        """`adjust_from`, or the maximum of a shorter run if that is `adjust_at_last_from` or more: its last look has so much of
        alpha that an order of six to one would make an effect of the place look like one of the kernel. None for never."""
        if self.adjust_from is None or self.in_turns:
            return None
        return min(self.adjust_from, max(self.adjust_at_last_from, self.max_blocks))

    @classmethod
    def of_edition(cls, edition: int, **numbers: Any) -> "Rule":
        """The rule as the given edition of the method has it. Raises InputError for one that is not known."""
        if edition not in EDITIONS:
            raise InputError(
                f"the run was planned by edition {edition} of the method, and this version knows {EDITION} at most",
                "Use the version of KDuel that made the run, or a later one.",
            )
        return cls(**msgspec.structs.asdict(EDITIONS[edition]) | numbers)

    @classmethod
    def fixed_blocks(cls, blocks: int, *, edition: int = EDITION, **numbers: Any) -> "Rule":
        """Exactly so many blocks and a single look at the end, which has all of alpha."""
        return cls.of_edition(edition, **numbers | {"first_look": blocks, "max_blocks": blocks})

    def for_comparisons(self, count: int) -> "Rule":
        """The rule with what follows from the number of primary comparisons filled in."""
        return msgspec.structs.replace(
            self, fewest_pairs=self.fewest_pairs or fewest_for(count, self.fewest_by_comparisons)
        )

    def for_exploring(self) -> "Rule":
        return msgspec.structs.replace(self, fewest_pairs=max(self.fewest, self.fewest_exploratory))

    @property
    def fewest(self) -> int:
        """The complete pairs that a verdict takes; for a single comparison unless `for_comparisons` was called."""
        least = self.fewest_pairs or fewest_for(1, self.fewest_by_comparisons)
        return max(least, self.adjusts_from or 0) if self.carry_over else least

    def looks(self) -> tuple[int, ...]:
        """The numbers of blocks after which a decision may be taken, the last one being the maximum."""
        before = range(self.first_look or self.fewest, self.max_blocks, self.look_every)
        return (*before, self.max_blocks)


def planned_rule(study: StudyResult) -> Rule:
    """The rule that a run was planned by. Raises InputError for an edition that is not known."""
    given: dict[str, Any] = {
        "edition": study.edition,
        "delta_pct": study.delta,
        "alpha": study.alpha,
        "covariates": tuple(study.covariates),
        "carry_over": study.carry_over,
        "scope": study.machines,
        "in_turns": study.in_turns,
    }
    if study.fixed is not None:
        return Rule.fixed_blocks(study.fixed, **given)
    return Rule.of_edition(**given if study.max is None else given | {"max_blocks": study.max})


def gating_rule(results: Results) -> Rule:
    """The rule that gave these results' primary metrics their verdicts: the planned one, for so many comparisons."""
    primary = sum(metric.role == "primary" and metric.scale != "exact" for metric in results.gating)
    return planned_rule(results.study).for_comparisons(primary)
