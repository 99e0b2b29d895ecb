"""Reducers of slices on simulated interference: the tables of docs/evidence/slices.md.

    .venv/bin/python perf/slices_calibration.py [--runs 4000] [--write]

A trial is 24 s long; a step has 2 s of it, in one piece or in slices. Interference comes in spells that take a share of the
speed; their lengths are exponential. The code that reduces real slices reduces the simulated ones, and the code that judges
real runs judges them. Seeded; some minutes of one processor.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

import numpy as np
from lint_runs import linted
from lint_runs import table as lint_table
from numpy.typing import NDArray
from verdict_calibration import RULE, main, pct, table, tried

from kduel.core.experiment import Metric
from kduel.core.samples import Samples
from kduel.core.slices import REDUCERS, SliceValue, reduce_slices
from kduel.judge.verdict.noise import Arms, Noise

Floats = NDArray[np.float64]
TRIAL, STEP, BIN = 24.0, 2.0, 0.125
"""Seconds."""
NOISE, BOOT = 0.01, 0.005
"""Spread of one second, and of boots, as shares."""
USUAL = 8
"""Slices, where a table does not vary them."""
RATE = Metric("rate", "1/s", "higher")
Change = Callable[[Floats, np.random.Generator], Floats]


def best(share: float, values: Sequence[float], _: Metric) -> float:
    """Mean of the best share of the values: candidates that KDuel does not have."""
    ordered = sorted(values, reverse=True)[: max(1, round(share * len(values)))]
    return math.fsum(ordered) / len(ordered)


CANDIDATES = dict(REDUCERS) | {"best quarter": partial(best, 0.25), "best": partial(best, 0.0)}


class Host(NamedTuple):
    """How a host interferes: seconds without and within a spell, and the shares of speed that a spell takes."""

    name: str
    quiet: float
    busy: float
    depth: tuple[float, float] = (0.05, 0.5)


HOSTS = (
    Host("quiet", 1, 1, (0, 0)),
    Host("3 s of spells, 30 s between", 30, 3),
    Host("0.3 s, 1 s between", 1, 0.3),
    Host("4 s, 6 s between", 6, 4),
    Host("20 s, 20 s between", 20, 20),
)
QUIET = HOSTS[0]


def speeds(host: Host, boots: int, draw: np.random.Generator) -> Floats:
    """Speed in each bin of each boot, 1 without a spell."""
    into, out = 1 - np.exp(-BIN / host.quiet), 1 - np.exp(-BIN / host.busy)
    inside = draw.random(boots) < host.busy / (host.busy + host.quiet)
    depth = draw.uniform(*host.depth, boots)
    speed = np.empty((boots, int(TRIAL / BIN)))
    for column in speed.T:
        chance = draw.random(boots)
        after = np.where(inside, chance >= out, chance < into)
        depth = np.where(after & ~inside, draw.uniform(*host.depth, boots), depth)
        inside = after
        column[:] = np.where(inside, 1 - depth, 1)
    return speed


def measured(speed: Floats, slices: int, draw: np.random.Generator) -> Floats:
    """Values of each slice, each at a place drawn within its part of the trial. Shape: boots, slices."""
    boots, bins = speed.shape
    width = max(1, round(STEP / slices / BIN))
    until = np.concatenate([np.zeros((boots, 1)), np.cumsum(speed, axis=1)], axis=1)
    values = np.empty((boots, slices))
    for number in range(slices):
        first, end = number * bins // slices, (number + 1) * bins // slices
        starts = draw.integers(first, max(first + 1, end - width + 1), boots)
        values[:, number] = (until[np.arange(boots), starts + width] - until[np.arange(boots), starts]) / width
    return values * np.exp(
        draw.normal(0, NOISE / np.sqrt(STEP / slices), values.shape) + draw.normal(0, BOOT, (boots, 1))
    )


def boot_values(values: Floats, reducer: str) -> Floats:
    """A value of each boot."""
    if reducer in REDUCERS:
        return np.array([reduce_slices(boot, RATE, reducer) for boot in values.tolist()])  # type: ignore[arg-type]
    return np.array([CANDIDATES[reducer](boot, RATE) for boot in values.tolist()])


def sd(values: Floats) -> float:
    """Spread between boots, as a share."""
    return float(np.log(values).std())


def spreads(runs: int) -> list[str]:
    """Spread between boots by host and reducer, in per cent."""
    rows = []
    for host in HOSTS:
        draw = np.random.default_rng(1)
        speed = speeds(host, runs, draw)
        one, values = measured(speed, 1, draw)[:, 0], measured(speed, USUAL, draw)
        rows.append((host.name, pct(sd(one)), *(pct(sd(boot_values(values, name))) for name in CANDIDATES)))
    return table(["host", "one piece", *CANDIDATES], rows)


def numbers(runs: int) -> list[str]:
    """Spread of the better half by the number of slices, in per cent."""
    counts, rows = (2, 4, 6, 8, 12, 16), []
    for host in HOSTS:
        draw = np.random.default_rng(1)
        speed = speeds(host, runs, draw)
        one = measured(speed, 1, draw)[:, 0]
        found = [boot_values(measured(speed, k, draw), "better-half") for k in counts]
        rows.append((host.name, pct(sd(one)), *(pct(sd(values)) for values in found)))
    return table(["host", "one piece", *map(str, counts)], rows)


def unchanged(values: Floats, _: np.random.Generator) -> Floats:
    return values


def slow_slices(share: float, depth: float, values: Floats, draw: np.random.Generator) -> Floats:
    """Some of the slices slower, of the kernel's own."""
    return values * np.where(draw.random(values.shape) < share, 1 - depth, 1)


def slow_boots(share: float, depth: float, values: Floats, draw: np.random.Generator) -> Floats:
    """Some of the boots slower."""
    return values * np.where(draw.random((len(values), 1)) < share, 1 - depth, 1)


def heavy_tails(values: Floats, draw: np.random.Generator) -> Floats:
    """Student's t with 3 degrees of freedom, of 2 % in a slice."""
    return values * np.exp(0.02 / math.sqrt(3) * draw.standard_t(3, values.shape))


SLICES: dict[str, Change] = {
    "normal": unchanged,
    "heavy tails (Student's t, 3 degrees of freedom, 2 %)": heavy_tails,
    "two modes of slices, 3 of 10 are 5 % slower": partial(slow_slices, 0.3, 0.05),
    "two modes of boots, 3 of 10 are 5 % slower": partial(slow_boots, 0.3, 0.05),
    "rare slow moments, 5 % of the slices 30 % slower": partial(slow_slices, 0.05, 0.3),
}


def blocks(runs: int) -> list[str]:
    """Blocks that a reducer needs relative to the mean of the slices, on a quiet host."""
    rows = []
    for name, change in SLICES.items():
        draw = np.random.default_rng(3)
        values = change(measured(speeds(QUIET, runs, draw), USUAL, draw), draw)
        plain = sd(boot_values(values, "mean"))
        rows.append((name, *(f"{(sd(boot_values(values, one)) / plain) ** 2:.2f}" for one in CANDIDATES)))
    return table(["slices of both contenders", *CANDIDATES], rows)


def stalls(runs: int) -> list[str]:
    """Change that a kernel's own rare slow moments make in the value, in per cent, on a quiet host."""
    rows = []
    for share, depth in ((0.05, 0.3), (0.2, 0.1), (0.5, 0.1)):
        draw = np.random.default_rng(2)
        without = measured(speeds(QUIET, runs, draw), USUAL, draw)
        slow = slow_slices(share, depth, without, draw)
        changes = [
            f"{100 * np.expm1(np.log(boot_values(slow, name)).mean() - np.log(boot_values(without, name)).mean()):+.1f}"
            for name in CANDIDATES
        ]
        words = f"{100 * share:.0f} % of the slices {100 * depth:.0f} % slower"
        rows.append((words, f"{-100 * share * depth:+.1f}", *changes))
    return table(["kernel", "truth", *CANDIDATES], rows)


def simulated(reducer: str, host: Host, both: Change, contender: Change = unchanged) -> Noise:
    """Boots as a noise for the rule; the contender's slices change besides."""

    def draw(generator: np.random.Generator, arms: Arms) -> Floats:
        values = both(measured(speeds(host, arms.size, generator), USUAL, generator), generator)
        values = np.where(arms.reshape(-1, 1) > 0, contender(values, generator), values)
        logs: Floats = np.log(boot_values(values, reducer)).reshape(arms.shape)
        return logs

    return Noise("", "", draw)


NOISES = {host.name: (host, unchanged) for host in HOSTS} | {
    name: (QUIET, change) for name, change in SLICES.items() if name != "normal"
}


def errors(runs: int) -> list[str]:
    """False positives and false equivalence of runs of up to 20 blocks, and 3 % found with the blocks it takes."""
    rows = []
    for name, (host, change) in NOISES.items():
        cells = []
        for reducer in REDUCERS:
            noise = simulated(reducer, host, change)
            none, border, three = (tried(RULE, noise, effect, runs=runs) for effect in (0.0, 1.0, 3.0))
            cells += [
                pct(none.any_difference),
                pct(border.equivalent),
                f"{pct(three.higher, 0)} ({three.blocks_mean:.1f})",
            ]
        rows.append((name, *cells))
    return table(["host or slices", *(f"{one}: {what}" for one in REDUCERS for what in ERRORS)], rows)


ERRORS = ("false positives", '"equivalent" at a true 1 %', "+3 % found (blocks)")


def hidden(runs: int) -> list[str]:
    """Verdicts where the contender alone has rare slow moments, on a quiet host."""
    rows = []
    for share, depth in ((0.05, 0.3), (0.2, 0.1), (0.5, 0.1)):
        cells = []
        for reducer in REDUCERS:
            noise = simulated(reducer, QUIET, unchanged, partial(slow_slices, share, depth))
            found = tried(RULE, noise, runs=runs)
            cells.append(f"{pct(found.lower, 0)} / {pct(found.equivalent, 0)}")
        words = f"{100 * share:.0f} % of its slices {100 * depth:.0f} % slower"
        rows.append((words, f"{-100 * share * depth:+.1f}", *cells))
    return table(["contender", "truth", *(f"{one}: slower / equivalent" for one in REDUCERS)], rows)


def runs_of(host: Host, change: Change, blocks: int, draw: np.random.Generator, seed: int) -> Samples:
    """One run of two contenders, judged by the better half."""
    arms: dict[str, Floats] = {}
    for name in ("old", "new"):
        values = measured(speeds(host, blocks, draw), USUAL, draw)
        arms[name] = change(values, draw) if name == "new" else values
    made = lint_table(*(boot_values(values, "better-half") for values in arms.values()), seed=seed)
    made.slices |= {name: [[SliceValue(None, one) for one in boot] for boot in arms[name].tolist()] for name in arms}
    return made


def noticed(runs: int) -> list[str]:
    """How often a verdict by the better half is "equivalent", and the finding slices-disagree stands beside it."""
    rows = []
    cases = {
        f"contender: {100 * share:.0f} % of its slices {100 * depth:.0f} % slower": (
            QUIET,
            partial(slow_slices, share, depth),
        )
        for share, depth in ((0.05, 0.3), (0.2, 0.1), (0.5, 0.1))
    } | {f"no difference; {host.name}": (host, unchanged) for host in HOSTS}
    for name, (host, change) in cases.items():
        draw, count = np.random.default_rng(5), max(100, runs // 10)
        found = [linted(runs_of(host, change, 20, draw, seed), quick=True).metrics[0] for seed in range(count)]
        disagree = [any(one.code == "slices-disagree" for one in metric.warnings) for metric in found]
        equivalent = [metric.verdict == "equivalent" for metric in found]
        both = sum(map(operator.and_, disagree, equivalent))
        rows.append(
            (
                name,
                pct(sum(equivalent) / count, 0),
                f"{pct(both / sum(equivalent), 0)}" if sum(equivalent) else "",
                pct(sum(disagree) / count),
            )
        )
    return table(["20 blocks", '"equivalent"', "of these with the finding", "all with the finding"], rows)


PARTS = {
    "spreads": spreads,
    "numbers": numbers,
    "blocks": blocks,
    "stalls": stalls,
    "errors": errors,
    "hidden": hidden,
    "noticed": noticed,
}

if __name__ == "__main__":
    main(PARTS, __doc__, runs=4000, document=Path(__file__).parents[1] / "docs/evidence/slices.md")
