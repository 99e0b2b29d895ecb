"""Trade-offs and advice, for the page and for plain text: one row an aspect, the best marked where verdicts carry it."""

from itertools import combinations

from markupsafe import Markup
from msgspec import Struct

from kduel.analysis.matrix import Advice, advise
from kduel.analysis.matrix.scaling import AtThreads, Scaling, scaling
from kduel.analysis.tradeoffs import Aspect, Front, aspects, front
from kduel.core.format import MISSING, amount, mean_and_sd
from kduel.core.results import Results
from kduel.core.text import visible
from kduel.report.content.matrixtext import advice_lines, folded_advice, grid
from kduel.report.plots import effects as plots
from kduel.report.plots import tradeoffs as tradeoff_plots

MARKS = {"best": "★", "shared": "☆", "": ""}
MARKS_TOLD = "★ shown better than every other; ☆ shown better than the rest, no difference that matters among them."
FEWEST_ASPECTS = 2


class TradeoffsPart(Struct, kw_only=True):
    aspects: list[Aspect]
    front: Front | None
    pictures: list[Markup]
    advice: list[Advice]
    undecided: list[str]
    """Lines on what no advice is given for."""
    scaling: list[Scaling]


def tradeoffs_part(results: Results) -> TradeoffsPart | None:
    """The page's section; None for a run without anything beyond its verdicts."""
    rows, view, advice, threads = aspects(results), front(results), advise(results), scaling(results)
    if len(rows) < FEWEST_ASPECTS:
        rows = []
    if not (rows or view or advice or threads):
        return None
    pictures = []
    if view:
        panels = (
            tradeoff_plots.panel(view, *two, results.study.delta, plots.PAGE) for two in combinations(view.scales, 2)
        )
        pictures = [plots.picture(panel) for panel in panels]
    decided, undecided = folded_advice(advice)
    return TradeoffsPart(
        aspects=rows, front=view, pictures=pictures, advice=decided, undecided=undecided, scaling=threads
    )


def tradeoffs_lines(results: Results, width: int) -> list[str]:
    """Trade-offs as lines of text. Empty for a plain duel, unless power was measured."""
    view = front(results)
    weighed = view is not None and any(scale.axis == "power" for scale in view.scales)
    rows = aspects(results)
    if (len(results.contenders) < 3 and not weighed) or len(rows) < FEWEST_ASPECTS:
        return []
    lines = aspect_lines(rows, [contender.name for contender in results.contenders], width)
    if view:
        lines += ["", *(visible(sentence, 2000) for sentence in view.statements)]
    return [*lines, "", *advice_lines(advise(results))]


def scaling_lines(results: Results) -> list[str]:
    """Rates by threads, one table for each benchmark that was run at several numbers of them."""
    found = scaling(results)
    lines: list[str] = []
    for benchmark in dict.fromkeys(one.benchmark for one in found):
        mine = [one for one in found if one.benchmark == benchmark]
        head = [visible(benchmark, 40), "threads", f"in all, {visible(mine[0].unit, 20)}", "a thread", "efficiency"]
        rows = [
            [visible(one.contender, 40) if not number else "", str(step.threads), *map(amount, (step.total, step.per_thread)), efficiency(step)]
            for one in mine
            for number, step in enumerate(one.steps)
        ]  # fmt: skip
        lines += [
            *grid([head, *rows]).splitlines(),
            *(f"{visible(one.contender, 40)}: {one.told}." for one in mine),
            "",
        ]
    return lines[:-1]


def efficiency(step: AtThreads) -> str:
    """Per cent of a thread's work at the fewest threads, with its interval."""
    if step.low is None or step.high is None:
        return f"{step.efficiency:.1f} %"
    return f"{step.efficiency:.1f} % ({step.low:.1f} to {step.high:.1f} %)"


def aspect_lines(rows: list[Aspect], names: list[str], width: int) -> list[str]:
    """A table where it fits, else a paragraph an aspect."""
    cells = [[cell(row, name) for name in names] for row in rows]
    twice = {row.name for row in rows if sum(other.name == row.name for other in rows) > 1}
    heads = [
        f"{row.name}{f' ({visible(row.benchmark, 40)})' if row.name in twice else ''}, {visible(row.unit, 20)}"
        for row in rows
    ]
    table = grid(
        [["", *(visible(name, 40) for name in names)], *([h, *c] for h, c in zip(heads, cells, strict=True))]
    )
    if max(map(len, table.splitlines())) <= width:
        return [*table.splitlines(), MARKS_TOLD]
    lines = []
    for head, values in zip(heads, cells, strict=True):
        lines.append(f"{head}:")
        lines += [f"    {value}  {visible(name, 60)}" for name, value in zip(names, values, strict=True)]
    return [*lines, MARKS_TOLD]


def cell(row: Aspect, name: str) -> str:
    """A contender's mean and SD with its mark."""
    if row.means[name] is None:
        return MISSING
    return f"{mean_and_sd(row.means[name], row.sds[name])} {MARKS[row.standing[name]]}".rstrip()
