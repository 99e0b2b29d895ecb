"""A timed profile as text, and its flame graph."""

from kduel.analysis.profile import CostChange, ProfileRow, TimedProfile
from kduel.core.format import MISSING, amount, decimals, signed_number
from kduel.core.text import PLAIN_WIDTH, plural
from kduel.explain.flame import Flame, draw_flame
from kduel.explain.layout import Figures, Line, lay_out
from kduel.explain.samples import CLOCK, SAMPLED_CONTEXTS
from kduel.explain.show import ONLY

CLOCK_LIMIT = "Sampled by a timer interrupt: time with interrupts disabled is attributed to the place where they are enabled again."


def as_text(found: TimedProfile, limit: int = 25, width: int = PLAIN_WIDTH) -> str:
    """The table of functions, then the sums; `limit` rows, 0 for all. Lines have `width` columns if possible."""
    places = decimals(max(found.whole.baseline, found.whole.contender) / 1000, 3)
    lines: list[Line] = [
        f"{found.benchmark}, {found.metric}: CPU time per {found.unit} in ns, {found.contender} against {found.baseline}",
        f"({plural(found.blocks, 'block')} of profiled trials; {found.event} at {found.frequency} Hz, "
        f"{found.samples[0]:,} and {found.samples[1]:,} samples; {plural(found.cpus, 'CPU')})",
        "",
        Figures(("baseline", "contender", "difference", "interval", "q"), "function"),
    ]
    shown = found.rows[:limit] if limit else found.rows
    lines += [row_line(row, places) for row in shown]
    if rest := found.rows[len(shown) :]:
        both = [sum(getattr(row.cost, arm) for row in rest) for arm in ("baseline", "contender")]
        cost = CostChange(baseline=both[0], contender=both[1], difference=both[1] - both[0])
        lines.append(cost_line(cost, places, f"({plural(len(rest), 'other row')})"))
    lines += ["", *(cost_line(cost, places, SAMPLED_CONTEXTS[name]) for name, cost in found.contexts.items())]
    lines += [cost_line(found.whole, places, f"in all, of {plural(found.cpus, 'CPU')}"), "", *notes(found)]
    command = [f"  {found.exact}"] if found.exact else []
    return "\n".join([*lay_out(lines, width), *command, ""])


def notes(found: TimedProfile) -> list[str]:
    """Lines that a reader must know of the table."""
    called = [row for row in found.rows if row.called]
    level = f"{100 * (1 - found.level):.4g} %"
    lines = [
        f"* {plural(len(called), 'function')} with a significant difference: q ≤ {found.alpha:g} after Benjamini and "
        f"Hochberg; the intervals of functions have a level of {level}, those of sums {100 * (1 - found.alpha):g} %."
    ]
    lines += [
        f"Overhead of profiling: {signed_number(cost.slower_pct, 1)} % time per {found.unit} in profiled trials of "
        f"{cost.contender}, compared with the run's own."
        for cost in found.overhead
    ]
    if len(found.overhead) == 2:
        baseline, contender = found.overhead
        change = found.whole.contender / found.whole.baseline
        own = change * (1 + baseline.slower_pct / 100) / (1 + contender.slower_pct / 100)
        lines.append(
            f"The whole changes by {signed_number(100 * (change - 1), 1)} % in profiled trials, and by "
            f"{signed_number(100 * (own - 1), 1)} % in the run's own."
        )
    if found.event == CLOCK:
        lines.append(CLOCK_LIMIT)
    if found.counts is not None:
        one, other = found.counts
        lines.append(
            f"Exact counts of the same operation: {amount(one)} and {amount(other)} instructions "
            f"({signed_number(other - one, 0 if (other - one) == int(other - one) else 2)})."
        )
    if found.exact:
        lines.append("Instructions of the same operation, function by function:")
    return lines


def row_line(row: ProfileRow, places: int) -> Figures:
    note = ONLY[row.only]
    if row.moved_within:
        note = f"{note}; " * bool(note) + f"no difference within its caller {row.moved_within}"
    mark = "*" if row.called else ""
    q = "" if row.q is None else f"{row.q:.2g}"
    name = row.function if row.context == "operation" else f"{row.function} [{row.context}]"
    return cost_line(row.cost, places, f"{name}{mark}", q, note, name=True)


def cost_line(
    cost: CostChange, places: int, text: str, q: str = "", note: str = "", *, name: bool = False
) -> Figures:
    """One line of figures. `name`: the text is the name of a function."""
    interval = MISSING
    if cost.low is not None and cost.high is not None:
        interval = f"{signed_number(cost.low, places)} to {signed_number(cost.high, places)}"
    figures = (
        f"{cost.baseline:,.{places}f}",
        f"{cost.contender:,.{places}f}",
        signed_number(cost.difference, places),
    )
    return Figures((*figures, interval, q), text, note, name)


def as_svg(found: TimedProfile) -> str:
    """The differential flame graph of the CPU time per unit of work."""
    one, other = found.whole.baseline, found.whole.contender

    def figures(one: int, other: int) -> str:
        return (
            f"{one / 1000:,.2f} → {other / 1000:,.2f} ({signed_number((other - one) / 1000, 2)}) ns per {found.unit}"
        )

    return draw_flame(
        Flame(
            name=found.benchmark,
            title=f"{found.benchmark}: {amount(one)} ns of CPU time per {found.unit} in {found.baseline}, {amount(other)} in "
            f"{found.contender} ({signed_number(other - one, 1)})",
            note=f" · {found.event}, {plural(sum(found.samples), 'sample')}",
            contender=found.contender,
            stacks=found.stacks,
            figures=figures,
        )
    )
