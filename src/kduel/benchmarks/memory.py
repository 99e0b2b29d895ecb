"""memory: what a kernel takes of the RAM, and how much of it a program can have in the end."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from kduel.benchmarks import Benchmark, ParseError, Raw
from kduel.benchmarks.support.memorylog import boot_message, killed_with, meminfo
from kduel.benchmarks.support.parameters import label_of
from kduel.benchmarks.support.reading import Natural, file, json, positive
from kduel.core.experiment import Metric

Figure = Literal["allocatable", "total", "free", "available", "slab", "code", "data", "init", "reserved"]
METRICS = {
    "allocatable": Metric(
        "allocatable",
        "KiB",
        "higher",
        "What a program could write to before it was refused or killed.",
        aspect="memory",
    ),
    "total": Metric(
        "total", "KiB", "higher", "MemTotal: RAM less what the kernel keeps permanently.", aspect="memory"
    ),
    "free": Metric("free", "KiB", "higher", "MemFree when this step began.", aspect="memory"),
    "available": Metric(
        "available", "KiB", "higher", "MemAvailable when this step began (kernels from 3.14 on).", aspect="memory"
    ),
    "slab": Metric("slab", "KiB", "lower", "Slab when this step began (kernels from 2.6 on).", aspect="memory"),
    "code": Metric("code", "KiB", "lower", "Kernel code, from the boot message 'Memory: ...'.", aspect="memory"),
    "data": Metric(
        "data",
        "KiB",
        "lower",
        "Kernel data, written and read-only, from the boot message.",
        derived="rwdata + rodata",
        aspect="memory",
    ),
    "init": Metric(
        "init", "KiB", "lower", "Code and data given back after boot, from the boot message.", aspect="memory"
    ),
    "reserved": Metric(
        "reserved", "KiB", "lower", "Not given to the page allocator, from the boot message.", aspect="memory"
    ),
}
MEMINFO = {"total": "MemTotal", "free": "MemFree", "available": "MemAvailable", "slab": "Slab"}
AGREE = 0.02
"""By how much the program's count and the kernel's account of what it killed may differ."""


class Taken(Struct, frozen=True):
    """kmem's line."""

    page: Natural
    pages: Natural
    kib: Natural
    end: str
    signal: Natural
    errno: Natural
    pid: Natural


class Memory(Benchmark):
    """`Memory: ... available` is no metric: kernels that initialise late count differently at large RAM."""

    name = "memory"
    summary = "RAM that the kernel takes, and how much a program can have before it is refused or killed (our kmem)"
    programs = ("kmem",)
    trial_files = ("console.log",)

    class Parameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """`figures`: leave out what a contender's kernel does not report (`available` before 3.14). `most`: MiB that the
        program takes at most, 0 for all there is. Filling the memory disturbs what runs after it: name it last."""

        figures: tuple[Figure, ...] = ("allocatable", "total", "free", "available", "slab", "code", "data", "init")
        most: Annotated[int, Meta(ge=0, le=1 << 24)] = 0

    def label(self, parameters: Any) -> str:
        return label_of("memory", parameters, most="most-{}m")

    def metrics(self, parameters: Any) -> tuple[Metric, ...]:
        return tuple(METRICS[figure] for figure in METRICS if figure in parameters.figures)

    def script(self, parameters: Any) -> str:
        lines = [
            'cat /proc/meminfo >"$KDUEL_STEP/meminfo"',
            'dmesg | grep "Memory: " >"$KDUEL_STEP/boot-message" || true',
        ]
        if "allocatable" in parameters.figures:
            most = f" --most {parameters.most}" if parameters.most else ""
            lines += [
                f'"$KDUEL_PROGRAMS/kmem"{most}',
                'dmesg | grep "Killed process" >"$KDUEL_STEP/killed" || true',
            ]
        return "\n".join([*lines, ""])

    def seconds(self, parameters: Any) -> float:
        return 5.0

    def timeout(self, parameters: Any) -> float:
        return 600.0

    def parse(self, raw: Raw, parameters: Any) -> dict[str, float]:
        at_boot = boot_message(file(raw, "boot-message")) or boot_message(raw.files.get("console.log", ""))
        # The boot message has an `available` too, which is another thing.
        told = {figure: kib for figure, kib in at_boot.items() if figure not in MEMINFO}
        seen = meminfo(file(raw, "meminfo"))
        told |= {figure: seen[name] for figure, name in MEMINFO.items() if name in seen}
        if "allocatable" in parameters.figures:
            told["allocatable"] = allocatable(raw, parameters.most)
        missing = [figure for figure in parameters.figures if figure not in told]
        if missing:
            raise ParseError(f"this kernel does not report {', '.join(missing)}: leave it out of `figures`")
        return {figure: positive(float(told[figure]), figure) for figure in METRICS if figure in parameters.figures}


def allocatable(raw: Raw, most: int) -> int:
    """KiB that kmem surely had. Raises ParseError where it ended otherwise than it should, or where the kernel's own
    account of it differs."""
    taken = json(raw.stdout, Taken, "kmem's line")
    if taken.kib != taken.pages * (taken.page // 1024):
        raise ParseError(f"kmem contradicts itself: {taken.pages} pages are not {taken.kib} KiB")
    ends = ("most",) if most else ("killed", "refused")
    if taken.end not in (*ends, "killed", "refused") or (taken.end == "killed" and taken.signal != 9):
        raise ParseError(f"kmem's child ended by itself or by signal {taken.signal}, not because memory ran out")
    if taken.end == "killed":
        account = killed_with(raw.files.get("killed", ""))
        if account is not None and abs(account - taken.kib) > AGREE * max(account, taken.kib):
            raise ParseError(f"kmem counted {taken.kib} KiB, the kernel killed it with {account} KiB")
    return taken.kib


PLUGIN = Memory()
