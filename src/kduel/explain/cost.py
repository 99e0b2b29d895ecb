"""Kinds of an operation's instructions that tend to be slow: counts, not time. The plug-in counts cache lines; the
other classes are read off the instructions' texts (AT&T syntax, as in QEMU)."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from msgspec import Struct

from kduel.core.errors import NotMeasuredError
from kduel.core.text import PLAIN_WIDTH, plural
from kduel.explain.compare import Explanation
from kduel.explain.layout import Figures, Line, lay_out
from kduel.explain.profile import USER_FUNCTION, Dump
from kduel.explain.show import counts_line
from kduel.explain.symbols import Symbols

LINES, ACCESSES, BRANCHES, INDIRECT, LOCKED, SERIALISING, PAGE_TABLES = (
    "lines", "accesses", "branches", "indirect", "locked", "serialising", "page-tables",
)  # fmt: skip
CLASSES: Mapping[str, str] = MappingProxyType(
    {
        LINES: "different cache lines touched (64 bytes, by virtual address)",
        ACCESSES: "instructions that access memory",
        BRANCHES: "branches, calls and returns",
        INDIRECT: "indirect branches and calls (returns are not among them)",
        LOCKED: "locked instructions",
        SERIALISING: "serialising instructions (wrmsr, cpuid, iret, a write to a control register, ...)",
        PAGE_TABLES: "page-table switches (writes to CR3)",
    }
)
_BRANCH = re.compile(r"^(?:bnd |notrack )?(?:j|call|ret|loop)")
_INDIRECT = re.compile(r"^(?:bnd |notrack )?(?:jmp|call)[a-z]*\s+\*")
_NO_ACCESS = re.compile(r"^(?:nop|lea|prefetch|endbr)")
_STACK = re.compile(r"^(?:push|pop|call|ret|leave|iret)")
_STRING = re.compile(r"^(?:rep\w* )?(?:movs|stos|lods|scas|cmps)[bwlq]?\b")
_SERIALISING = re.compile(
    r"^(?:cpuid|wrmsr|iret|invlpg|invpcid|invd|wbinvd|lgdt|lidt|lldt|ltr|serialize|mov[lq]?\s+%r?\w+, ?%(?:cr|dr)[0-7]\b)"
)
_CR3 = re.compile(r"^mov[lq]?\s+%\w+, ?%cr3\b")


class Cost(Struct, frozen=True, kw_only=True):
    """One class in one function, in instructions or cache lines over all operations."""

    kind: str
    """A key of CLASSES."""
    function: str
    baseline: int
    contender: int

    @property
    def difference(self) -> int:
        return self.contender - self.baseline


def instruction_classes(text: str) -> Iterator[str]:
    """Classes that an instruction counts as; none for a plain one on registers."""
    locked = text.startswith("lock ")
    plain = text.removeprefix("lock ")
    memory = "(" in plain or re.search(r"%[c-gs]s:", plain) is not None or _STACK.match(plain) or _STRING.match(plain)
    branch = _BRANCH.match(plain)
    if memory and not _NO_ACCESS.match(plain):
        yield ACCESSES
        # With one CPU a kernel makes a `ds` of each lock prefix, which nothing else has.
        locked = locked or ("%ds:" in plain and not branch)
    if branch:
        yield BRANCHES
    if _INDIRECT.match(plain):
        yield INDIRECT
    if locked or (plain.startswith("xchg") and "(" in plain):
        yield LOCKED
    if _SERIALISING.match(plain):
        yield SERIALISING
    if _CR3.match(plain):
        yield PAGE_TABLES


def count_costs(dump: Dump, symbols: Symbols, region: int) -> dict[tuple[str, str], int]:
    """(class, function) to its count over all operations of a region. Needs a count with texts and cache lines.
    Raises NotMeasuredError for other processors than x86, whose texts are not known here."""
    if dump.architecture != "x86_64":
        raise NotMeasuredError(f"there is no cost model for {dump.architecture}", "Leave --cost away.")
    symbols, visits = dump.naming(symbols), frozenset(dump.visits(region))
    found: dict[tuple[str, str], int] = defaultdict(int)

    def function(address: int) -> str:
        return symbols.function(address) if address >> 63 else USER_FUNCTION

    known: dict[int, list[tuple[str, list[str]]]] = {}
    for _, _, block, start, insns, times in dump.counts_in(visits).tolist():
        if block not in known:
            pc, sizes = dump.blocks[block]
            known[block] = [
                (function(pc + sum(sizes[:index])), list(instruction_classes(dump.texts.get((block, index), ""))))
                for index in range(len(sizes))
            ]
        for name, kinds in known[block][start : start + insns]:
            for kind in kinds:
                found[kind, name] += times
    for visit, address, times in dump.touches:
        if visit in visits:
            found[LINES, function(address)] += times
    return dict(found)


def compare_costs(one: Mapping[tuple[str, str], int], other: Mapping[tuple[str, str], int]) -> list[Cost]:
    """By class, then by absolute difference, the largest first."""
    rows = [
        Cost(kind=kind, function=name, baseline=one.get((kind, name), 0), contender=other.get((kind, name), 0))
        for kind, name in one.keys() | other.keys()
    ]
    order = list(CLASSES)
    return sorted(rows, key=lambda row: (order.index(row.kind), -abs(row.difference), row.function))


def cost_text(found: Explanation, rows: list[Cost], limit: int = 25, width: int = PLAIN_WIDTH) -> str:
    """All classes' totals, then functions that differ, `limit` of each (0: all), in `width` columns if possible."""
    lines: list[Line] = [
        f"{found.benchmark}: counts per operation, {found.contender} against {found.baseline}",
        f"(exact, over {plural(found.operations, 'operation')}; counts, not time: no processor's caches or speed are in them)",
        *filter(None, [found.first_of_several()]),
        "",
    ]
    by_kind = {kind: [row for row in rows if row.kind == kind] for kind in CLASSES}
    for kind, of_kind in by_kind.items():
        one, other = sum(row.baseline for row in of_kind), sum(row.contender for row in of_kind)
        lines.append(counts_line(CLASSES[kind], one, other, found.operations))
    for kind, of_kind in by_kind.items():
        changed = [row for row in of_kind if row.difference]
        if changed:
            lines += ["", f"{kind}: {CLASSES[kind]}"]
            shown = changed[:limit] if limit else changed
            lines += [
                counts_line(row.function, row.baseline, row.contender, found.operations, name=True) for row in shown
            ]
            if rest := len(changed) - len(shown):
                lines.append(
                    Figures(("", "", ""), f"({plural(rest, 'other function')} that differ{'s' * (rest == 1)})")
                )
    return "\n".join([*lay_out(lines, width), ""])
