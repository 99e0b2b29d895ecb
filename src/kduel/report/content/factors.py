"""Parts of a report about factors: a summary for each metric, with the effects as its rows, and the means of the cells."""

import itertools
import math
from collections.abc import Sequence
from statistics import stdev
from typing import NamedTuple

from msgspec import Struct, structs

from kduel.core.format import amount, effect, mean_and_sd, plain_number
from kduel.core.metric_results import EffectResult, MetricResult
from kduel.core.results import Results
from kduel.core.text import align_columns, enumerate_names, visible
from kduel.judge.factors.contrasts import level_name
from kduel.judge.factors.headline import (
    Group,
    by_metric,
    sentence_of,
    subjects,
    verdict_word,
    with_aliases,
)
from kduel.judge.verdict.headline import how_it_compares, matters
from kduel.judge.verdict.rule import gating_rule
from kduel.report.content.fits import Fit, fits

LINES_OF_CELLS = 16


class FactorGroup(Struct, kw_only=True):
    group: Group
    headline: str
    effects: list[EffectResult]
    cells: "list[CellMean]"
    told: list[str]
    """About levels on a scale: how the metric grows with them, where contenders cross, and which is ahead where."""
    fits: list[Fit]

    @property
    def rows(self) -> list[MetricResult]:
        """The verdicts, each under the name of its effect."""
        return [structs.replace(one.result, benchmark=row_name(one, self.effects), metric="") for one in self.effects]


class CellMean(Struct, kw_only=True):
    """A cell's values over the blocks: the geometric mean where all are positive, else the mean. null: no value."""

    levels: dict[str, str]
    n: int
    mean: float | None
    sd: float | None


def row_name(one: EffectResult, effects: Sequence[EffectResult]) -> str:
    """The effect's name, with what it depends on, and in a fraction the effects that it cannot be told from."""
    name = one.name
    shown = [other for other in effects if other.kind == "interaction" and matters(other.result)]
    over = [factor for other in shown if one.factors[0] in other.factors for factor in other.factors]
    if one.kind == "main" and over:
        name += f" on average over {enumerate_names([f for f in dict.fromkeys(over) if f != one.factors[0]])}"
    return with_aliases(name, one)


def factor_groups(results: Results) -> list[FactorGroup]:
    """A group for each metric that has effects; none for a study without factors."""
    rule = gating_rule(results)
    return [
        FactorGroup(
            group=group,
            headline=f"{'/'.join(group)}: {'. '.join(sentence_of(main, effects, rule) for main in subjects(effects))}",
            effects=effects,
            cells=cells,
            fits=fitted,
            told=[
                *(line for main in subjects(effects) for line in crossings(main, effects)),
                *rankings(effects, cells),
                *(fit.sentence for fit in fitted),
            ],
        )
        for group, effects in by_metric(results).items()
        for cells in (cell_means(results, group),)
        for fitted in (fits(group[1], cell_values(results, group), varies=results.machine.evidence.varies),)
    ]


def cell_values(results: Results, group: Group) -> list[tuple[dict[str, str], list[float | None]]]:
    """The cells of a metric, in the order of contenders and steps: their levels, and the values by block."""
    design = results.study.design
    if design is None:
        return []
    family, name = group
    found: dict[tuple[str, str], list[float | None]] = {}
    for metric in results.metrics:
        place = design.steps.get(metric.benchmark)
        if metric.metric == name and (place.family if place else metric.benchmark) == family:
            found |= {(metric.benchmark, contender): values for contender, values in metric.values.items()}
    return [
        (design.cells.get(contender, {}) | (place.levels if (place := design.steps.get(label)) else {}), values)
        for (label, contender), values in found.items()
    ]


def cell_means(results: Results, group: Group) -> list[CellMean]:
    return [
        CellMean(levels=levels, n=len(there), mean=mean_of(there), sd=stdev(there) if len(there) > 1 else None)
        for levels, values in cell_values(results, group)
        for there in ([value for value in values if value is not None],)
    ]


def mean_of(values: Sequence[float]) -> float | None:
    """The geometric mean of positive values, else the mean; None without a value."""
    if not values:
        return None
    if min(values) <= 0:
        return math.fsum(values) / len(values)
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def number_of(level: str) -> float | None:
    """The number that a level is, for an axis; None where it is none."""
    try:
        value = float(level)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def crossings(main: EffectResult, group: Sequence[EffectResult]) -> list[str]:
    """For each numeric factor: where level and reference cross, and which is ahead where, by verdicts."""
    said: list[str] = []
    simple = [one for one in group if one.kind == "simple" and one.levels == main.levels]
    for factor in dict.fromkeys(name for one in simple for name in one.at):
        points = [(number_of(one.at[factor]), one.result) for one in simple if factor in one.at]
        scale = (
            sorted((value, result) for value, result in points if value is not None)
            if all(value is not None for value, _ in points)
            else []
        )
        if len(scale) < 2:
            continue
        named = {name for one in group for name in (*one.factors, *one.at)} - {factor, *main.factors}
        averaged = f", on average over {' and '.join(sorted(named))}" if named else ""
        clear = [(value, result) for value, result in scale if matters(result)]
        crossed = len(said)
        for (low, before), (high, after) in itertools.pairwise(clear):
            if before.word != after.word:
                said.append(
                    f"{main.levels[0]} and {main.references[0]} cross between {factor} {plain_number(low)} "
                    f"({before.word}, {effect(before)}) and {plain_number(high)} ({after.word}, {effect(after)})"
                )
        if len(said) == crossed and clear and len({result.word for _, result in clear}) == 1:
            how = how_it_compares(clear[0][1])
            where = ", ".join(plain_number(value) for value, _ in clear)
            said.append(
                f"no crossing is shown over {factor} {plain_number(scale[0][0])} to {plain_number(scale[-1][0])}: "
                f"{main.levels[0]} {how} at {where}, elsewhere equivalent or undecided{averaged}"
                if len(clear) < len(scale)
                else f"{main.levels[0]} {how} at every {factor} measured ({where}){averaged}"
            )
    return [visible(line, 1000) for line in said]


def rankings(effects: Sequence[EffectResult], cells: Sequence[CellMean]) -> list[str]:
    """For each level of a factor whose levels are numbers: the first factor's levels by their means, the best one first, each with
    its verdict against the reference, if more than two are compared."""
    first = subjects(effects)
    if len(first) < 2 or first[0].result.better == "none":
        return []
    subject, highest_first = first[0].factors[0], first[0].result.better == "higher"
    said = []
    simple = [one for one in effects if one.kind == "simple"]
    for factor, level in dict.fromkeys(place for one in simple for place in one.at.items()):
        if number_of(level) is None:
            continue
        words = {one.levels[0]: verdict_word(one.result) for one in simple if one.at.get(factor) == level}
        means = {
            name: mean_of([c.mean for c in cells if c.mean is not None and c.levels.get(subject) == name and c.levels.get(factor) == level])
            for name in (first[0].references[0], *words)
        }  # fmt: skip
        known = {name: mean for name, mean in means.items() if mean is not None}
        order = sorted(known, key=lambda name: known[name], reverse=highest_first)
        listed = "; ".join(f"{name} {amount(known[name])}, {words.get(name, 'the reference')}" for name in order)
        said.append(visible(f"ranking at {level_name(factor, level)}: {listed}", 1000))
    return said


class MatrixRow(NamedTuple):
    """A factor: its main effects, and its interactions with the factors before it."""

    name: str
    cells: list[list[EffectResult]]


def effect_matrix(effects: Sequence[EffectResult]) -> list[MatrixRow]:
    """The lower half of the matrix of factors by factors: main effects on the diagonal, interactions of two beside it."""
    names = list(dict.fromkeys(name for one in effects if one.kind == "main" for name in one.factors))
    return [
        MatrixRow(
            row,
            [
                [one for one in effects if one.kind != "simple" and set(one.factors) == {row, column}]
                for column in names[: place + 1]
            ],
        )
        for place, row in enumerate(names)
    ]


def cell_lines(found: FactorGroup) -> list[str]:
    """The cells' means in lines of columns; nothing where they are too many for a screen."""
    if len(found.cells) > LINES_OF_CELLS:
        return []
    unit = visible(found.effects[0].result.unit, 20)
    rows = [
        (
            visible(", ".join(f"{name}={level}" for name, level in cell.levels.items()), 100),
            f"{mean_and_sd(cell.mean, cell.sd)} {unit} (n = {cell.n})",
        )
        for cell in found.cells
    ]
    return align_columns(rows, left=(0, 1))
