"""The rule of a verdict: what counts as an effect, how sure one must be, and when one looks."""

from __future__ import annotations

from msgspec import Struct

from kduel.core.errors import InputError

FEWEST_PAIRS = 5
"""No statistical verdict rests on fewer complete pairs: with two to four, noise that has two modes gives more
false alarms than alpha (perf/verdict_calibration.py shows how many)."""


class Rule(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The stopping rule of a run. Numbers of blocks count the blocks of the run, complete or not.

    Raises InputError, when made, for numbers that cannot be meant.
    """

    delta_pct: float = 1.0
    """The smallest effect of interest, in per cent."""
    alpha: float = 0.05
    """The chance of a false alarm, over all primary comparisons and all looks together."""
    first_look: int = 6
    look_every: int = 2
    max_blocks: int = 20
    equivalent_from: int = 10
    """"equivalent" and "equal" need so many complete pairs: fewer would miss a slow mode too easily."""

    def __post_init__(self) -> None:
        if not 0 < self.delta_pct <= 100:
            raise InputError(f"delta is {self.delta_pct:g} %", "Give the per cent that matter, such as 1.")
        if not 0 < self.alpha < 0.5:
            raise InputError(f"alpha is {self.alpha:g}", "Give a chance of a false alarm, such as 0.05.")
        for name in ("first_look", "look_every", "max_blocks", "equivalent_from"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}", "Give 1 or more.")

    @classmethod
    def fixed(cls, blocks: int, *, delta_pct: float = 1.0, alpha: float = 0.05) -> Rule:
        """Exactly so many blocks and a single look at the end, which has all of alpha."""
        return cls(delta_pct=delta_pct, alpha=alpha, first_look=blocks, max_blocks=blocks)

    def looks(self) -> tuple[int, ...]:
        """The numbers of blocks after which a decision may be taken, the last one being the maximum."""
        before = range(self.first_look, self.max_blocks, self.look_every)
        return (*before, self.max_blocks)
