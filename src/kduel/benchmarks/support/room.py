"""Room that a benchmark takes of its machine: one that is too small is refused before it boots."""

from msgspec import Struct


class Room(Struct, frozen=True, kw_only=True):
    """MiB that a script takes at least; 0 where that is little."""

    memory: float = 0
    scratch: float = 0
    """Of the scratch disk."""
    keys: str = "size"
    """The parameters that determine it, in words."""
