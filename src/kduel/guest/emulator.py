"""QEMU itself: its version, and its faults that look like the guest kernel's."""

import re
from collections.abc import Sequence

from kduel.guest import confine
from kduel.guest.signs import OOPS

MENDED = (8, 1)
"""The first version that locks pages before it translates them ("accel/tcg: Always lock pages before translation")."""
NO_FAULT = " It is no fault of the kernel."
"""The end of each explanation."""
_INT3 = re.compile(r"\bint3: 0000 \[#1\]")
_IN_INT3 = re.compile(r"\b(?:exc|do)_int3\+0x")

_FLAGS = re.compile(r"\bEFLAGS: ([0-9a-f]{8})\b")
_IMPOSSIBLE = 0xFFC0_0000 | 1 << 17 | 1 << 15 | 1 << 5 | 1 << 3
"""Reserved flags, which are 0 (Intel SDM 1, 3.4.3), and VM, which no 64-bit CPU has set."""
_ALWAYS = 1 << 1
"""The reserved flag that is 1."""


def qemu_version(binary: str = "qemu-system-x86_64") -> str:
    """Version of QEMU as it prints it, such as `7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)`. Raises HostError where there is none."""
    return confine.ask_qemu(binary, "--version").splitlines()[0].partition("version ")[2]


def explain_fault(console: Sequence[str], *, qemu: str, accelerator: str, cpus: int) -> str:
    """Explanation why the first oops on a console, or a lockup, is QEMU's fault; empty where it is not known to be."""
    if accelerator != "tcg":
        return ""
    return impossible_flags(console, qemu) or explain_patching_fault(console, qemu=qemu, cpus=cpus)


def impossible_flags(console: Sequence[str], qemu: str) -> str:
    """A 64-bit oops with flags that no CPU can have: the emulator lost its CPU's state (QEMU 7.2, rarely, on busy
    hosts: a double fault after `cmpxchg16b`, a general protection fault of the `iret` after it)."""
    first = OOPS.first(console)
    for line in [] if first is None else console[first:]:
        if (flags := _FLAGS.search(line)) is not None:
            found = int(flags[1], 16)
            if "RSP: " in line and (found & _IMPOSSIBLE or not found & _ALWAYS):
                return (
                    f"QEMU {qemu.split(' ')[0]} had the flags {flags[1]} in 64-bit code, which no CPU can have: the emulator "
                    f"lost the state of its CPU.{NO_FAULT}"
                )
            break
    return ""


def has_patching_fault(qemu: str, cpus: int) -> bool:
    """True if this version of QEMU is known to have the fault with so many emulated CPUs."""
    version = re.match(r"(\d{1,4})\.(\d{1,4})", qemu)
    return cpus > 1 and version is not None and (int(version[1]), int(version[2])) < MENDED


def explain_patching_fault(console: Sequence[str], *, qemu: str, cpus: int) -> str:
    """Explanation why the first oops on a console, or a lockup, is QEMU's fault; empty where it is not known to be.

    A kernel writes `int3` over an instruction while it changes its own code (static keys, ftrace). QEMU before 8.1, with
    several emulated CPUs, could translate that `int3` on one CPU and run it after another CPU had taken it away: the kernel
    finds no `int3` there, and oopses, or tries the instruction again for ever.
    """
    if not has_patching_fault(qemu, cpus):
        return ""
    first = OOPS.first(console)
    if not (any(map(_IN_INT3.search, console)) if first is None else _INT3.search(console[first])):
        return ""
    return (
        f"QEMU {qemu.split()[0]} with {cpus} emulated CPUs ran an instruction that the kernel was just patching, a fault that "
        f"QEMU 8.1 fixes.{NO_FAULT}"
    )
