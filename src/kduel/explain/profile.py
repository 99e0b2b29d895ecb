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

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path

from msgspec import Struct, field

from kduel.core.errors import NotMeasuredError
from kduel.explain.symbols import Symbols

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

_INTERRUPT_ENTRY = re.compile(
    r"^(?:asm_)?(?:sysvec_|common_interrupt(?!_return)|spurious_|irq_entries|spurious_entries|exc_nmi)|"
    r"^(?:el[01](?:h|t)?(?:_(?:64|32))?_(?:irq|fiq)|el[01]_irq)"
)
_BULK = re.compile(
    r"^(?:__)?(?:mem(?:cpy|set|move)(?:_orig|_erms)?|clear_page(?:_orig|_rep|_erms)?|copy_page(?:_regs|_rep|_mc)?|"
    r"clear_user(?:_original|_rep_good|_erms)?|copy_user(?:_generic\w*|_enhanced_fast_string|_nocache|_short_string)?|"
    r"rep_(?:movs|stos)_alternative|memcpy_flushcache|copy_mc\w*)$"
)
"""Functions that do nothing but move bytes: how long their path is depends on the loop that the processor's features
select, and not on what the kernel does."""
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
        """All instructions of the region."""
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
    counts: list[tuple[int, int, int, int, int, int]]
    """(visit of a region, node, block, from, instructions, times)."""
    repeating: set[int] = field(default_factory=set)
    """Blocks that end in a repeated string instruction, which is executed once for each step."""

    touches: list[tuple[int, int, int]] = field(default_factory=list)
    """(visit of a region, address of the instruction, cache lines that no instruction of the operation had touched before)."""

    def visits(self, region: int) -> list[int]:
        """The ids of a region's visits, in the order of time."""
        return sorted(visit for visit in self.begins if visit % VISIT == region)


def read_dump(path: Path) -> Dump:
    """Parse a dump. Raises NotMeasuredError where it is missing or cut short."""
    dump = Dump(architecture="", begins={}, nodes={}, blocks={}, texts={}, counts=[])
    whole = False
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            for line in stream:
                kind, _, rest = line.rstrip("\n").partition(" ")
                match kind:
                    case "C":
                        region, node, block, start, insns, times = map(int, rest.split())
                        dump.counts.append((region, node, block, start, insns, times))
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
    except (OSError, ValueError) as error:
        raise NotMeasuredError(f"the counting plug-in's file {path} cannot be read: {error}") from error
    if not whole:
        raise NotMeasuredError(
            f"the counting plug-in's file {path} is cut short", "Is there room on the disk? Run it again."
        )
    return dump


class CodePlace(Struct, frozen=True):
    """Call chain to a piece of code."""

    chain: Stack
    """Functions, outermost first."""
    entered: str
    """The last one where it was entered, and not called."""
    context: str


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
        self._places: dict[int, CodePlace] = {0: CodePlace((), "", OPERATION)}

    def locate(self, node: int) -> CodePlace:
        """Find the place of a node."""
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
                outer = OPERATION if name in _NEW_TASK else found.context
                context = max(outer, own_context(name), key=_OVERRULES.index)
                found = CodePlace(chain, name if entry and chain is not found.chain else "", context)
            self._places[number] = found
        return found

    def context(self, place: CodePlace, function: str) -> str:
        """Context that the work belongs to: an interrupt's and all below it, or that of the task that runs."""
        if place.context != OPERATION:
            return place.context
        own = own_context(function)
        return own if own == INTERRUPT or not place.chain else OPERATION

    def pieces(self, block: int, start: int, insns: int) -> Iterator[tuple[str, int]]:
        """The functions that a run of instructions lies in, with how many are in each."""
        pc, sizes = self.dump.blocks[block]
        address = pc + sum(sizes[:start])
        function, count = "", 0
        for size in sizes[start : start + insns]:
            name = self.symbols.function(address)
            if name != function and count:
                yield function, count
                count = 0
            function, count, address = name, count + 1, address + size
        if count:
            yield function, count


def profile(
    dump: Dump, symbols: Symbols, region: int, *, visits: Collection[int] = (), boot: bool = False
) -> Profile:
    """One region with names, or some `visits` of it; in a `boot` the kernel's threads do its work, and are not beside it.

    Raises NotMeasuredError where the guest never entered it.
    """
    chosen = frozenset(visits or dump.visits(region))
    operations = sum(dump.begins[visit] for visit in chosen)
    if not operations:
        raise NotMeasuredError(
            "the guest never reached the region to count", "Did the benchmark run? See its output."
        )
    naming = Naming(dump, symbols, BOOT_DEPTH if boot else None)
    stacks: dict[Stack, int] = defaultdict(int)
    pieces: dict[tuple[int, int, int], list[tuple[str, int]]] = {}
    for number, node, block, start, insns, times in dump.counts:
        if number not in chosen:
            continue
        if not dump.blocks[block][0] >> 63:
            stacks[USER, USER_FUNCTION] += insns * times
            continue
        key = (block, start, insns)
        if key not in pieces:
            pieces[key] = list(naming.pieces(*key))
        place = naming.locate(node)
        steps = block in dump.repeating and start + insns == len(dump.blocks[block][1])
        for position, (function, count) in enumerate(pieces[key]):
            named = place.chain if place.entered == function else (*place.chain, function)
            context = naming.context(place, function)
            if boot and context == THREAD:
                context = OPERATION
            moved = count if _BULK.match(function) else int(steps and position == len(pieces[key]) - 1)
            if context == OPERATION and moved:
                stacks[BULK, *named] += moved * times
                count -= moved
            if count:
                stacks[context, *named] += count * times
    return Profile(operations=operations, stacks=dict(stacks), known=frozenset(symbols.names))


def annotate(dump: Dump, symbols: Symbols, region: int, function: str) -> list[Instruction]:
    """Every instruction of a function that was executed, in the order of addresses; [] where none was."""
    times: dict[int, int] = defaultdict(int)
    where: dict[int, tuple[int, str]] = {}
    for number, _, block, start, insns, count in dump.counts:
        pc, sizes = dump.blocks[block]
        if number % VISIT != region or not pc >> 63:
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
