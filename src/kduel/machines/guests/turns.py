"""Several exact CPUs of one speed: their turns, how they come online, and whether each got what it should (plug-in
`turns`). An idle CPU polls, so that each of N CPUs executes one instruction in N nanoseconds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from kduel.benchmarks.support import schedstat
from kduel.benchmarks.support.reading import Natural
from kduel.core.errors import InputError
from kduel.core.text import plural

QUANTUM = 10_000
TURNS = "cpu-turns.json"
"""The trial's file with what each CPU executed."""
CMDLINE = "idle=poll maxcpus=1"
"""An idle CPU polls; with one CPU online the boot takes no longer than an ordinary one."""
UNEVEN = "uneven-turns"
"""Code of a void trial in which CPUs did not have the same speed."""
LAG = 16
"""Turns that a CPU may be behind, as the plug-in has it."""
WARNING = (
    "Times are virtual: {cpus} CPUs of one constant speed, each of which executes one instruction in {cpus} ns, in turns of "
    "{quantum:,} instructions. They show what the scheduler decides, not the speed of hardware: there are no caches, no threads "
    "that slow each other down, no sleep states, and interrupts between CPUs arrive at the next turn. Differences are not "
    "resolved below {resolution} us, or below what a CPU was once behind in a trial."
)

Quantum = Annotated[int, Meta(ge=1000, le=1_000_000)]


class Turns(Struct, frozen=True, forbid_unknown_fields=True):
    """Account of the plug-in, from when the last CPU came online to when the first one halted."""

    quantum: Natural
    behind: Natural
    """The most instructions that a CPU had still to get."""
    waited: Natural
    """Times that a CPU waited for one that was further behind than LAG turns."""
    passed_over: Natural
    """Turns that QEMU did not give to the CPU whose turn it was; it got them later."""
    over: Natural
    """The most by which a turn was too long: one block of code."""
    polls: bool
    """True if no CPU halted before the guest switched itself off."""
    cpus: list[tuple[Natural, Natural]]
    """Turns and instructions of each."""


def bring_online(cpus: int, *, descending: bool) -> str:
    """Shell lines before the script: all CPUs online, in one order or the other; scheduling statistics on."""
    order = range(1, cpus)
    numbers = " ".join(map(str, reversed(order) if descending else order))
    return f"for cpu in {numbers}; do echo 1 >/sys/devices/system/cpu/cpu$cpu/online; done\n{schedstat.ENABLE}"


def check_numbers(numbers: Sequence[int], *, scheduling: bool) -> None:
    """Raises InputError for numbers of CPUs, ascending, that cannot be compared. All have the speed of those of the largest
    machine by the length of the clock's step, which is a power of two."""
    most = numbers[-1]
    if scheduling and numbers[0] < 2:
        raise InputError("machine icount: scheduling takes two CPUs at least", "Give cpus = 2 to 16.")
    if scheduling and any(most % few or (most // few).bit_count() > 1 for few in numbers):
        raise InputError(
            f"machine icount: {', '.join(map(str, numbers))} CPUs cannot all have one speed",
            "Give numbers that are each a half, a quarter, ... of the largest, such as 2, 4 and 8.",
        )
    if numbers[0] == 1 and most > 1:
        raise InputError(
            "machine icount: one CPU counts instructions, and several count shared cache lines: they cannot be compared",
            "Give two CPUs at least to all contenders.",
        )


def warning(cpus: int, quantum: int) -> str:
    """Sentences on what times of such a machine are."""
    return WARNING.format(cpus=cpus, quantum=quantum, resolution=f"{resolution(cpus, quantum) / 1000:,g}")


def resolution(cpus: int, quantum: int) -> int:
    """Nanoseconds in which each CPU has its turn: what is shorter is not resolved."""
    return cpus * quantum


def resolution_of_trial(file: Path, cpus: int) -> int:
    """Nanoseconds that a trial resolves: more than `resolution` where a CPU was once several turns behind, whose work comes later."""
    found = msgspec.json.decode(file.read_bytes(), type=Turns)
    return resolution(cpus, max(found.quantum, found.behind))


def why_uneven(file: Path, cpus: int, quantum: int) -> str:
    """Reason why the CPUs of a trial did not have the same speed; empty where they had."""
    try:
        found = msgspec.json.decode(file.read_bytes(), type=Turns)
    except (OSError, msgspec.DecodeError) as error:
        return f"the plug-in left no account of turns ({error})"
    executed = [each for _, each in found.cpus]
    if len(executed) != cpus or found.quantum != quantum or not all(executed):
        return f"not all of {plural(cpus, 'CPU')} came online"
    if not found.polls:
        return "an idle CPU halted: the kernel does not poll"
    if found.behind > (LAG + 1) * quantum:
        return f"a CPU was behind by {found.behind:,} instructions"
    if max(executed) - min(executed) > (LAG + 1) * quantum + found.over:
        return f"the CPUs executed {min(executed):,} to {max(executed):,} instructions"
    return ""
