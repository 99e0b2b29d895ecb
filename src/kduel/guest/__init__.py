"""What runs in a guest: its root, its initramfs, its script, and how its results are sent to the host."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def own_file(name: str) -> bytes:
    """A file of this folder, read once: all guests of a run get the same, whatever becomes of the file meanwhile."""
    return files("kduel.guest").joinpath(name).read_bytes()
