"""memory-pressure: what reclaim does for a program that has more memory than its control group may use (our kpress)."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw, Room
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Count, Number
from kduel.benchmarks.support.reading import Natural, check_positive, check_unique, read_file, read_json, split_lines
from kduel.core.experiment import Metric
from kduel.core.toml import table_beside

ALGORITHMS = {"lz4": ("lz4_compress", "lz4"), "lzo-rle": ("lzo", "lzo_rle"), "zstd": ("zstd",)}
"""Modules of each compression."""
SWAP_SIZE = 2
"""Swap, for each MiB that is touched."""
SWAP = Metric("swap-ins", "pages", "lower", "Read from swap, by the whole machine.", "count", aspect="activity")
TIME = Metric(
    "time", "us", "lower", "Of a touch: it follows the wall clock.", "mean", aspect="operation-time",
    derived="ns / touches",
)  # fmt: skip
COUNTERS = with_aspect(
    "activity",
    Metric("major-faults", "faults", "lower", "Of the program: touches that had to wait for a page.", "count"),
    Metric("pages-scanned", "pages", "lower", "That reclaim looked at (pgscan of the group).", "count"),
    Metric("pages-reclaimed", "pages", "lower", "That reclaim took (pgsteal of the group).", "count"),
)


class PressureParameters(Parameters, frozen=True):
    """Memory that is touched, the pattern, and the place of pages that do not fit. `algorithm` is of zram and zswap."""

    memory: Literal["anonymous", "file"] = "anonymous"
    swap: Literal["zram", "disk", "zswap"] = "zram"
    """Of anonymous memory; "disk" and "zswap" use a file on the scratch disk."""
    algorithm: Literal["lz4", "lzo-rle", "zstd"] = "lz4"
    page_cluster: Annotated[int, Meta(ge=0, le=10)] = 0
    pattern: Literal["skewed", "random", "sequential"] = "skewed"
    """"skewed": nine of ten touches go to a quarter of the pages."""
    size: Annotated[int, Meta(ge=4, le=1 << 20)] = 32
    """MiB that are touched."""
    limit: Annotated[int, Meta(ge=4, le=1 << 20)] = 20
    """MiB that the group may use: its memory.max."""
    touches: Count = 30_000
    writes: Annotated[int, Meta(ge=0, le=100)] = 20
    """Of 100 touches, so many write."""
    seed: Number = 1
    read_every: Number = 0
    """Read the group's counters after so many touches, so that the kernel adds them up; 0: only before and after all."""
    huge_pages: bool = False
    """Allow the kernel huge pages as its setting has them. Their number differs from boot to boot."""

    def __post_init__(self) -> None:
        if self.limit >= self.size:
            raise ValueError(
                f"limit ({self.limit} MiB) must be below size ({self.size} MiB): nothing is reclaimed else"
            )
        if self.memory == "file" and (self.swap, self.algorithm, self.page_cluster) != ("zram", "lz4", 0):
            raise ValueError("swap, algorithm and page_cluster are of anonymous memory: leave them out")
        if self.memory == "file" and self.huge_pages:
            raise ValueError("huge_pages is of anonymous memory: leave it out")


class KpressOutput(Struct, frozen=True):
    pages: Natural
    touches: Natural
    writes: Natural
    major_faults: Natural
    minor_faults: Natural
    ns: Natural


class MemoryPressure(Benchmark[PressureParameters]):
    """Counters do not depend on how fast the machine is. The group's PSI does, and `workingset_refault` counts other
    things with MGLRU than without: neither is a metric. MGLRU is a setting of the contender:
    `sysctl=/sys/kernel/mm/lru_gen/enabled=0x0007`. With `huge_pages`, `/sys/kernel/mm/transparent_hugepage/enabled` is,
    too."""

    name = "memory-pressure"
    summary = "Faults and reclaim of a program that has too little memory, with swap on zram, disk or zswap, or a mapped file (our kpress)"
    programs = ("kpress",)
    label_template = "pressure-{memory}-{pattern}"
    label_formats = {"swap": "{}", "algorithm": "{}", "size": "{}m", "limit": "of-{}m", "touches": "{}x"}
    needs_scratch = True

    def metrics(self, parameters: PressureParameters) -> tuple[Metric, ...]:
        return (*COUNTERS, *((SWAP,) if parameters.memory == "anonymous" else ()), TIME)

    def loaded_modules(self, parameters: PressureParameters) -> tuple[str, ...]:
        if parameters.memory == "file" or parameters.swap == "disk":
            return ()
        compressed = ("zsmalloc", *ALGORITHMS[parameters.algorithm])
        return (*compressed, "zram") if parameters.swap == "zram" else compressed

    def room(self, parameters: PressureParameters) -> Room:
        p = parameters
        # Half of each page does not compress.
        compressed = (p.size - p.limit) / 2 if p.memory == "anonymous" and p.swap == "zram" else 0
        scratch = p.size if p.memory == "file" else SWAP_SIZE * p.size if p.swap != "zram" else 0
        return Room(memory=p.limit + compressed, scratch=scratch, keys="size or limit")

    def script(self, parameters: PressureParameters) -> str:
        p = parameters
        shell: dict[str, str] = table_beside(__file__)
        file, swap = ' --file "$KDUEL_SCRATCH/file"', ""
        if p.memory == "anonymous":
            file, swap = "", shell[p.swap].format(algorithm=p.algorithm, mib=SWAP_SIZE * p.size, pages=p.page_cluster)
        return (
            shell["group"].format(limit=p.limit)
            + swap
            + 'cd "$KDUEL_STEP"\n'
            + 'sh -ec \'echo $$ >"$0/cgroup.procs"; exec "$@"\' "$group" "$KDUEL_PROGRAMS/kpress"'
            + f" --mib {p.size} --touches {p.touches} --pattern {p.pattern} --seed {p.seed} --writes {p.writes}{file}"
            + (" --huge 1" if p.huge_pages else "")
            + (f" --read-every {p.read_every}" if p.read_every else "")
            + ' "$group/memory.stat" /proc/vmstat || {\n'
            + shell["killed"]
        )

    def seconds(self, parameters: PressureParameters) -> float:
        return 2.0 + parameters.touches * 1e-4

    def parse(self, raw: Raw, parameters: PressureParameters) -> dict[str, float]:
        told = read_json(raw.stdout, KpressOutput, "kpress's line")
        if (told.pages, told.touches) != (parameters.size * 256, parameters.touches):
            raise ParseError(f"kpress touched {told.pages} pages {told.touches} times, which was not asked for")
        rows = [line.split(" ") for line in split_lines(read_file(raw, "counters"), "counters")]
        if any(len(row) != 3 for row in rows):
            raise ParseError("a line of counters is not a file, a name and a number")
        check_unique((f"{file} {name}" for file, name, _ in rows), "the counter")
        grown = {f"{file} {name}": growth for file, name, growth in rows}

        def growth(name: str) -> float:
            if not (text := grown.get(name, "")).isdecimal():
                raise ParseError(
                    f"the counter {name} is {text[:40]!r}, not a number" if text else f"this kernel has no {name}"
                )
            return float(text)

        # The group's counters are brought up to date with a delay of some hundred events.
        faults = growth("memory.stat pgmajfault")
        if abs(faults - told.major_faults) > max(512, 0.1 * told.major_faults):
            raise ParseError(f"kpress had {told.major_faults} major faults, its group {faults:g}")
        values = {
            "major-faults": check_positive(told.major_faults, "the number of major faults"),
            "pages-scanned": growth("memory.stat pgscan"),
            "pages-reclaimed": growth("memory.stat pgsteal"),
            "time": check_positive(told.ns / told.touches / 1000, "the time"),
        }
        if parameters.memory == "anonymous":
            # What zswap holds compressed does not come from swap for the kernel.
            zswap = growth("vmstat zswpin") if parameters.swap == "zswap" else 0.0
            values["swap-ins"] = growth("vmstat pswpin") + zswap
        return values


PLUGIN = MemoryPressure()
