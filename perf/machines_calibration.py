"""Verdicts over several machines on simulated noise: the tables of docs/statistics.md, "Several machines".

    .venv/bin/python perf/machines_calibration.py [--runs 5000] [--write]

The code that judges real runs judges the simulated ones, with its looks. Differences of pairs have a standard deviation
of 1 on a machine unless a row says otherwise; blocks go round the machines. Seeded.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np
from verdict_calibration import main, pct, table

from kduel.core.experiment import Scope
from kduel.judge.verdict import strata
from kduel.judge.verdict.classify import ABOVE, UNDECIDED
from kduel.judge.verdict.looks import Looks, decide, orders_vary, plan_looks, repeated_interval
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.spending import Floats, critical_t

MACHINES = (2, 4, 8, 16)
BLOCKS = 10
"""Planned on each machine."""
MARGIN = 1e-9
"""Nothing counts as equivalent here: its errors follow from the interval's."""
DROPS = ("none", "a quarter", "half")
"""Of the machines, those that leave after three rounds."""


class Ended(NamedTuple):
    """Simulated runs at the look at which each ended."""

    called: Floats
    """By run: 1 or -1 for higher or lower, 0 for undecided."""
    covered: float
    """Share of runs whose last interval holds the truth."""
    blocks: float
    """Mean number."""
    named: float
    """Share of runs in which any machine is named."""
    heterogeneity: float
    """Share of runs whose interval of the heterogeneity holds it."""


def rounds(machines: int, drop: str, planned: int = BLOCKS) -> np.ndarray:
    """Which machine ran each block."""
    leaving = {"none": 0, "a quarter": machines // 4, "half": machines // 2}[drop]
    whole = [one for turn in range(planned) for one in range(machines) if turn < 3 or one >= leaving]
    return np.array(whole)


def simulated(
    machines: int,
    *,
    runs: int,
    scope: Scope,
    spread: float = 0.0,
    louder: float = 1.0,
    drop: str = "none",
    effect: float = 0.0,
    odd: float = 0.0,
    stop: bool = True,
    seed: int = 1,
    planned: int = BLOCKS,
) -> Ended:
    """Runs whose machines have effects that vary by `spread` about `effect`; the first one is `louder` times as noisy,
    and its effect `odd` higher. They end when decided, or not before their last block without `stop`. About these machines the truth is their own mean, so that it is set to `effect`."""
    draw = np.random.default_rng([seed, machines, round(100 * spread)])
    order = rounds(machines, drop, planned)
    true = spread * draw.standard_normal((runs, machines))
    if scope == "these":
        share = np.bincount(order, minlength=machines) / order.size
        true -= (true @ share)[:, None]
    true += effect + odd * (np.arange(machines) == 0)
    scale = np.where(np.arange(machines) == 0, louder, 1.0)
    values = true[:, order] + scale[order] * draw.standard_normal((runs, order.size))
    places = draw.choice([-1.0, 1.0], values.shape)
    rule = Rule(max_blocks=machines * planned, scope=scope).for_comparisons(1)
    every = plan_looks(rule, range(1, order.size + 1))
    # A fleet decides after complete rounds: the next block belongs to a machine that comes before the last one.
    kept = [
        place for place, count in enumerate(every.blocks) if count == order.size or order[count] <= order[count - 1]
    ]
    blocks = tuple(every.blocks[place] for place in kept)
    looks = Looks(blocks, tuple(every.pairs[place] for place in kept), len(kept))
    levels = every.levels(rule, rule.alpha)[kept]
    found = strata.estimates(values, [places], order, looks.pairs, rule.adjusts_from, scope)
    low, high = repeated_interval(found, levels)
    may = orders_vary(places, looks.pairs, rule) & strata.enough(order, looks.pairs, rule.fewest)
    decision = decide(low, high, looks, MARGIN, rule, may)
    decided = decision.holds & stop
    end = np.where(decided.any(axis=1), decided.argmax(axis=1), len(looks.blocks) - 1)
    last = np.arange(runs)
    side = np.where(decision.holds[last, end] & (decision.side != UNDECIDED), decision.side, 0)
    covered = (low[last, end] <= effect) & (effect <= high[last, end])
    named = between = 0
    for look in np.unique(end):
        here = end == look
        count = looks.pairs[look]
        fit = strata.fit(
            values[here, :count], [places[here, :count]] if count >= (rule.adjusts_from or 0) else [], order[:count]
        )
        level = float(levels[look])
        named += int((strata.effects_by_machine(fit, level).excess > 1).any(axis=1).sum())
        wide = strata.heterogeneity(fit, rule.alpha)
        between += int(((wide.low <= spread) & (spread <= wide.high)).sum())
    return Ended(side, float(covered.mean()), float(np.array(looks.blocks)[end].mean()), named / runs, between / runs)


def false_alarms(runs: int) -> list[str]:
    """No effect: how often a difference is claimed, and the last interval misses 0."""
    rows = []
    for machines in MACHINES:
        for spread, louder, drop in (
            (0.0, 1.0, "none"), (0.0, 4.0, "none"), (0.0, 1.0, "half"), (0.0, 4.0, "half"),
            (1.0, 1.0, "none"), (1.0, 4.0, "a quarter"), (3.0, 1.0, "none"), (3.0, 1.0, "half"),
        ):  # fmt: skip
            if drop == "a quarter" and machines < 4:
                continue
            cells = [machines, f"{spread:g}", f"{louder:g}", drop]
            # With effects that differ and machines that leave, "these machines" change on the way.
            for scope in ("these", "class") if not (spread and drop != "none") else ("class",):
                if scope == "class" and machines < strata.FEWEST_OF_CLASS:
                    cells += ["–", "–"]
                    continue
                ended = simulated(machines, runs=runs, scope=scope, spread=spread, louder=louder, drop=drop)  # type: ignore[arg-type]
                cells += ["–"] * (2 if scope == "class" and len(cells) == 4 else 0)
                cells += [pct(float((ended.called != 0).mean())), pct(ended.covered)]
            rows.append(cells + ["–"] * (8 - len(cells)))
    heads = [
        "machines",
        "SD of effects",
        "one noisier by",
        "leave",
        "these: false, %",
        "covered, %",
        "class: false, %",
        "covered, %",
    ]
    return table(heads, rows)


def few_rounds(runs: int) -> list[str]:
    """No effect, few blocks on each of many machines, the first of them 20 times as noisy."""
    rows = []
    for machines in (6, 8, 12, 16):
        called = [simulated(machines, runs=runs, scope="these", louder=20.0, planned=few).called for few in (3, 4)]
        rows.append((machines, *(pct(float((one != 0).mean())) for one in called)))
    return table(("machines", "3 rounds: false, %", "4 rounds: false, %"), rows)


def power(runs: int) -> list[str]:
    """A true effect: how often it is found, and after how many blocks of all machines."""
    rows = []
    for machines in MACHINES:
        for effect, spread in ((1.0, 0.0), (1.0, 0.5), (2.0, 1.0)):
            cells = [machines, f"{effect:g}", f"{spread:g}"]
            for scope in ("these", "class") if machines >= strata.FEWEST_OF_CLASS else ("these",):
                ended = simulated(machines, runs=runs, scope=scope, spread=spread, effect=effect)  # type: ignore[arg-type]
                cells += [pct(float((ended.called == ABOVE).mean()), 0), f"{ended.blocks:.1f}"]
            rows.append(cells + ["–"] * (7 - len(cells)))
    heads = ["machines", "effect", "SD of effects", "these: found, %", "blocks", "class: found, %", "blocks"]
    return table(heads, rows)


def disagreement(runs: int) -> list[str]:
    """Machines that agree are seldom told apart; one that is off is named; the heterogeneity's interval holds it."""
    rows = []
    for machines in MACHINES:
        quiet = simulated(machines, runs=runs, scope="these")
        loud = simulated(machines, runs=runs, scope="these", louder=4.0)
        cells = [machines, pct(quiet.named), pct(loud.named)]
        for odd in (-3.0, -6.0):
            cells.append(pct(simulated(machines, runs=runs, scope="these", effect=2.0, odd=odd, stop=False).named, 0))
        for spread in (0.0, 0.5, 2.0):
            held = simulated(machines, runs=runs, scope="class", spread=spread).heterogeneity
            cells.append(pct(held))
        rows.append(cells)
    heads = [
        "machines", "named, none differs, %", "named, one 4 times noisier, %", "named, one differs by 3 SD, %", "by 6 SD",
        "SD of effects 0: held, %", "0.5", "2",
    ]  # fmt: skip
    return table(heads, rows)


def candidates(runs: int) -> list[str]:
    """Intervals for a class at one look: how often each misses, in per cent; the choice between them."""
    rows = []
    for machines in (4, 6, 10, 20):
        for name, counts in (
            ("5 each", [5] * machines),
            ("half 10, half 2", [10] * (machines // 2) + [2] * (machines // 2)),
        ):
            for spread, louder in ((0.0, 1.0), (0.5, 4.0), (1.0, 4.0), (3.0, 1.0)):
                draw = np.random.default_rng([machines, round(10 * spread)])
                order = np.repeat(np.arange(machines), counts)
                scale = np.where(np.arange(machines) == 0, louder, 1.0)[order]
                values = (spread * draw.standard_normal((runs, machines)))[:, order] + scale * draw.standard_normal(
                    (runs, order.size)
                )
                fit = strata.fit(values, [], order)
                mean, error, freedom = strata.on_the_class(fit)
                own = float((np.abs(mean) > critical_t(np.asarray(0.05), freedom) * error).mean())
                rows.append([machines, name, f"{spread:g}", f"{louder:g}", pct(own), *map(pct, weighted(fit))])
    heads = [
        "machines",
        "blocks",
        "SD of effects",
        "one noisier by",
        "t over machines",
        "Hartung-Knapp, by precision",
        "DerSimonian-Laird, normal",
    ]
    return table(heads, rows)


def weighted(fit: strata.Fit) -> tuple[float, float]:
    """The misses of two usual intervals with weights by precision (DerSimonian and Laird's variance between machines)."""
    errors = strata.variance_within(fit).variance[:, None] / fit.counts
    weights = 1 / errors

    def mean(weights: Floats) -> Floats:
        found: Floats = (weights * fit.effects).sum(axis=1) / weights.sum(axis=1)
        return found

    freedom = fit.counts.size - 1
    squares = (weights * (fit.effects - mean(weights)[:, None]) ** 2).sum(axis=1)
    scale = weights.sum(axis=1) - (weights**2).sum(axis=1) / weights.sum(axis=1)
    between = np.maximum(0, (squares - freedom) / scale)[:, None]
    weights = 1 / (errors + between)
    centre = mean(weights)
    knapp = np.sqrt((weights * (fit.effects - centre[:, None]) ** 2).sum(axis=1) / freedom / weights.sum(axis=1))
    plain = 1 / np.sqrt(weights.sum(axis=1))
    level = np.asarray(0.05)
    return (
        float((np.abs(centre) > critical_t(level, freedom) * knapp).mean()),
        float((np.abs(centre) > critical_t(level, 1e6) * plain).mean()),
    )


UNEQUAL = (
    ("17 + 3", (17, 3), 1.0),
    ("17 + 3", (17, 3), 4.0),
    ("17 + 3", (17, 3), 10.0),
    ("20 + 4", (20, 4), 10.0),
    ("15 + 5", (15, 5), 4.0),
    ("9 + 3", (9, 3), 5.0),
    ("10 + 10", (10, 10), 1.0),
    ("10 + 10", (10, 10), 10.0),
    ("8 of 3", (3,) * 8, 1.0),
    ("8 of 3", (3,) * 8, 20.0),
    ("16 of 10", (10,) * 16, 30.0),
)
"""Blocks of each part; the last one is so many times as noisy."""


def unequal(runs: int) -> str:
    """One look at parts of unequal size and noise: false positives by three variances, and the mean width of the present
    interval against the pooled one."""
    rows: list[list[object]] = []
    for name, counts, louder in UNEQUAL:
        draw = np.random.default_rng([len(counts), sum(counts), round(louder)])
        order = np.repeat(np.arange(len(counts)), counts)
        scale = np.where(order == len(counts) - 1, louder, 1.0)
        fit = strata.fit(scale * draw.standard_normal((4 * runs, order.size)), [], order)
        mean, error, freedom = strata.on_these(fit)
        pooled, (own, own_freedom) = strata.variance_within(fit), welch(fit)
        halves = [
            critical_t(np.asarray(0.05), degrees) * width
            for width, degrees in (
                (np.sqrt(pooled.variance / order.size), pooled.freedom),
                (own, own_freedom),
                (error, freedom),
            )
        ]
        shares = [pct(float((np.abs(mean) > half).mean())) for half in halves]
        rows.append([name, f"{louder:g}", *shares, f"{halves[2].mean() / halves[0].mean():.2f}"])
    heads = [
        "blocks",
        "last one noisier by",
        "pooled",
        "own variances, Satterthwaite",
        "present method",
        "width / pooled",
    ]
    return table(heads, rows)


def welch(fit: strata.Fit) -> tuple[Floats, Floats]:
    """The mean's error from each part's own variance, with Satterthwaite's degrees of freedom."""
    freedom = fit.counts - 1.0
    parts = fit.squares / freedom * fit.counts / fit.counts.sum() ** 2
    return np.sqrt(parts.sum(axis=1)), parts.sum(axis=1) ** 2 / (parts**2 / freedom).sum(axis=1)


PARTS = {
    "machines-alarms": false_alarms,
    "machines-unequal": unequal,
    "machines-few-rounds": few_rounds,
    "machines-power": power,
    "machines-disagreement": disagreement,
    "machines-candidates": candidates,
}

if __name__ == "__main__":
    main(PARTS, __doc__, runs=5000)
