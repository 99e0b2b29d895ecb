"""Reads the counting plug-in's file, with names: instructions by context and call chain.

The file's lines (see programs/plugin/counter.c):

    kduel-counter 1 x86_64
    R id begins                  how often it was entered in one visit of a region: the number of operations; the id is the
                                 region's number plus 65536 times how often the region was left before
    N id parent e|c site         a call chain: entered at `site`, or called from just before it; 0 is none
    B id pc size,size,...        a block of code, its instructions' sizes; Br where it ends in a repeated string instruction
    T block index text           an instruction's text, if it was asked for
    C id node block from insns times
    L id pc times                how often the instruction at pc was the first in an operation to touch a cache line, if that
                                 was asked for
    end
"""

import functools
import itertools
import re
from array import array
from collections import defaultdict
from collections.abc import Collection
from copy import copy
from pathlib import Path

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kduel.core.errors import NotMeasuredError
from kduel.explain.symbols import UNKNOWN, Symbols

OPERATION, USER, INTERRUPT, THREAD, IDLE = "operation", "user", "interrupts", "kernel threads", "idle"
BULK = "bulk"
CONTEXTS = {
    OPERATION: "what the kernel did for the operation",
    BULK: "copying and clearing memory for it: loops and repeated string instructions",
    USER: "the program's own instructions",
    INTERRUPT: "interrupts that struck meanwhile",
    THREAD: "kernel threads that ran meanwhile",
    IDLE: "the idle loop",
}
USER_FUNCTION = "(program)"
BPF = "(BPF program)"
_RUNS_BPF = re.compile(r"_*(?:seccomp|bpf|cgroup_bpf|sk_filter|cls_bpf|trace_call_bpf)")
"""Callers of code without a symbol that is a BPF program."""

_INTERRUPT_ENTRY = re.compile(
    r"^(?:asm_)?(?:sysvec_|common_interrupt(?!_return)|spurious_|irq_entries|spurious_entries|exc_nmi)|"
    r"^(?:el[01](?:h|t)?(?:_(?:64|32))?_(?:irq|fiq)|el[01]_irq)"
)
_BULK = re.compile(
    r"^(?:__)?(?:mem(?:cpy|set|move)(?:_orig|_erms)?|clear_page(?:_orig|_rep|_erms)?|copy_page(?:_regs|_rep|_mc)?|"
    r"clear_user(?:_original|_rep_good|_erms)?|copy_user(?:_generic\w*|_enhanced_fast_string|_nocache|_short_string)?|"
    r"rep_(?:movs|stos)_alternative|memcpy_flushcache|copy_mc\w*)$"
)
"""Functions that only move bytes: their path length depends on the processor's features alone."""
_THREAD = {"kthread", "kthreadd", "worker_thread", "kthread_worker_fn", "kernel_init", "smpboot_thread_fn"}
_NEW_TASK = {"ret_from_fork", "ret_from_fork_asm"}
"""Functions where a task begins. What is outside of it in a chain is whoever gave it the CPU for the first time."""
_OVERRULES = (OPERATION, IDLE, THREAD, INTERRUPT)
"""Each context takes all that is below it out of those before."""
BOOT_DEPTH = 12
"""Number of functions of a boot's call chains that are kept: it has some hundred thousand, up to a hundred deep."""
VISIT = 1 << 16
"""Factor of the number of the visit in an id."""
_IDLE = {"do_idle", "cpu_startup_entry", "default_idle_call", "cpu_idle_poll"}

COLUMNS = 6
"""Numbers in a line of counts."""
BITS = 13
"""Of a number of instructions in a block, which has at most 4,096 (counter.c)."""

Ints = NDArray[np.int64]
Stack = tuple[str, ...]
"""A context, then functions from the outermost to the one that executed."""


class Instruction(Struct, frozen=True):
    """One instruction of one function, and how often it was executed."""

    offset: int
    """Bytes from the function's beginning."""
    text: str
    times: int
    block: int
    """The address of the block of code that it belongs to."""


class Profile(Struct, kw_only=True):
    """One region of one trial. All counts are of instructions, exact."""

    operations: int
    """Number of times that the region was entered."""
    stacks: dict[Stack, int]
    known: frozenset[str]
    """All functions that the kernel has, executed or not."""

    @property
    def total(self) -> int:
        return sum(self.stacks.values())

    def functions(self) -> dict[tuple[str, str], int]:
        """(context, function) to the instructions executed in the function itself."""
        found: dict[tuple[str, str], int] = defaultdict(int)
        for stack, count in self.stacks.items():
            found[stack[0], stack[-1]] += count
        return dict(found)

    def contexts(self) -> dict[str, int]:
        """Context to instructions."""
        found: dict[str, int] = defaultdict(int)
        for stack, count in self.stacks.items():
            found[stack[0]] += count
        return dict(found)


class Dump(Struct, kw_only=True):
    """A dump, parsed but not yet named."""

    architecture: str
    begins: dict[int, int]
    """Entries by visit of a region."""
    nodes: dict[int, tuple[int, bool, int]]
    """id to (parent, is an entry, site)."""
    blocks: dict[int, tuple[int, list[int]]]
    """id to (address, sizes)."""
    texts: dict[tuple[int, int], str]
    counts: Ints
    """Rows of COLUMNS: visit of a region, node, block, from, instructions, times. A boot has millions."""
    repeating: set[int] = field(default_factory=set)
    """Blocks that end in a repeated string instruction, which is executed once for each step."""

    touches: list[tuple[int, int, int]] = field(default_factory=list)
    """(visit of a region, address of the instruction, cache lines that no instruction of the operation had touched before)."""

    def visits(self, region: int) -> list[int]:
        """The ids of a region's visits, in the order of time."""
        return sorted(visit for visit in self.begins if visit % VISIT == region)

    def naming(self, symbols: Symbols) -> Symbols:
        """The symbols for code of this dump, which tells what was entered."""
        found = copy(symbols)
        found.begins = {pc for pc, _ in self.blocks.values()}
        return found

    def counts_in(self, visits: Collection[int]) -> Ints:
        return self.counts[np.isin(self.counts[:, 0], list(visits))]


def read_dump(path: Path) -> Dump:
    """Parse a dump. Raises NotMeasuredError where it is missing or cut short."""
    counts: list[str] = []
    dump = Dump(architecture="", begins={}, nodes={}, blocks={}, texts={}, counts=np.empty((0, COLUMNS), np.int64))
    whole = False
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            for line in stream:
                kind, _, rest = line.rstrip("\n").partition(" ")
                match kind:
                    case "C":
                        if rest.count(" ") != COLUMNS - 1:
                            raise ValueError(f"{line.strip()[:100]!r} has not {COLUMNS} numbers")
                        counts.append(rest)
                    case "B" | "Br":
                        number, pc, sizes = rest.split()
                        if kind == "Br":
                            dump.repeating.add(int(number))
                        dump.blocks[int(number)] = (int(pc, 16), [int(size) for size in sizes.split(",")])
                    case "N":
                        number, parent, how, site = rest.split()
                        dump.nodes[int(number)] = (int(parent), how == "e", int(site, 16))
                    case "T":
                        block_text, index, text = rest.split(" ", 2)
                        dump.texts[int(block_text), int(index)] = text.strip()
                    case "R":
                        region_text, begins = rest.split()
                        dump.begins[int(region_text)] = int(begins)
                    case "L":
                        visit, address, lines = rest.split()
                        dump.touches.append((int(visit), int(address, 16), int(lines)))
                    case "kduel-counter":
                        _, dump.architecture = rest.split()
                    case "end":
                        whole = True
        dump.counts = np.array(array("q", map(int, " ".join(counts).split()))).reshape(-1, COLUMNS)
    except (OSError, ValueError, OverflowError) as error:
        raise NotMeasuredError(f"the counting plug-in's file {path} cannot be read: {error}") from error
    if not whole:
        raise NotMeasuredError(
            f"the counting plug-in's file {path} is cut short", "Is there room on the disk? Run it again."
        )
    return dump


class CodePlace(Struct, frozen=True, eq=False):
    """Call chain to a piece of code. Naming has one object for each."""

    chain: Stack
    """Functions, outermost first."""
    entered: str
    """The last one where it was entered, and not called."""
    context: str

    def stack(self, function: str) -> Stack:
        """The chain to work in `function`, after its context: an interrupt with all below it, or the task."""
        if function == USER_FUNCTION:
            return (USER, function)
        named = self.chain if self.entered == function else (*self.chain, function)
        if self.context != OPERATION:
            return (self.context, *named)
        own = own_context(function)
        return (own if own == INTERRUPT or not self.chain else OPERATION, *named)


@functools.cache
def own_context(function: str) -> str:
    """Context of all that is below a function. Nothing calls those of interrupts: they are entered, even where the plug-in did not see how."""
    if _INTERRUPT_ENTRY.match(function):
        return INTERRUPT
    return THREAD if function in _THREAD else IDLE if function in _IDLE else OPERATION


class Naming:
    """A dump's nodes and blocks by their names."""

    def __init__(self, dump: Dump, symbols: Symbols, depth: int | None = None) -> None:
        self.dump = dump
        self.symbols = symbols
        self.depth = depth
        """Number of functions of a chain that are kept, from the outermost; None: all."""
        top = CodePlace((), "", OPERATION)
        self._places = {0: top}
        self._by_contents: dict[tuple[Stack, str, str], CodePlace] = {((), "", OPERATION): top}

    def locate(self, node: int) -> CodePlace:
        path = []
        while node not in self._places:
            path.append(node)
            node = self.dump.nodes[node][0]
        found = self._places[node]
        for number in reversed(path):
            _, entry, site = self.dump.nodes[number]
            name = self.symbols.function(site if entry else site - 1)
            if entry or found.entered != name:
                chain = found.chain if len(found.chain) == self.depth else (*found.chain, name)
                entered = name if entry and chain is not found.chain else ""
                outer = OPERATION if name in _NEW_TASK else found.context
                context = max(outer, own_context(name), key=_OVERRULES.index)
                contents = (chain, entered, context)
                found = self._by_contents.setdefault(contents, CodePlace(*contents))
            self._places[number] = found
        return found

    def pieces(self, block: int, start: int, insns: int) -> list[tuple[str, int, int]]:
        """The functions that a run of instructions lies in, with how many are in each, and how many of these only move bytes."""
        pc, sizes = self.dump.blocks[block]
        if not pc >> 63:
            return [(USER_FUNCTION, insns, 0)]
        addresses = itertools.accumulate(sizes, initial=pc)
        names = map(self.symbols.function, itertools.islice(addresses, start, start + insns))
        found = [(name, len(list(those))) for name, those in itertools.groupby(names)]
        steps = block in self.dump.repeating and start + insns == len(sizes)
        return [
            (name, count, count if _BULK.match(name) else int(steps and left == 0))
            for left, (name, count) in zip(reversed(range(len(found))), found, strict=True)
        ]


def _sum_by_place(rows: Ints, naming: Naming) -> dict[tuple[CodePlace, str], tuple[int, int]]:
    """Instructions executed in each function at each place, and how many of these only moved bytes. `rows` are of `Dump.counts`."""
    if not len(rows):
        return {}
    places: dict[CodePlace, int] = {}
    functions: dict[str, int] = {}
    nodes, node_of = np.unique(rows[:, 1], return_inverse=True)
    place_of = np.array([places.setdefault(naming.locate(node), len(places)) for node in nodes.tolist()])[node_of]
    runs, run_of = np.unique(rows[:, 2] << 2 * BITS | rows[:, 3] << BITS | rows[:, 4], return_inverse=True)
    low = (1 << BITS) - 1
    pieces = [naming.pieces(run >> 2 * BITS, run >> BITS & low, run & low) for run in runs.tolist()]
    flat = np.array(
        [(functions.setdefault(name, len(functions)), *counts) for run in pieces for name, *counts in run], np.int64
    )
    lengths = np.array([len(run) for run in pieces])
    # Each row as often as its run has pieces, and beside it these.
    repeats = lengths[run_of]
    within = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    piece = flat[np.repeat((np.cumsum(lengths) - lengths)[run_of], repeats) + within]
    keys, key_of = np.unique(np.repeat(place_of, repeats) * len(functions) + piece[:, 0], return_inverse=True)
    sums = np.zeros((len(keys), 2), np.int64)
    np.add.at(sums, key_of, piece[:, 1:] * np.repeat(rows[:, 5], repeats)[:, None])
    place_at, function_at = list(places), list(functions)
    return {
        (place_at[key // len(functions)], function_at[key % len(functions)]): (executed, moved)
        for key, (executed, moved) in zip(keys.tolist(), sums.tolist(), strict=True)
    }


def profile(
    dump: Dump, symbols: Symbols, region: int, *, visits: Collection[int] = (), boot: bool = False
) -> Profile:
    """One region with names, or some `visits`, or a `boot`. Raises NotMeasuredError where it was never entered."""
    chosen = frozenset(visits or dump.visits(region))
    operations = sum(dump.begins[visit] for visit in chosen)
    if not operations:
        raise NotMeasuredError(
            "the guest never reached the region to count", "Did the benchmark run? See its output."
        )
    naming = Naming(dump, dump.naming(symbols), BOOT_DEPTH if boot else None)
    stacks: dict[Stack, int] = defaultdict(int)
    for (place, function), (executed, moved) in _sum_by_place(dump.counts_in(chosen), naming).items():
        context, *named = place.stack(function)
        named = [
            BPF if name == UNKNOWN and _RUNS_BPF.match(caller) else name
            for caller, name in zip(["", *named], named, strict=False)
        ]
        if boot and context == THREAD:
            context = OPERATION
        bulk = moved if context == OPERATION else 0
        if bulk:
            stacks[BULK, *named] += bulk
        if executed > bulk:
            stacks[context, *named] += executed - bulk
    return Profile(operations=operations, stacks=dict(stacks), known=frozenset(symbols.names))


def annotate(dump: Dump, symbols: Symbols, region: int, function: str) -> list[Instruction]:
    """Every instruction of a function that was executed, in the order of addresses; [] where none was."""
    symbols = dump.naming(symbols)
    times: dict[int, int] = defaultdict(int)
    where: dict[int, tuple[int, str]] = {}
    for _, _, block, start, insns, count in dump.counts_in(dump.visits(region)).tolist():
        pc, sizes = dump.blocks[block]
        if not pc >> 63:
            continue
        address = pc + sum(sizes[:start])
        for index in range(start, start + insns):
            if symbols.function(address) == function:
                times[address] += count
                where.setdefault(address, (pc, dump.texts.get((block, index), "")))
            address += sizes[index]
    return [
        Instruction(
            offset=address - symbols.start(address),
            text=where[address][1],
            times=times[address],
            block=where[address][0],
        )
        for address in sorted(times)
    ]
