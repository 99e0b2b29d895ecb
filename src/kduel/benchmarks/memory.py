"""memory: what a kernel takes of the RAM, and how much of it a program can have in the end."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.benchmarks.support.memorylog import memory_when_killed, read_boot_message, read_meminfo
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.reading import Natural, check_positive, read_file, read_json
from kduel.core.experiment import Metric

Figure = Literal["allocatable", "total", "free", "available", "slab", "code", "data", "init", "reserved"]
DATA = "rwdata + rodata"
METRICS = {
    metric.name: metric
    for metric in with_aspect(
        "memory",
        Metric("allocatable", "KiB", "higher", "What a program could write to before it was refused or killed."),
        Metric("total", "KiB", "higher", "MemTotal: RAM less what the kernel keeps permanently."),
        Metric("free", "KiB", "higher", "MemFree when this step began."),
        Metric("available", "KiB", "higher", "MemAvailable when this step began (kernels from 3.14 on)."),
        Metric("slab", "KiB", "lower", "Slab when this step began (kernels from 2.6 on)."),
        Metric("code", "KiB", "lower", "Kernel code, from the boot message 'Memory: ...'."),
        Metric("data", "KiB", "lower", "Kernel data, written and read-only, from the boot message.", derived=DATA),
        Metric("init", "KiB", "lower", "Code and data given back after boot, from the boot message."),
        Metric("reserved", "KiB", "lower", "Not given to the page allocator, from the boot message."),
    )
}
MEMINFO = {"total": "MemTotal", "free": "MemFree", "available": "MemAvailable", "slab": "Slab"}
AGREE = 0.02
"""Share by which the program's count and the kernel's account of the killed program may differ."""


class KmemOutput(Struct, frozen=True):
    page: Natural
    pages: Natural
    kib: Natural
    end: str
    signal: Natural
    errno: Natural
    pid: Natural


class MemoryParameters(Parameters, frozen=True):
    """`figures`: leave out what a contender's kernel does not report (`available` before 3.14). `most`: MiB that the
    program takes at most, 0 for all there is. Filling the memory disturbs what runs after it: name it last."""

    figures: tuple[Figure, ...] = ("allocatable", "total", "free", "available", "slab", "code", "data", "init")
    most: Annotated[int, Meta(ge=0, le=1 << 24)] = 0


class Memory(Benchmark[MemoryParameters]):
    """`Memory: ... available` is no metric: kernels that initialise late count differently at large RAM."""

    name = "memory"
    summary = "RAM that the kernel takes, and how much a program can have before it is refused or killed (our kmem)"
    programs = ("kmem",)
    trial_files = ("console.log",)
    label_formats = {"most": "most-{}m"}
    duration = 5.0

    def metrics(self, parameters: MemoryParameters) -> tuple[Metric, ...]:
        return tuple(METRICS[figure] for figure in METRICS if figure in parameters.figures)

    def script(self, parameters: MemoryParameters) -> str:
        lines = [
            'cat /proc/meminfo >"$KDUEL_STEP/meminfo"',
            'dmesg | grep "Memory: " >"$KDUEL_STEP/boot-message" || true',
        ]
        if "allocatable" in parameters.figures:
            most = f" --most {parameters.most}" if parameters.most else ""
            lines += [f'"$KDUEL_PROGRAMS/kmem"{most}', 'dmesg | grep "Killed process" >"$KDUEL_STEP/killed" || true']
        return "\n".join([*lines, ""])

    def timeout(self, parameters: MemoryParameters) -> float:
        return 600.0

    def parse(self, raw: Raw, parameters: MemoryParameters) -> dict[str, float]:
        at_boot = read_boot_message(read_file(raw, "boot-message")) or read_boot_message(
            raw.files.get("console.log", "")
        )
        # The boot message has an `available` too, which is another thing.
        told = {figure: kib for figure, kib in at_boot.items() if figure not in MEMINFO}
        seen = read_meminfo(read_file(raw, "meminfo"))
        told |= {figure: seen[name] for figure, name in MEMINFO.items() if name in seen}
        if "allocatable" in parameters.figures:
            told["allocatable"] = allocatable(raw, parameters.most)
        missing = [figure for figure in parameters.figures if figure not in told]
        if missing:
            raise ParseError(f"this kernel does not report {', '.join(missing)}: leave it out of `figures`")
        return {
            figure: check_positive(float(told[figure]), figure) for figure in METRICS if figure in parameters.figures
        }


def allocatable(raw: Raw, most: int) -> int:
    """KiB that kmem surely had. Raises ParseError where it ended unexpectedly, or the kernel's account differs."""
    taken = read_json(raw.stdout, KmemOutput, "kmem's line")
    if taken.kib != taken.pages * (taken.page // 1024):
        raise ParseError(f"kmem contradicts itself: {taken.pages} pages are not {taken.kib} KiB")
    ends = ("most",) if most else ("killed", "refused")
    if taken.end not in (*ends, "killed", "refused") or (taken.end == "killed" and taken.signal != 9):
        raise ParseError(f"kmem's child ended by itself or by signal {taken.signal}, not because memory ran out")
    if taken.end == "killed":
        account = memory_when_killed(raw.files.get("killed", ""))
        if account is not None and abs(account - taken.kib) > AGREE * max(account, taken.kib):
            raise ParseError(f"kmem counted {taken.kib} KiB, the kernel killed it with {account} KiB")
    return taken.kib


PLUGIN = Memory()
