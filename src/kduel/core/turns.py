"""Record of turns: how a block's guests, alive at once, shared the host's time; TURNS_FILE of each trial."""

import random
from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from kduel.core.orders import Order, shuffle, williams

TURNS_FILE = "turns.json"
TURNS_SCHEMA = 1
DEFAULT_MS = 50
"""The length of turns where guests are emulated and a study does not say: shorter ones gain nothing more (docs/turns.md)."""
LEAST_MS, MOST_MS = 10, 10_000
"""The shortest and the longest turn that a study may ask for: `cont` and `stop` take more than 1 ms."""
Turns = int | Literal["off"]
"""Milliseconds of a turn; 0: whole slices in turn; "off": one boot after the other."""
FEWEST_ROUNDS = 4
"""Rounds of a balanced batch, or the next multiple of what balances the guests."""
Seconds = Annotated[float, Meta(ge=0)]


def draw_rounds(guests: int, seed: str) -> Iterator[Order]:
    """The order of `range(guests)` in each round of turns of a step, without end: in batches, drawn, over which each
    guest has each place and follows each other equally often, so that no period of the host meets one guest alone."""
    if guests < 2:
        raise ValueError(f"{guests} guests take no turns")
    rounds = [order for square in williams(guests) for order in square]
    rounds *= -(-FEWEST_ROUNDS // len(rounds))
    draw = random.Random(seed)
    while True:
        for index in shuffle(draw, list(range(len(rounds)))):
            yield rounds[index]


class StepTurns(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One step or slice of a trial in turns. Seconds are the host's, but for `guest_seconds`."""

    turns: Annotated[int, Meta(ge=1)]
    """How often it was let go, the last piece that it ran alone included."""
    running_seconds: Seconds
    """From each `cont` to the next `stop`, as QEMU did them, together."""
    held_seconds: Seconds
    """From its begin to its end, those in which it was held."""
    longest_stop_seconds: Seconds
    """The longest that QEMU took to answer `stop`."""
    alone_seconds: Seconds
    """Of the running seconds, those after all partners had ended the step, or while it had none left."""
    overlap_seconds: Seconds
    """Seconds that its CPUs ran while it was held, and a partner ran."""
    guest_seconds: float | None = None
    """The step's length by the guest's clock; null where the guest did not say."""
    windows: list[tuple[float, Seconds]] = field(default_factory=list)
    """Begin of each turn, in seconds since the block's first guest was started, and its length."""


class TrialTurns(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file TURNS_FILE."""

    schema: int = TURNS_SCHEMA
    turns_ms: int
    """Of the run; 0: whole slices in turn."""
    partners: list[int]
    """Numbers of the trials that were alive at the same time, as their names begin with them."""
    place: int
    """Which guest of its block it was, from 1, in the order of their starts."""
    steps: dict[str, StepTurns] = field(default_factory=dict)
    """By the name of the step's directory, such as 01-sysbench-cpu.s2."""
