"""Editions of the method: how orders are drawn and verdicts reached (docs/statistics.md; docs/architecture.md says
how to add one). A run keeps the edition that it was planned by; without one the first."""

from msgspec import Struct


class Edition(Struct, frozen=True, kw_only=True):
    """All numbers of an edition of the method that a study does not choose. A record is never changed: runs are judged by
    the edition with which they were planned, so other numbers are a new edition."""

    first_look: int | None
    look_every: int
    fewest_pairs: int | None
    fewest_by_comparisons: tuple[tuple[int, int], ...]
    fewest_exploratory: int
    equivalent_from: int
    adjust_from: int | None
    adjust_at_last_from: int
    max_blocks: int


EDITIONS = {
    1: Edition(
        first_look=6, look_every=2, fewest_pairs=5, fewest_by_comparisons=(), fewest_exploratory=5,
        equivalent_from=10, adjust_from=None, adjust_at_last_from=7, max_blocks=20,
    ),
    2: Edition(
        first_look=None, look_every=1, fewest_pairs=None, fewest_by_comparisons=((1, 4), (7, 5), (60, 6)),
        fewest_exploratory=5, equivalent_from=10, adjust_from=10, adjust_at_last_from=7, max_blocks=20,
    ),
}  # fmt: skip
EDITION = max(EDITIONS)
"""The present one, by which new runs are planned."""
