"""Values that depend on the trial's place within its block."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from kduel.core.evidence import Evidence
from kduel.core.samples import Samples
from kduel.judge.lint.case import Case, Floats, gap_text
from kduel.judge.lint.finding import Cause, Finding

FEWEST_BLOCKS = 6


class Places(NamedTuple):
    """Complete blocks of a table. Both arrays have the shape (blocks, contenders)."""

    values: Floats
    """Logarithms where all are positive."""
    places: Floats
    """Of each contender's trial within its block, from 0."""
    logarithmic: bool


def order_effect(case: Case) -> Iterator[str]:
    """An analysis of variance: values by contender, block and place; the effect of the places is tested."""
    gaps, chance = significant_gaps(case, places_of)
    if not gaps:
        return
    listed = ", ".join(f"place {number} {text}" for number, text in enumerate(gaps, 2))
    if case.rule.in_turns:
        yield (
            f"Who is started first in its block changes the value: against the first, {listed} (p = {chance:.1g}). Guests "
            "that take turns differ by where their memory lies and how long they were held. The order is drawn for each "
            "block, which keeps it out of the verdict and widens the interval."
        )
        return
    yield (
        f"A trial's place in its block changes the value: against the first place, {listed} (p = {chance:.1g}). "
        "The trial before leaves something behind: heat, full caches, a used disk. Let the machine come to rest between "
        "trials."
    )


def significant_gaps(case: Case, levels_of: Callable[[Samples], Places | None]) -> tuple[list[str], float]:
    """The differences of places from the first one in words, and their chance; none where chance explains them."""
    found = None if not case.paired else levels_of(case.table)
    effects, chance = (np.zeros(1), 1.0) if found is None else place_effects(found)
    if found is None or chance >= case.level:
        return [], 1.0
    return [gap_text(gap, found.logarithmic, case.metric.unit) for gap in effects[1:] - effects[0]], chance


def places_of(table: Samples) -> Places | None:
    """The complete blocks whose order is known; None where there are too few, or the orders never change."""
    rows, places = [], []
    for index in range(len(table.blocks)):
        row = [values[index] for values in table.values.values()]
        order = [table.order[name][index] if table.order.get(name) else None for name in table.values]
        if None not in row and None not in order:
            rows.append(row)
            places.append(np.argsort(np.argsort(np.array(order, dtype=float))))
    if len(rows) < FEWEST_BLOCKS:
        return None
    values = np.array(rows, dtype=float)
    positive = bool((values > 0).all())
    return Places(np.log(values) if positive else values, np.array(places, dtype=float), positive)


def place_effects(found: Places) -> tuple[Floats, float]:
    """The mean effect of each place, less their mean, and the chance of effects so large by chance (least squares
    without contenders and blocks, F test); 1 where the orders do not allow an estimate."""
    from scipy.special import fdtrc

    blocks, arms = found.values.shape
    response = (found.values - found.values.mean(axis=1, keepdims=True)).ravel()
    by_arm = np.tile(np.eye(arms)[None, :, 1:], (blocks, 1, 1))
    by_place = (found.places[:, :, None] == np.arange(1, arms)).astype(float)
    full = np.concatenate([by_arm, by_place], axis=2)
    full = (full - full.mean(axis=1, keepdims=True)).reshape(blocks * arms, -1)
    simple = full[:, : arms - 1]
    freedom = blocks * (arms - 1) - full.shape[1]
    if freedom < 1 or np.linalg.matrix_rank(full) < full.shape[1]:
        return np.zeros(arms), 1.0
    fitted, *_ = np.linalg.lstsq(full, response, rcond=None)
    rest = float(((response - full @ fitted) ** 2).sum())
    without = float(((response - simple @ np.linalg.lstsq(simple, response, rcond=None)[0]) ** 2).sum())
    effects = np.concatenate([[0.0], fitted[arms - 1 :]])
    effects -= effects.mean()
    if rest <= 1e-18 * without or without <= 0:
        return effects, 0.0 if without > 0 and np.ptp(effects) > 0 else 1.0
    ratio = (without - rest) / (arms - 1) / (rest / freedom)
    return effects, float(fdtrc(arms - 1, freedom, max(ratio, 0.0)))


PLUGIN = Finding(
    name="order-effect", cause=Cause.ORDER, weight=52,
    meaning="A trial's place within its block changes its value: the trial before it leaves something behind (heat, a "
    "full cache, a used disk). From ten blocks on it is a covariate of the interval; with fewer it widens the interval. Where contenders take "
    "turns it is the place in the order of starts, and never a covariate.",
    remedy="Let the machine cool down and come to rest between trials; discard caches.",
    chance=True, check=order_effect, least=Evidence.VARYING,
)  # fmt: skip
