"""Kinds of evidence: what part chance has in a number."""

from enum import IntEnum


class Evidence(IntEnum):
    """From the evidence in which chance has no part to that in which it has most, for comparisons."""

    COUNTED = 0
    """Counted by an exact machine, or a size that is the same in every trial: one value is enough."""
    CONSTANT = 1
    """A measured number that did not vary: coarse, or a count."""
    VARYING = 2
    """A number that should be the same in every trial, and is not."""
    SAMPLED = 3
    """A sample of what varies by chance: a time, a rate."""

    @property
    def varies(self) -> bool:
        """True if another trial gives another value."""
        return self >= Evidence.VARYING
