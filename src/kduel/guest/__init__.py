"""What runs in a guest: its root, its initramfs, its script, and how its results are sent to the host."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def own_file(name: str) -> bytes:
    """A file of this folder, read once: all guests of a run get the same, whatever becomes of the file meanwhile."""
    return files("kduel.guest").joinpath(name).read_bytes()


TIMED = b"#timed"
"""Ends a line of a guest's script that only guests whose time is measured have."""


def own_script(name: str, *, counted: bool = False) -> bytes:
    """A script of this folder. `counted`: for a guest whose instructions are counted, without the lines marked TIMED.

    What a guest runs before its benchmarks moves its exact counts, by up to a thousandth in a check with eight
    operations. So what only saves time is left out there, and counts of different versions stay comparable.
    """
    lines = own_file(name).splitlines(keepends=True)
    return b"".join(line for line in lines if not (counted and line.rstrip().endswith(TIMED)))
