"""Parts that run in a guest: its root, its initramfs, its script, and how its results are sent to the host."""

from functools import cache
from importlib.resources import files


@cache
def own_file(name: str) -> bytes:
    """A file of this folder, read once: all guests of a run get the same, whatever becomes of the file meanwhile."""
    return files("kduel.guest").joinpath(name).read_bytes()


QUICK = b"#quick"
"""Ends a line of a guest's script that only saves time."""


def own_script(name: str, *, quick: bool = False) -> bytes:
    """A script of this folder, with the lines marked QUICK only where the guest is to be quick: not where
    instructions are counted, which such lines move by up to a thousandth, nor on a board, whose busybox may be
    any."""
    lines = own_file(name).splitlines(keepends=True)
    return b"".join(line for line in lines if quick or not line.rstrip().endswith(QUICK))
