"""The lines that two CPUs share in an operation, by name, in one kernel and in two."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from statistics import fmean, median
from types import MappingProxyType
from typing import Literal

from msgspec import Struct, field

from kduel.explain.sharing.lines import Namer, trim_field
from kduel.explain.symbols import UNKNOWN, Symbols

SCHEMA = 1
"""Schema of the output of `explain --sharing --format json`."""
KEPT_AS = "sharing"
"""Last word of the name of an explanation that is kept in a run."""
HELPERS = (
    "_raw_", "native_queued_", "queued_", "lockref_", "refcount_", "__refcount", "up_", "down_", "mutex_", "__mutex", "rwsem_",
    "__rwsem", "percpu_counter_", "__percpu_counter", "__list_", "rb_", "__rb_", "rep_movs", "memset", "memcpy", "osq_", "llist_",
    "xa_", "xas_", "dput", "dget", "mntput", "mntget", "path_put", "path_get", "_atomic",
)  # fmt: skip
"""Functions whose caller says more than they: beginnings of their names."""
KMALLOC = "kmalloc-"
"""How the caches of memory of any kind are called."""
READS, WRITES, INVALIDATES = "R", "W", "I"
"""Reason why a line moved: it reads what another CPU wrote; it writes what another wrote; it writes what another has read."""
OBJECT = re.compile(r"[^.+]+")
"""A variable or a cache, before a field or a place."""
UNION = re.compile(r"\|[^,\s.]*(?:\.\.\.)?")
"""All fields of a union but the first."""


class Line(Struct, frozen=True, array_like=True):
    """A line that moved, or that an operation used, as the plug-in writes it."""

    physical: int
    address: int
    shared: int
    """Bytes in true sharing, a bit each."""
    moving: int
    """Bytes accessed when it moved, a bit each."""
    used: int
    """Bytes that the CPU of an operation used in it."""
    operations: int
    """Number of operations whose CPU used it."""

    @property
    def bytes(self) -> int:
        """The bytes for which it moved, of them those that both use if there are any."""
        return self.shared & self.moving or self.moving


class Site(Struct, frozen=True, array_like=True):
    """Moves of a line at one place of the code: address, last call and what it called, of both sides."""

    line: int
    here: tuple[int, int, int]
    there: tuple[int, int, int]
    kind: str
    cpu: int
    other_cpu: int
    inside: bool
    times: int
    untrue: int


class Region(Struct, frozen=True):
    """A region with its details, as the plug-in writes it."""

    region: int
    cpus: int
    operations: list[tuple[int, ...]]
    lines: list[Line] = []
    sites: list[Site] = []


class Meeting(Struct, frozen=True):
    """Function that takes a line, and the function that it takes it from."""

    function: str
    """With its caller behind `<`, where it is a helper."""
    kind: str
    other: str
    """Function that used the line last on the other CPU."""
    times: float
    """Per operation."""


class SharedLine(Struct, kw_only=True):
    """A line, or several of one name, per operation."""

    name: str
    """Empty where it has none."""
    times: float
    false: float
    """Share of the moves that were for bytes which the other CPU does not use."""
    meetings: list[Meeting]


class TouchedLine(Struct):
    """Lines of one object of which operations use the same fields."""

    thing: str
    """Structure, slab cache or variable; empty where it has no name."""
    fields: list[str]
    times: float
    """Per operation."""


class SharedBy(Struct, kw_only=True):
    """Lines that one kernel shares in an operation, under the plain condition."""

    contender: str
    release: str
    median: float
    mean: float
    lines: list[SharedLine]
    accesses: float | None = None
    """Loads and stores of the usual operation to the lines that move in it; None where they were not counted."""
    locked: float | None = None
    """Locked operations among them."""
    touched: list[TouchedLine] = []
    """Lines that an operation uses, whether they move or not."""
    note: str = ""
    """Reason why something is not named that others have."""


class Row(Struct, kw_only=True):
    """A line in several kernels."""

    name: str
    change: Literal["gone", "new", "fewer", "more", "kept"]
    """From the first kernel to the last one."""
    lines: list[SharedLine | None]
    """By kernel."""

    @property
    def times(self) -> list[float]:
        return [line.times if line else 0.0 for line in self.lines]

    @property
    def latest(self) -> SharedLine:
        return next(line for line in reversed(self.lines) if line)


class SharingExplanation(Struct, kw_only=True):
    """The lines of an operation in several kernels."""

    schema: int = SCHEMA
    benchmark: str
    kernels: list[SharedBy]
    rows: list[Row]
    qemu: str = ""
    notes: list[str] = field(default_factory=list)


Allocators = Mapping[tuple[str, str, str], Set[str]]
"""Functions that allocated objects of a slab cache, by the cache and the functions that fight over them."""


def allocators(region: Region, namer: Namer, symbols: Symbols) -> Allocators:
    """Functions that allocated the objects of kmalloc, in a boot in which the kernel keeps that."""
    found: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    by_place = {line.physical: line for line in region.lines}
    for site in region.sites:
        line = by_place[site.line]
        name = namer.name(line.physical, line.address, line.bytes)
        if name.startswith(KMALLOC) and (address := namer.allocator(line.physical, line.bytes)):
            found[site_key(name, site, symbols)].add(symbols.function(address))
    return found


def site_key(name: str, site: Site, symbols: Symbols) -> tuple[str, str, str]:
    """Key of an allocation site in Allocators."""
    return name.partition("+")[0], function_with_caller(site.here, symbols), function_with_caller(site.there, symbols)


def with_allocators(name: str, sites: Iterable[Site], symbols: Symbols, known: Allocators) -> str:
    """`kmalloc-512+64 from alloc_thing`."""
    found = sorted({one for site in sites for one in known.get(site_key(name, site, symbols), ())} - {UNKNOWN})
    return f"{name} from {' or '.join(found[:2])}{' or others' * (len(found) > 2)}" if found else name


def shared_by(
    contender: str,
    release: str,
    region: Region,
    namer: Namer,
    symbols: Symbols,
    known: Allocators = MappingProxyType({}),
) -> SharedBy:
    """The lines of a region by name, the most frequent first. Only what the calling CPU did counts."""
    count = len(region.operations)
    moving = {site.line for site in region.sites}
    names = {
        line.physical: namer.name(line.physical, line.address, line.bytes)
        for line in region.lines
        if line.physical in moving
    }
    if known:
        sites_of: dict[int, list[Site]] = defaultdict(list)
        for site in region.sites:
            sites_of[site.line].append(site)
        names = {
            place: with_allocators(name, sites_of[place], symbols, known) if name.startswith(KMALLOC) else name
            for place, name in names.items()
        }
    by_name: dict[str, list[Site]] = defaultdict(list)
    for site in region.sites:
        if site.inside:
            by_name[
                without_other_fields(names[site.line])
                or f"{function_with_caller(site.here, symbols)} ~ {function_with_caller(site.there, symbols)}"
            ].append(site)
    full = {without_other_fields(name): name for name in sorted(names.values())}
    lines = [
        SharedLine(
            name=full.get(name, ""),
            times=sum(site.times for site in sites) / count,
            false=sum(site.untrue for site in sites) / sum(site.times for site in sites),
            meetings=find_meetings(sites, symbols, count),
        )
        for name, sites in by_name.items()
    ]
    lines.sort(key=lambda line: (-line.times, line.name))
    steady, amortised = over_rounds(region)
    return SharedBy(
        contender=contender, release=release, median=steady, mean=amortised, lines=lines,
        accesses=over_rounds(region, ACCESSES)[0], locked=over_rounds(region, LOCKED)[0],
        touched=touched_lines(region, namer),
    )  # fmt: skip


INSIDE, ACCESSES, LOCKED = 1, 4, 5
"""Places in the plug-in's record of an operation: lines that moved in what its CPU did, and what it did to them."""


def over_rounds(region: Region, part: int = INSIDE) -> tuple[float, float]:
    """Median and mean over rounds of the mean over CPUs."""
    turns = [
        fmean(one[part] for one in region.operations[at : at + region.cpus])
        for at in range(0, len(region.operations), region.cpus)
    ]
    return median(turns), fmean(turns)


def touched_lines(region: Region, namer: Namer) -> list[TouchedLine]:
    """The lines that operations use, per operation, by object and fields."""
    found: Counter[tuple[str, ...]] = Counter()
    for line in region.lines:
        if line.operations:
            start, names = namer.parts(line.physical, line.address, line.used)
            thing = start.removesuffix(".")
            if names and not start.endswith("."):  # A variable, or a place in memory of a size class.
                head = OBJECT.match(names[0])
                thing += head[0] if head else names[0]
            fields = dict.fromkeys(trim_field(without_other_fields(name)) for name in names)
            found[thing, *fields] += line.operations
    return [
        TouchedLine(thing, fields, times / len(region.operations))
        for (thing, *fields), times in sorted(found.items())
    ]


def find_meetings(sites: Iterable[Site], symbols: Symbols, count: int) -> list[Meeting]:
    """Pairs of functions that take it from each other, the most frequent first."""
    found: Counter[tuple[str, str, str]] = Counter()
    for site in sites:
        found[function_with_caller(site.here, symbols), site.kind, function_with_caller(site.there, symbols)] += (
            site.times
        )
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return [Meeting(here, kind, there, times / count) for (here, kind, there), times in ordered]


def function_with_caller(place: Sequence[int], symbols: Symbols) -> str:
    """`_raw_spin_lock < d_alloc`: a helper's caller is known where its call was the last one."""
    address, call, target = place
    name = symbols.function(address)
    if name.startswith(HELPERS) and symbols.start(address) == symbols.start(target):
        caller = symbols.function(call)
        return f"{name} < {caller}" if caller != UNKNOWN else name
    return name


def compare_kernels(benchmark: str, kernels: list[SharedBy], qemu: str) -> SharingExplanation:
    """Lines that are gone, new or kept from the first kernel to the last, the largest differences first."""
    each = [{line_key(line): line for line in arm.lines} for arm in kernels]
    rows = [
        compare_line(name, [lines.get(name) for lines in each])
        for name in dict.fromkeys(name for lines in each for name in lines)
    ]
    rows.sort(key=lambda one: (min(one.times) - max(one.times), -one.times[0], one.name))
    return SharingExplanation(benchmark=benchmark, kernels=kernels, rows=rows, qemu=qemu)


def line_key(line: SharedLine) -> str:
    return without_other_fields(line.name) or f"(no name) {line.meetings[0].function} ~ {line.meetings[0].other}"


def without_other_fields(name: str) -> str:
    """A name with the first field of each union only: kernels differ in the others."""
    return UNION.sub("", name)


def compare_line(name: str, lines: list[SharedLine | None]) -> Row:
    """A line in several kernels, some of which may lack it."""
    found = Row(name=name, change="kept", lines=lines)
    before, after = found.times[0], found.times[-1]
    found.name = found.latest.name or name
    if before != after and not (before and after):
        found.change = "new" if after else "gone"
    elif before != after:
        found.change = "more" if after > before else "fewer"
    return found
