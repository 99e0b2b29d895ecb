"""Record of turns: how the guests of a block, all alive at once, shared the host's time.

Each trial of such a block has one, in the file TURNS_FILE of its directory.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

TURNS_FILE = "turns.json"
TURNS_SCHEMA = 1
MOST_MS = 10_000
"""The longest turn that a study may ask for."""
Turns = int | Literal["off"]
"""Milliseconds of a turn; 0: whole slices in turn; "off": one boot after the other."""


class StepTurns(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One step or slice of a trial in turns. Seconds are the host's, but for `guest_seconds`."""

    turns: int
    """How often it was let go, the last piece that it ran alone included."""
    running_seconds: float
    """From each answer to `cont` to the next answer to `stop`, together."""
    held_seconds: float
    """From its begin to its end, those in which it was held."""
    longest_stop_seconds: float
    """The longest that QEMU took to answer `stop`."""
    alone_seconds: float
    """Of the running seconds, those after all partners had ended the step, or while it had none left."""
    overlap_seconds: float
    """Of the running seconds, those in which a partner ran, too: while QEMU had not answered yet."""
    guest_seconds: float | None = None
    """The step's length by the guest's clock; null where the guest did not say."""
    windows: list[tuple[float, float]] = field(default_factory=list)
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
