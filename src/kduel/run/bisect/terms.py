"""The request of a search under noise, its progress, and a measurement."""

from typing import Literal

from msgspec import Struct

from kduel.core.errors import NotMeasuredError

Phase = Literal["search", "confirmation"]


class Unmeasurable(NotMeasuredError):
    """A commit that does not build, boot or give a number. The search goes on without it."""


class SearchSettings(Struct, frozen=True, kw_only=True):
    """Aim and limits of a search."""

    probability: float = 0.95
    most: int = 400
    """Measurements of the search; the confirmation comes on top."""
    confirm: int = 12
    """Blocks of the confirmation at most; 0 for none."""
    negligible: float = 1.0
    """Per cent: a difference between the ends that is surely below is none."""
    seed: int = 1


class State(Struct, frozen=True, kw_only=True):
    """State of a search after a block."""

    phase: Phase
    block: int
    measurements: int
    set_size: int
    probability: float
    best: str
    best_probability: float
    certain: bool
    """True if it is established that there is a change."""
    blocks_left: int | None
    """Expected; None while nothing is known."""


class Split(Struct, frozen=True):
    """A commit whose level is neither end's: there are several changes. The search goes on where the larger one is."""

    low: str
    high: str


MOST_DECIMALS = 6


def decimals(value: float) -> int:
    """Decimals of the shortest way to write a value; more than MOST_DECIMALS count as any number of them."""
    text = repr(value)
    if "e" in text:
        return MOST_DECIMALS + 1
    part = text.partition(".")[2]
    return 0 if part == "0" else len(part)
