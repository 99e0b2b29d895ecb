"""An explanation as plain text, for a terminal or a mail."""

import shlex
from collections.abc import Iterable, Sequence
from fractions import Fraction

from msgspec.structs import astuple

from kduel.core.format import with_sign
from kduel.core.text import PLAIN_WIDTH, plural
from kduel.explain.compare import UNSEEN, Explanation, Row
from kduel.explain.layout import Figures, Line, lay_out
from kduel.explain.profile import CONTEXTS, IDLE, OPERATION, USER, Instruction

NOTABLE = 0.05
"""Share of the difference by which a condition must change it for the conditions to be shown."""
MOST_MOVED = 8
"""Functions called from elsewhere that are shown."""
RARELY = 0.05
"""Share of the other kernel's count below which a kernel hardly does a kind of work."""
KINDS_OF_WORK = {
    "sleeps": (IDLE, ()),
    "switches tasks": ("", ("finish_task_switch",)),
    "takes page faults": ("", ("handle_mm_fault",)),
}
"""By what an operation does: the context, or the functions, by which it is seen: those that have one name in all kernels."""
ONLY = {"": "", "baseline": "baseline only", "contender": "contender only"}


def per_operation(count: int, operations: int, sign: bool = False) -> str:
    """A count per operation: whole numbers as such, else two decimals; a rarer thing is not reported as none."""
    value = Fraction(count, operations)
    text = f"{int(value):,}" if value.denominator == 1 else f"{float(value):,.2f}"
    if value and not float(text.replace(",", "")):
        text = f"{float(value):.1g}"
    return f"+{text}" if sign and count > 0 else text.replace("-", "−")


def as_text(found: Explanation, limit: int = 25, width: int = PLAIN_WIDTH) -> str:
    """The table of functions, then other work; `limit` rows of each (0: all), in `width` columns if possible."""
    one, other = found.total()
    lines: list[Line] = [
        f"{found.benchmark}: {count_unit(found)}, {found.contender} against {found.baseline}",
        f"(exact, {counted_over(found)}; path length, not time: {UNSEEN} do not count)",
        *filter(None, [found.first_of_several()]),
        "",
        Figures(("baseline", "contender", "difference"), ""),
    ]
    kernel = [row for row in found.rows if row.context == OPERATION]
    lines += _table(kernel, found.operations, limit)
    lines += [
        "",
        *[counts_line(work_of(found, name), *found.total(name), found.operations) for name in found.contexts()],
        counts_line("in all", one, other, found.operations),
    ]
    for context in found.contexts():
        if context in (OPERATION, USER):
            continue
        lines += ["", f"{context}: {work_of(found, context)}"]
        lines += _table([row for row in found.rows if row.context == context], found.operations, min(limit or 8, 8))
    lines += moved_lines(found, limit or MOST_MOVED)
    lines += condition_lines(found)
    lines += ["", *told] if (told := changed_work(found)) else []
    counted_by = [f"Counted by {found.counted_by()}."] if found.qemu else []
    return "\n".join([*lay_out([*lines, "", clock_sentence(found), *counted_by], width), ""])


def count_unit(found: Explanation) -> str:
    return "instructions of one boot" if found.boot else "instructions per operation"


def counted_over(found: Explanation) -> str:
    """Description of what was counted, beside the heading."""
    if found.boot:
        return "from the kernel's entry to the first instruction of init"
    return f"the mean over {plural(found.operations, 'operation')}, rare and long ones included; a verdict is about the median call"


def work_of(found: Explanation, context: str) -> str:
    """Description of whose work a context is. A boot is no operation."""
    text = CONTEXTS[context]
    return text.removesuffix(" for the operation").replace(" for it:", ":") if found.boot else text


def moved_lines(found: Explanation, limit: int) -> list[Line]:
    """The functions that the contender calls from elsewhere, with what they call; none where all are called as before."""
    shown = found.moved[: min(limit, MOST_MOVED)]
    lines: list[Line] = ["", "called from elsewhere, with all that they call"] if shown else []
    for one in shown:
        note = f"from {one.baseline_from} to {one.contender_from}"
        lines.append(counts_line(one.function, one.baseline, one.contender, found.operations, note, name=True))
    return lines


def changed_work(found: Explanation) -> list[str]:
    """A sentence for each kind of work that an operation does in one kernel only, so that its count is of something else there."""
    said: list[str] = []
    for what, (context, functions) in KINDS_OF_WORK.items() if not found.boot else ():
        rows = [row for row in found.rows if row.context == context or row.function.partition(".")[0] in functions]
        counts: dict[str, float] = {
            found.baseline: sum(row.baseline for row in rows),
            found.contender: sum(row.contender for row in rows),
        }
        said += changed_kind(what, counts, found.operations)
    return said


def changed_kind(what: str, counts: dict[str, float], least: float) -> list[str]:
    """The sentence about a kind of work that one of two kernels does at least `least` times, and the other hardly; else none."""
    less, more = sorted(counts, key=counts.__getitem__)
    if counts[more] < least or counts[less] >= RARELY * counts[more]:
        return []
    hardly = "hardly " if counts[less] else "not "
    return [
        f"The operation {what} in {more}, and {hardly}in {less}: its meaning has changed, and the count is of other work."
    ]


def condition_lines(found: Explanation) -> list[Line]:
    """Conditions, each with the function that changes most; none where all agree within NOTABLE of the difference."""
    if not found.conditions:
        return []
    plain = found.conditions[0]
    farthest = max(found.conditions, key=lambda one: abs(one.difference - plain.difference))
    if abs(farthest.difference - plain.difference) <= NOTABLE * abs(plain.difference):
        return []
    lines: list[Line] = ["", "by condition: the mean over calls, all of the above together"]
    lines += [_means(one.baseline, one.contender, one.condition) for one in found.conditions]
    lines += [
        "",
        f"functions whose counts condition {farthest.condition.partition(':')[0]} changes, compared with {plain.condition}",
    ]
    lines += [_means(shift.baseline, shift.contender, shift.function, changes=True) for shift in farthest.shifts[:8]]
    return lines


def next_command(found: Explanation, targets: Sequence[str], contender: str = "") -> str:
    """Command to see the instructions of the function that differs most; empty where none does."""
    names = (row.function for row in found.rows if row.difference and row.context == OPERATION)
    function = next((name for name in names if not name.startswith("(")), "")
    if not function:
        return ""
    words = ["kduel", "explain", *targets, "-b", found.benchmark, *(["--contender", contender] if contender else [])]
    return shlex.join([*words, "--annotate", function])


def clock_sentence(found: Explanation) -> str:
    """Sentence on whether the guest's own clock agrees."""
    if found.clock is None:
        return "The guest's own clock was not read."
    if found.boot:
        gaps = [round(own) - total for own, total in zip(astuple(found.clock), found.total(), strict=True)]
        runs = " and ".join(f"{round(own):,}" for own in astuple(found.clock))
        return f"A run counts {runs} of the same boots (boot-instructions): {with_sign(gaps[0], ',')} and {with_sign(gaps[1], ',')}."
    said = []
    for counted, clock in zip(found.total(), (found.clock.baseline, found.clock.contender), strict=True):
        said.append(Fraction(counted - round(clock), found.operations))
    if said[0] == said[1] and abs(said[0]) < 8:
        return (
            f"The guest's own clock agrees to the instruction (but for the {float(said[0]):g} of each "
            "operation that reading it takes)."
        )
    return (
        f"The guest's own clock differs from this count by {with_sign(float(said[0]), ',.2f')} and {with_sign(float(said[1]), ',.2f')} "
        "instructions per operation: time that passed while the CPU was idle, or had no count."
    )


def annotation_text(
    name: str, function: str, operations: int, instructions: Iterable[Instruction], *, boot: bool = False
) -> str:
    """A function's instructions with how often each was executed per operation, or in the `boot`."""
    lines = [f"{function} in {name}: executions {'in one boot' if boot else 'per operation'}"]
    block = -1
    for instruction in instructions:
        if instruction.block != block:
            lines.append("")
            block = instruction.block
        lines.append(
            f"{per_operation(instruction.times, operations):>12}  +{instruction.offset:<5x} {instruction.text}".rstrip()
        )
    return "\n".join([*lines, ""]) if block != -1 else f"{function} was not executed in {name}.\n"


def _table(rows: list[Row], operations: int, limit: int) -> list[Line]:
    changed = [row for row in rows if row.difference]
    shown = changed[:limit] if limit else changed
    lines: list[Line] = [
        counts_line(
            row.function,
            row.baseline,
            row.contender,
            operations,
            f"was {row.was}" if row.was else ONLY[row.only],
            name=True,
        )
        for row in shown
    ]
    for one_text, text, rest in (
        ("other function that differs", "other functions that differ", changed[len(shown) :]),
        ("function that is equal", "functions that are equal", [row for row in rows if not row.difference]),
    ):
        if rest:
            one, other = sum(row.baseline for row in rest), sum(row.contender for row in rest)
            lines.append(counts_line(f"({plural(len(rest), one_text, text)})", one, other, operations))
    return lines


def counts_line(text: str, one: int, other: int, operations: int, note: str = "", *, name: bool = False) -> Figures:
    """Both kernels' counts per operation, and the difference. `name`: the text is the name of a function."""
    cells = (
        per_operation(one, operations),
        per_operation(other, operations),
        per_operation(other - one, operations, True),
    )
    return Figures(cells, text, note, name)


def _means(one: float, other: float, text: str, *, changes: bool = False) -> Figures:
    """Means under a condition, or what it changes in the function `text`."""

    def spell(value: float, sign: bool) -> str:
        return f"{value:{'+' if sign else ''},.1f}".replace("-", "−") if value else "0"

    cells = spell(one, changes), spell(other, changes), spell(other - one, True)
    return Figures(cells, text, name=changes)
