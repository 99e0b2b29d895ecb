"""Faults of QEMU itself that look like the guest kernel's, by QEMU's version."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kduel.guest.signs import OOPS

MENDED = (8, 1)
"""The first version that locks pages before it translates them ("accel/tcg: Always lock pages before translation")."""
_INT3 = re.compile(r"\bint3: 0000 \[#1\]")


def patching_fault(console: Sequence[str], *, qemu: str, accelerator: str, cpus: int) -> str:
    """Why the first oops on a console is QEMU's fault, in words; empty where it is not known to be.

    A kernel writes `int3` over an instruction while it changes its own code (static keys, ftrace). QEMU before 8.1, with
    several emulated CPUs, could translate that `int3` on one CPU and run it after another CPU had taken it away.
    """
    version = re.match(r"(\d{1,4})\.(\d{1,4})", qemu)
    if accelerator != "tcg" or cpus < 2 or version is None or (int(version[1]), int(version[2])) >= MENDED:
        return ""
    first = OOPS.first(console)
    if first is None or not _INT3.search(console[first]):
        return ""
    return (
        f"QEMU {version[0]} with {cpus} emulated CPUs ran an instruction that the kernel was just patching, a fault that "
        "QEMU 8.1 mends. It says nothing of the kernel."
    )
