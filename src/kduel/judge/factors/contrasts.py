"""From the cells of a design to effects: each is a table of two arms, which the rule judges as it judges two contenders.

An arm is a mean over cells, in logarithms, taken within each block. A main effect compares the cells of a level with those of
the first level; an interaction compares the effect of one factor at two levels of another, so that its arms are ratios. A block
in which a cell of either arm is missing does not count for that effect: it would be an effect of other surroundings."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct, structs

from kduel.core.experiment import Design, Factor
from kduel.core.metric_results import EffectKind, EffectResult, MetricResult
from kduel.core.samples import Samples
from kduel.judge.verdict.sample_size import INTERACTION
from kduel.judge.verdict.spending import Floats

ALONE = ("kernel", "contender")
"""Factors whose levels need no name before them."""
SAME = 1e-9
PARTS = 1_000_000
"""Parts of a place: the mean place of several cells, as a whole number."""


class Change(NamedTuple):
    """One level of a factor against its first."""

    factor: str
    reference: str
    level: str


class Effect(Struct, kw_only=True):
    name: str
    kind: EffectKind
    changes: list[Change]
    at: dict[str, str]
    """Of a simple effect: the level of another factor at which it is one."""
    table: Samples
    aliases: list[str]
    """Other effects that the same cells show, so that a fraction cannot tell them apart."""

    def result(self, judged: MetricResult) -> EffectResult:
        return EffectResult(
            name=self.name, kind=self.kind, factors=[change.factor for change in self.changes],
            references=[change.reference for change in self.changes],
            levels=[change.level for change in self.changes], at=self.at, aliases=self.aliases, result=judged,
        )  # fmt: skip


class Cell(NamedTuple):
    """A contender's values of one step."""

    levels: dict[str, str]
    table: Samples
    contender: str


def gating(samples: Sequence[Samples], design: Design | None) -> list[Samples]:
    """The tables that are judged: of a study with factors its cells, which decide nothing, and then its effects."""
    if design is None:
        return list(samples)
    return [*cell_tables(samples), *(effect.table for effect in effects(samples, design))]


def cell_tables(samples: Sequence[Samples]) -> list[Samples]:
    return [structs.replace(table, primary=False) for table in samples]


def effects(samples: Sequence[Samples], design: Design) -> list[Effect]:
    """All effects of the primary metrics, or of all where none is primary; of counts differences, not ratios."""
    chosen = [table for table in samples if table.primary] or samples
    families: dict[tuple[str, str], list[Samples]] = {}
    for table in chosen:
        place = design.steps.get(table.benchmark)
        families.setdefault((place.family if place else table.benchmark, table.metric.name), []).append(table)
    return [effect for (family, _), tables in families.items() for effect in family_effects(family, tables, design)]


def family_effects(family: str, tables: Sequence[Samples], design: Design) -> list[Effect]:
    """The effects of one metric of steps that differ in nothing but factors."""
    steps = [design.steps.get(table.benchmark) for table in tables]
    cells = [
        Cell(design.cells[name] | (step.levels if step else {}), table, name)
        for step, table in zip(steps, tables, strict=True)
        for name in table.contenders
        if name in design.cells
    ]
    factors = [one for one in design.factors if len({cell.levels.get(one.name) for cell in cells}) > 1]
    values = by_cell(cells, lambda cell: cell.table.values[cell.contender])
    additive = tables[0].counted or bool((values <= 0).any())
    found: list[Effect] = []
    seen: list[tuple[Floats, Effect]] = []
    for kind, changes, at in contrasts(factors, design.interactions):
        arms = arm_weights(changes, at, cells)
        if arms is None:
            continue
        name = name_of(changes, at, factors)
        gap = arms[1] - arms[0]
        direction = gap / np.linalg.norm(gap)
        if alias := next((one for known, one in seen if abs(abs(known @ direction) - 1) < SAME), None):
            alias.aliases.append(name)
            continue
        effect = Effect(
            name=name, kind=kind, changes=changes, at=at, aliases=[],
            table=effect_table(family, cells, values, arms, changes, at, additive=additive),
        )  # fmt: skip
        found.append(effect)
        seen.append((direction, effect))
    return found


def contrasts(factors: Sequence[Factor], order: int) -> Iterator[tuple[EffectKind, list[Change], dict[str, str]]]:
    """Main effects, then interactions up to so many factors, then the effects of the first factor at each level of the others."""
    changes = {one.name: [Change(one.name, one.levels[0], level) for level in one.levels[1:]] for one in factors}
    for size in range(1, order + 1):
        for chosen in itertools.combinations(factors, size):
            for combined in itertools.product(*(changes[one.name] for one in chosen)):
                yield "main" if size == 1 else "interaction", list(combined), {}
    if order > 1:
        for change in changes[factors[0].name] if factors else ():
            for other in factors[1:]:
                for level in other.levels:
                    yield "simple", [change], {other.name: level}


def arm_weights(
    changes: Sequence[Change], at: Mapping[str, str], cells: Sequence[Cell]
) -> tuple[Floats, Floats] | None:
    """The weight of each cell in both arms; None where the design lacks the cells for it."""

    def mean(levels: Mapping[str, str]) -> Floats | None:
        chosen = np.array([all(cell.levels.get(name) == level for name, level in levels.items()) for cell in cells])
        return chosen / chosen.sum() if chosen.any() else None

    def signed_weights(rest: Sequence[Change], levels: Mapping[str, str]) -> Floats | None:
        if not rest:
            return mean(levels)
        change = rest[0]
        first, other = (
            signed_weights(rest[1:], {**levels, change.factor: level}) for level in (change.reference, change.level)
        )
        return None if first is None or other is None else other - first

    last = changes[-1]
    before, after = (
        signed_weights(changes[:-1], {**at, last.factor: level}) for level in (last.reference, last.level)
    )
    return None if before is None or after is None else (before, after)


def effect_table(
    family: str,
    cells: Sequence[Cell],
    values: Floats,
    arms: tuple[Floats, Floats],
    changes: Sequence[Change],
    at: Mapping[str, str],
    *,
    additive: bool,
) -> Samples:
    """Both arms by block. `additive`: means and differences of values instead of logarithms. The arms of counts' interaction
    are the count of its last cells, as it would be if effects added, and as it is."""
    first = cells[0].table
    same = all(cell.table.metric.about == first.metric.about for cell in cells)
    table = first if same else structs.replace(first, metric=structs.replace(first.metric, about=""))
    interaction = len(changes) > 1
    names = arm_names(changes, at)
    shown = arms
    if table.counted and interaction:
        where = " at ".join(level_name(one.factor, one.level) for one in changes)
        names = f"{where} if effects added", where
        chosen = np.array(
            [all(cell.levels.get(one.factor) == one.level for one in changes) for cell in cells], dtype=float
        )
        last: Floats = chosen / chosen.sum()
        shown = last - (arms[1] - arms[0]), last
    scaled = values if additive else np.log(values)
    found = [weighted_sum(weights, scaled) for weights in shown]
    if not additive:
        found = [np.exp(arm) for arm in found]
    elif interaction and not table.counted:
        # A ratio of differences means nothing.
        found = [found[0] * 0, found[1] - found[0]]
    positions = by_cell(cells, lambda cell: cell.table.order.get(cell.contender) or [None] * len(cell.table.blocks))
    steps = 1 + max((place for cell in cells for place in cell.table.places), default=0)
    positions = positions * steps + by_cell(cells, lambda cell: cell.table.places or [0] * len(cell.table.blocks))
    absent = (
        by_cell(cells, lambda cell: cell.table.absent.get(cell.contender) or [False] * len(cell.table.blocks)) > 0
    )
    beyond = (
        by_cell(cells, lambda cell: [b in cell.table.beyond.get(cell.contender, ()) for b in cell.table.blocks]) > 0
    )
    gap = arms[1] - arms[0]
    covariates = {
        key: np.array([cell.table.covariates[key][cell.contender] for cell in cells], dtype=float)
        for key in table.covariates
    }
    metric = structs.replace(table.metric, exact=False)
    if interaction:
        metric = structs.replace(metric, unit=metric.unit if additive else INTERACTION, better="none")
    weights_of = dict(zip(names, arms, strict=True))
    return Samples(
        benchmark=family, metric=metric, primary=table.primary, counted=table.counted, blocks=table.blocks,
        values={name: as_list(arm) for name, arm in zip(names, found, strict=True)},
        conditions=arm_conditions(cells, dict(zip(names, shown, strict=True))) if table.counted else {},
        scheduled=table.scheduled, resolution=table.resolution, machines=table.machines,
        order={
            name: [None if one is None else round(one * PARTS) for one in as_list(weighted_sum(weights, positions))]
            for name, weights in weights_of.items()
        },
        absent={
            name: absent[weights != 0].any(axis=0).tolist() for name, weights in weights_of.items() if absent.any()
        },
        beyond={
            name: [table.blocks[place] for place in np.flatnonzero(beyond[cell_raises].any(axis=0))]
            for name, cell_raises in zip(names, (gap < 0, gap > 0), strict=True)
            if beyond.any()
        },
        covariates={
            key: {name: as_list(weighted_sum(weights, known)) for name, weights in weights_of.items()}
            for key, known in covariates.items()
        },
    )  # fmt: skip


def arm_conditions(cells: Sequence[Cell], arms: Mapping[str, Floats]) -> dict[str, list[dict[str, float]]]:
    """By arm and block: its count under each condition that all of its cells have; nothing where a cell has none."""
    counted = [cell.table.conditions.get(cell.contender) for cell in cells]
    found: dict[str, list[dict[str, float]]] = {}
    for name, weights in arms.items():
        used = [(weight, blocks) for weight, blocks in zip(weights.tolist(), counted, strict=True) if weight]
        there = [(weight, blocks) for weight, blocks in used if blocks]
        if len(there) < len(used):
            return {}
        found[name] = [
            {
                condition: sum(weight * blocks[block][condition] for weight, blocks in there)
                for condition in there[0][1][block]
                if all(condition in blocks[block] for _, blocks in there)
            }
            for block in range(len(cells[0].table.blocks))
        ]
    return found


def by_cell(cells: Sequence[Cell], column: Callable[[Cell], Sequence[float | None]]) -> Floats:
    """By cell and block; NaN is a missing value."""
    return np.array([column(cell) for cell in cells], dtype=float)


def weighted_sum(weights: Floats, values: Floats) -> Floats:
    used = weights != 0
    found: Floats = weights[used] @ values[used]
    return found


def as_list(values: Floats) -> list[float | None]:
    """With None for what is missing."""
    return [None if np.isnan(value) else float(value) for value in values]


def level_name(factor: str, level: str) -> str:
    """`thp=never`; of kernels and contenders the level alone."""
    return level if factor in ALONE else f"{factor}={level}"


def arm_names(changes: Sequence[Change], at: Mapping[str, str]) -> tuple[str, str]:
    """The two arms in words: `debian-6.12 at thp=never`, or of an interaction `debian-6.12 / debian-6.1 at thp=never`."""
    last = changes[-1]
    if len(changes) == 1:
        where = "".join(f" at {level_name(name, level)}" for name, level in at.items())
        return level_name(last.factor, last.reference) + where, level_name(last.factor, last.level) + where
    effect = " of ".join(f"{change.level} / {change.reference}" for change in changes[:-1])
    first, other = (f"{effect} at {level_name(last.factor, level)}" for level in (last.reference, last.level))
    return first, other


def name_of(changes: Sequence[Change], at: Mapping[str, str], factors: Sequence[Factor]) -> str:
    """`kernel: debian-6.12`, `kernel: debian-6.12 at thp=never`, `kernel × thp`; with levels where a factor has several."""
    if len(changes) == 1:
        where = "".join(f" at {level_name(name, level)}" for name, level in at.items())
        return f"{changes[0].factor}: {changes[0].level}{where}"
    several = {one.name for one in factors if len(one.levels) > 2}
    levels = [change.level for change in changes if change.factor in several]
    crossed = " × ".join(change.factor for change in changes)
    return f"{crossed}: {', '.join(levels)}" if levels else crossed
