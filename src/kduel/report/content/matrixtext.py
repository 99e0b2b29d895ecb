"""A matrix in plain characters: one table a family, the verdicts by cell, the growth."""

from collections.abc import Sequence

from kduel.analysis.matrix import Advice, Matrix
from kduel.analysis.matrix.grid import places
from kduel.analysis.matrix.shape import JudgedCell, measured_steps
from kduel.core.experiment import Aspect
from kduel.core.format import MISSING, amount, effect, mean_and_sd, plain_number, relative_pct, signed_number
from kduel.core.metric_results import MetricResult
from kduel.core.results import Results
from kduel.core.text import align_columns, visible
from kduel.report.content.digest import SIGNS, sign_of

SUMMED: tuple[Aspect, ...] = ("cpu-time", "activity")
"""Aspects of which two metrics of a benchmark are parts of one quantity: user and system time, two kinds of switches."""


def leads(matrix: Matrix | None, results: Results) -> bool:
    """True if the run is a matrix and nothing else: its report begins with the matrix's tables."""
    return matrix is not None and bool(matrix.judged) and all_placed(results)


def all_placed(results: Results) -> bool:
    """True if every benchmark is a cell of the matrix. Quick, where `shape` judges every pair of cells."""
    return len(places(measured_steps(results))) == len({metric.benchmark for metric in results.metrics})


def advice_lines(advice: Sequence[Advice]) -> list[str]:
    """A line for each sentence; those that nothing is decided for share one for each baseline."""
    decided, open_lines = folded_advice(advice)
    return [*(visible(one.told, 2000) for one in decided), *open_lines]


def folded_advice(advice: Sequence[Advice]) -> tuple[list[Advice], list[str]]:
    """The sentences that rest on verdicts, and a line for each baseline on the contenders and uses without one."""
    undecided = [one for one in advice if not (one.better or one.worse or one.same)]
    lines = []
    for baseline in dict.fromkeys(one.baseline for one in undecided):
        mine = [one for one in undecided if one.baseline == baseline]
        uses = ", ".join(f"{visible(one.contender, 60)} ({one.use})" for one in mine)
        lines.append(f"Nothing is decided against {visible(baseline, 60)} for {uses}.")
    return [one for one in advice if one not in undecided], lines


def matrix_parts(matrix: Matrix, results: Results) -> list[str]:
    """Meaning of the signs, and every family's tables."""
    delta = results.study.delta
    small = "" if delta is None else f", ≈ shown to be less than the {plain_number(delta)} % that matter"
    parts = [f"▲ better, ▼ worse, ↑ higher, ↓ lower{small}, ? undecided"]
    for family in matrix.families:
        parts += family_parts(matrix, family)
    return [part for part in parts if part]


def family_parts(matrix: Matrix, family: str) -> list[str]:
    """Means of the main metric, its verdicts, and the growth."""
    metrics = matrix.metrics[family]
    if not metrics:
        return []
    main = metrics[0]
    counts = sorted({place.count for place in matrix.families[family]})
    means = {
        (cell.contender, cell.place.count): mean_and_sd(cell.means[main], cell.sds[main])
        for cell in matrix.cells
        if cell.place.family == family
    }
    heading = [f"{visible(family, 100)}: {main}, {matrix.units[family][main]}", *map(str, counts)]
    rows = [
        [visible(name, 60), *(means.get((name, count), MISSING) for count in counts)] for name in matrix.contenders
    ]
    summed = [names for aspect in SUMMED if len(names := matrix.of_aspect(family, aspect)) == 2]
    shares = [[name] for name in metrics[1:] if matrix.units[family][name] == "%"]
    beside = [grid(sums(matrix, family, counts, names)) for names in (*summed, *shares)]
    verdicts = {(column_of(j), j.place.count): j.result for j in matrix.verdicts(family, main)}
    compared = list(dict.fromkeys(column for column, _ in verdicts))
    judged = []
    for column in compared:
        results = [verdicts.get((column, count)) for count in counts]
        judged.append([column, *(cell(r) if r else MISSING for r in results)])
    growth = [
        f"  {visible(grown.contender, 60)}: {grown.told}"
        for grown in matrix.growth
        if grown.family == family and grown.metric == main
    ]
    return [grid([heading, *rows]), *beside, grid([["compared", *map(str, counts)], *judged]), "\n".join(growth)]


def sums(matrix: Matrix, family: str, counts: Sequence[int], names: Sequence[str]) -> list[Sequence[str]]:
    """A table of the means of metrics that belong together, by contender and count."""
    means = {
        (c.contender, c.place.count): " + ".join(amount(c.means[name]) for name in names)
        for c in matrix.cells
        if c.place.family == family
    }
    rows = [[visible(name, 60), *(means.get((name, n), MISSING) for n in counts)] for name in matrix.contenders]
    kinds, noun = kinds_of(names)
    title = visible(" + ".join(kinds) + (f" {noun}" if noun else f", {matrix.units[family][names[0]]}"), 200)
    return [[f"{visible(family, 100)}: {title}", *map(str, counts)], *rows]


def kinds_of(names: Sequence[str]) -> tuple[list[str], str]:
    """Metrics' names less the last word that all of them share, and that word: empty where they share none."""
    endings = {name.rpartition("_")[2] if "_" in name else "" for name in names}
    noun = endings.pop() if len(endings) == 1 else ""
    return [name.removesuffix(f"_{noun}") if noun else name for name in names], noun


def cell(result: MetricResult) -> str:
    sign = SIGNS["equivalent"] if result.size else sign_of(result)
    share = relative_pct(result) if result.scale == "exact" else None
    return f"{sign} {effect(result) if share is None else signed_number(share, 2) + ' %'}"


def grid(rows: Sequence[Sequence[str]]) -> str:
    """Columns: the first to the left, the others to the right, under a rule."""
    head, *lines = align_columns(rows)
    return "\n".join([head, "─" * max(map(len, (head, *lines))), *lines])


def column_of(judged: JudgedCell) -> str:
    """The name of a comparison: contender against reference, and what both share."""
    pair = judged.pair
    return visible(f"{pair.levels[1]} against {pair.levels[0]}" + (f", {pair.within}" if pair.within else ""), 200)
