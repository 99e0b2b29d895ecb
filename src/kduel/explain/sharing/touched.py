"""The lines that an operation touches in several kernels, by object and field."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from kduel.core.text import PLAIN_WIDTH, plural
from kduel.explain.sharing.compare import SharedBy, SharingExplanation
from kduel.explain.sharing.show import format_moves

UNNAMED = "(no name: stacks, page tables, memory of the program and of per-CPU allocations)"
LINES, FIELDS = 6, 5
"""Lines of an object, and fields of a line, that are shown."""
NOTE = (
    "Each line counts once in an operation, by its place in memory. No cache is modelled: a line more costs time where the caches "
    "do not hold it."
)

Lines = dict[tuple[str, ...], float]
"""How many lines an operation touches, by the fields in them."""


def by_object(kernel: SharedBy) -> dict[str, Lines]:
    """The lines of one kernel."""
    found: dict[str, Lines] = {}
    for line in kernel.touched:
        found.setdefault(line.thing, {})[tuple(line.fields)] = line.times
    return found


def touched_text(found: SharingExplanation, limit: int = 25, width: int = PLAIN_WIDTH) -> str:
    """The objects of which the first and the last kernel touch different lines; `limit` of them, 0 for all."""
    each = [by_object(kernel) for kernel in found.kernels]
    first, last = each[0], each[-1]
    counts = {name: [sum(one.get(name, {}).values()) for one in each] for one in each for name in one}
    names = sorted(counts, key=lambda name: (-abs(counts[name][-1] - counts[name][0]), name))
    differing = [name for name in names if first.get(name) != last.get(name)]
    shown = differing[:limit] if limit else differing
    sizes = [max(len(kernel.contender), 8) for kernel in found.kernels]

    def line(cells: Iterable[str], rest: str = "") -> str:
        return f"{'  '.join(f'{cell:>{size}}' for cell, size in zip(cells, sizes, strict=True))}   {rest}".rstrip()

    lines = [
        f"{found.benchmark}: cache lines of kernel data that an operation touches, in "
        f"{', '.join(kernel.contender for kernel in found.kernels)}",
        "(exact, under the plain condition, on two CPUs; - and + are lines of the first and the last kernel only)",
        "",
        line(kernel.contender for kernel in found.kernels),
        line((format_moves(sum(row[at] for row in counts.values())) for at in range(len(each))), "in all"),
        "",
    ]
    indent = " " * (sum(sizes) + 2 * len(sizes) + 1)
    for name in shown:
        lines.append(line(map(format_moves, counts[name]), name or UNNAMED))
        for text in changed_lines(first.get(name, {}), last.get(name, {}), not limit) if name else ():
            lines += textwrap.wrap(text, max(width, 60), initial_indent=indent, subsequent_indent=f"{indent}  ")
    if rest := len(differing) - len(shown):
        lines.append(f"{plural(rest, 'other object')} with other lines (--limit 0)")
    lines += [f"{plural(len(names) - len(differing), 'object')} of which both touch the same lines"]
    lines += [kernel.note for kernel in found.kernels if kernel.note]
    return "\n".join([*lines, "", *textwrap.wrap(NOTE, width), f"Counted by QEMU {found.qemu}.", ""])


def changed_lines(before: Lines, after: Lines, every: bool) -> Iterator[str]:
    """Lines about what only one of two kernels touches of an object: fields, then lines, the most frequent first."""
    for mark, one, other in (("no longer", before, after), ("new", after, before)):
        known = {field for fields in other for field in fields}
        mine = list(dict.fromkeys(field for fields in sorted(one) for field in fields if field not in known))
        if mine and known:
            yield f"{mark}: {shorten(mine, every)}"
    for mark, one, other in (("-", before, after), ("+", after, before)):
        left = sorted(
            (-times, fields) for fields, count in one.items() if (times := count - other.get(fields, 0)) > 0
        )
        for times, fields in left if every else left[:LINES]:
            yield f"{mark} {format_moves(-times)}: {shorten(fields, every)}"
        if not every and len(left) > LINES:
            yield f"{mark} {plural(len(left) - LINES, 'other kind')} of lines (--limit 0)"


def shorten(fields: Sequence[str], every: bool) -> str:
    more = len(fields) - FIELDS
    return ", ".join(fields) if every or more <= 0 else f"{', '.join(fields[:FIELDS])} and {plural(more, 'other')}"
