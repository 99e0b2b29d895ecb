"""The rule on simulated turns: the tables of docs/evidence/turns.md.

    .venv/bin/python perf/turns_calibration.py [--runs 4000] [--write]

All guests of a block are alive at once; a step has four slices of one second of each guest's own time, 10 s apart, cut into
turns of 50 ms. The host's speed is drawn in bins of 10 ms and goes on between slices, blocks and runs' ends. The code that
judges real runs judges the simulated ones. Seeded; some ten minutes of one processor.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np
from numpy.typing import NDArray
from verdict_calibration import main, pct, table, tried

from kduel.core.experiment import Metric
from kduel.core.orders import orders
from kduel.core.slices import reduce_slices
from kduel.core.turns import draw_rounds
from kduel.judge.verdict.adjust import Estimates, plain_means
from kduel.judge.verdict.calibrate import plans
from kduel.judge.verdict.comparison import margin
from kduel.judge.verdict.looks import Looks, decide, plan_looks, repeated_interval
from kduel.judge.verdict.noise import Arms, Noise
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.spending import critical_t

Floats = NDArray[np.float64]
Generator = np.random.Generator
BIN, TURN, SLICE = 0.01, 0.05, 1.0
"""Seconds."""
SLICES = 4
BOOT_SECONDS, BETWEEN = 8.0, 10.0
"""From a block's begin to its first step, a guest; between two slices of a step, in which other steps run."""
NOISE, BOOT = 0.01, 0.005
"""Spread of one second of a benchmark, and of boots, as shares."""
RULE = Rule(adjust_from=None)
"""Of a run in turns."""
RATE = Metric("rate", "1/s", "higher")


class Speed(Protocol):
    """The speed of many hosts, one a row, over time."""

    def bins(self, count: int) -> Floats:
        """Speed in the next bins, shape (rows, count)."""

    def rest(self, seconds: float) -> None:
        """Time passes."""


class Calm:
    """A host that does not vary."""

    def __init__(self, rows: int, draw: Generator) -> None:
        self.rows, self.draw = rows, draw

    def bins(self, count: int) -> Floats:
        return np.ones((self.rows, count))

    def rest(self, seconds: float) -> None:
        pass


class Wandering(Calm):
    """Speed noise: the logarithm of the speed is a sum of processes that forget within 0.1, 1, 10 and 60 s."""

    scales = ((0.1, 0.03), (1.0, 0.04), (10.0, 0.06), (60.0, 0.07))

    def __init__(self, rows: int, draw: Generator) -> None:
        super().__init__(rows, draw)
        self.sizes = np.array([[size] for _, size in self.scales])
        self.times = np.array([[seconds] for seconds, _ in self.scales])
        self.state = self.sizes * draw.standard_normal((len(self.scales), rows))

    def step(self, seconds: float) -> None:
        kept = np.exp(-seconds / self.times)
        fresh = self.draw.standard_normal(self.state.shape)
        self.state = kept * self.state + np.sqrt(1 - kept**2) * self.sizes * fresh

    def bins(self, count: int) -> Floats:
        found = np.empty((self.rows, count))
        for column in found.T:
            self.step(BIN)
            column[:] = self.state.sum(axis=0)
        return np.exp(found)

    def rest(self, seconds: float) -> None:
        self.step(seconds)


class Spells(Calm):
    """Neighbours that take 5 to 50 % of the speed for a while; the lengths with and without are exponential."""

    def __init__(self, quiet: float, busy: float, rows: int, draw: Generator) -> None:
        super().__init__(rows, draw)
        self.quiet, self.busy = quiet, busy
        self.share = busy / (busy + quiet)
        self.inside = draw.random(rows) < self.share
        self.depth = draw.uniform(0.05, 0.5, rows)

    def step(self, seconds: float) -> None:
        kept = np.exp(-seconds * (1 / self.quiet + 1 / self.busy))
        busy_after = self.share * (1 - kept) + kept * self.inside
        after = self.draw.random(self.rows) < busy_after
        fresh = (after & ~self.inside) | (after & (self.draw.random(self.rows) > np.exp(-seconds / self.busy)))
        self.depth = np.where(fresh, self.draw.uniform(0.05, 0.5, self.rows), self.depth)
        self.inside = after

    def bins(self, count: int) -> Floats:
        found = np.empty((self.rows, count))
        for column in found.T:
            self.step(BIN)
            column[:] = np.where(self.inside, 1 - self.depth, 1)
        return found

    def rest(self, seconds: float) -> None:
        self.step(seconds)


class Quota(Calm):
    """A neighbour with a quota: in each period of 100 ms it takes a share of the speed for 50 ms, and is then held. Turns of
    50 ms keep their place in its period for as long as a block lasts."""

    period, running = 0.1, 0.05

    def __init__(self, rows: int, draw: Generator) -> None:
        super().__init__(rows, draw)
        self.depth = draw.uniform(0.05, 0.5, (rows, 1))
        self.phase = draw.random((rows, 1))

    def bins(self, count: int) -> Floats:
        # A bin that the neighbour begins or leaves in has a part of it.
        fine = 10
        whole = round(self.period / BIN)
        at = (self.phase + (np.arange(whole * fine) + 0.5) / whole / fine) % 1
        taken = (at < self.running / self.period).reshape(self.rows, whole, fine).mean(axis=2)
        return np.tile(1 - self.depth * taken, -(-count // whole))[:, :count]

    def rest(self, seconds: float) -> None:
        if seconds > BETWEEN:
            self.phase = self.draw.random((self.rows, 1))


Hosts = Callable[[int, Generator], Speed]
HOSTS: dict[str, Hosts] = {
    "quiet": Calm,
    "speed noise, 0.1 to 60 s": Wandering,
    "3 s of spells, 30 s between": partial(Spells, 30.0, 3.0),
    "0.3 s, 1 s between": partial(Spells, 1.0, 0.3),
    "20 s, 20 s between": partial(Spells, 20.0, 20.0),
    "a neighbour with a quota, 50 of 100 ms": Quota,
}


def normal_boots(size: float, draw: Generator, shape: tuple[int, ...]) -> Floats:
    """Logarithms of what boots differ by."""
    return draw.normal(0, size, shape)


def sharp_modes(share: float, draw: Generator, shape: tuple[int, ...]) -> Floats:
    """Some of the boots 5 % slower."""
    return np.log(0.95) * (draw.random(shape) < share) + draw.normal(0, BOOT / 10, shape)


Boots = Callable[[Generator, tuple[int, ...]], Floats]
USUAL: Boots = partial(normal_boots, BOOT)


@cache
def drawn_orders(contenders: int, rounds: int) -> NDArray[np.int_]:
    """Orders as real turns have them, of which simulated slices draw theirs. Shape: orders, rounds, contenders."""
    return np.array([list(islice(draw_rounds(contenders, str(one)), rounds)) for one in range(500)])


def balanced(rows: int, contenders: int, rounds: int, draw: Generator) -> NDArray[np.int_]:
    """Rounds in balanced random order. Shape: rows, rounds, contenders."""
    return drawn_orders(contenders, rounds)[draw.integers(0, 500, rows)]


def strict(rows: int, contenders: int, rounds: int, _: Generator) -> NDArray[np.int_]:
    """The same order in each round."""
    return np.broadcast_to(np.arange(contenders), (rows, rounds, contenders))


Turns = Callable[[int, int, int, Generator], NDArray[np.int_]]
ROUNDS = round(SLICE / TURN)


def slice_in_turns(speed: Speed, order: NDArray[np.int_], turn: float) -> Floats:
    """Mean speed of each contender in one slice of the step. Shape: rows, contenders."""
    rows, rounds, contenders = order.shape
    width = round(turn / BIN)
    turns = speed.bins(rounds * contenders * width).reshape(rows, rounds, contenders, width).mean(axis=3)
    return np.take_along_axis(turns, np.argsort(order, axis=2), axis=2).mean(axis=1)


def block_in_turns(turns: Turns, turn: float, speed: Speed, rows: int, contenders: int, draw: Generator) -> Floats:
    """All guests alive at once. Shape: rows, contenders, slices."""
    speed.rest(contenders * BOOT_SECONDS)
    found = []
    for _ in range(SLICES):
        found.append(slice_in_turns(speed, turns(rows, contenders, round(SLICE / turn), draw), turn))
        speed.rest(BETWEEN)
    return np.stack(found, axis=2)


def block_apart(speed: Speed, rows: int, contenders: int, _: Generator) -> Floats:
    """One boot after the other."""
    values = np.empty((rows, contenders, SLICES))
    for contender in range(contenders):
        speed.rest(BOOT_SECONDS)
        for number in range(SLICES):
            values[:, contender, number] = speed.bins(round(SLICE / BIN)).mean(axis=1)
            speed.rest(BETWEEN / contenders)
    return values


def whole(rows: int, contenders: int, rounds: int, draw: Generator) -> NDArray[np.int_]:
    """An order that is drawn for each slice: half of the pairs cannot be reversed where there is one."""
    return np.argsort(draw.random((rows, rounds, contenders)), axis=2)


Block = Callable[[Speed, int, int, Generator], Floats]
IN_TURNS: Block = partial(block_in_turns, balanced, TURN)
WHOLE: Block = partial(block_in_turns, whole, SLICE)
STRICT: Block = partial(block_in_turns, strict, TURN)


def logs_of_slices(host: Hosts, boots: Boots, block: Block, arms: Arms, draw: Generator) -> Floats:
    """Logarithms of the slices' values of whole runs, by place in the order of starts. Shape: rows, blocks, places, slices."""
    rows, contenders = len(arms), int(arms.max()) + 1
    speed = host(rows, draw)
    found = np.stack(
        [block(speed, rows, contenders, draw) for _ in range(arms.shape[1] // contenders)],
        axis=1,
    )
    own = draw.normal(0, NOISE / np.sqrt(SLICE), found.shape)
    return np.log(found) + own + boots(draw, found.shape[:3])[..., None]


def reduced(logs: Floats, reducer: str) -> Floats:
    """A logarithm of each boot's value, over the last axis."""
    values = np.exp(logs)
    if reducer == "better-half":
        values = np.sort(values, axis=-1)[..., SLICES // 2 :]
    return np.log(values.mean(axis=-1))


def noise_of(host: Hosts, boots: Boots = USUAL, block: Block = IN_TURNS, reducer: str = "mean") -> Noise:
    """Boots in turns as a noise for the rule."""

    def draw(generator: Generator, arms: Arms) -> Floats:
        return reduced(logs_of_slices(host, boots, block, arms, generator), reducer).reshape(arms.shape)

    return Noise("", "", draw)


def spread(host: Hosts, block: Block, reducer: str, runs: int) -> str:
    """Standard deviation of a block's log-ratio, in per cent."""
    arms = np.tile([0, 1], (runs, 4))
    logs = noise_of(host, block=block, reducer=reducer).draw(np.random.default_rng(1), arms).reshape(runs, 4, 2)
    return pct(float((logs[..., 1] - logs[..., 0]).std()))


def spreads(runs: int) -> list[str]:
    """Spread of a block's log-ratio by host and by how guests share the time."""
    forms = ((block_apart, "mean"), (block_apart, "better-half"), (WHOLE, "mean"), (IN_TURNS, "mean"))
    forms += ((IN_TURNS, "better-half"), (STRICT, "mean"))
    rows = [(name, *(spread(host, *form, runs) for form in forms)) for name, host in HOSTS.items()]
    heads = ("one boot after the other: mean", "better-half", "whole slices in turn: mean", "turns of 50 ms: mean")
    return table(("host", *heads, "better-half", "strictly ABAB: mean"), rows)


SCENES: dict[str, tuple[Hosts, Boots]] = {name: (host, USUAL) for name, host in HOSTS.items()} | {
    "quiet, half of the boots 5 % slower": (Calm, partial(sharp_modes, 0.5)),
    "quiet, 3 of 10 boots 5 % slower": (Calm, partial(sharp_modes, 0.3)),
    "speed noise, half of the boots 5 % slower": (Wandering, partial(sharp_modes, 0.5)),
    **{
        f"quiet, boots' SD {times:g} times that of the slices' mean": (
            Calm,
            partial(normal_boots, times * NOISE / np.sqrt(SLICES * SLICE)),
        )
        for times in (0.5, 1.0, 2.0)
    },
}


def errors(runs: int) -> list[str]:
    """False positives of whole runs, equivalence and power."""
    rows = []
    for name, (host, boots) in SCENES.items():
        usual = noise_of(host, boots)
        none, border, three = (tried(RULE, usual, effect, runs=runs) for effect in (0.0, 1.0, 3.0))
        better = tried(RULE, noise_of(host, boots, reducer="better-half"), runs=runs)
        others = [tried(RULE, usual, runs=runs, contenders=count) for count in (3, 4)]
        rows.append(
            (
                name,
                *(pct(one.any_difference) for one in (none, better, *others)),
                f"{pct(none.equivalent, 0)} ({none.blocks_mean:.1f})",
                pct(border.equivalent),
                f"{pct(three.higher, 0)} ({three.blocks_mean:.1f})",
            )
        )
    heads = ("false positives: mean", "better-half", "three contenders", "four", "equivalent, correctly (blocks)")
    return table(("host and boots", *heads, '"equivalent" at a true 1 %', "+3 % found (blocks)"), rows)


def quota(runs: int) -> list[str]:
    """The neighbour with a quota: false positives by the order of turns and number of metrics."""
    rows = []
    for name, block in (
        ("strictly ABAB, the first drawn for each block", STRICT),
        ("balanced random order", IN_TURNS),
    ):
        noise = noise_of(Quota, block=block)
        found = [tried(RULE, noise, runs=runs, metrics=count) for count in (1, 3)]
        power = tried(RULE, noise, 3.0, runs=runs)
        rows.append(
            (
                name,
                spread(Quota, block, "mean", runs),
                *(pct(one.any_difference) for one in found),
                f"{pct(power.higher, 0)} ({power.blocks_mean:.1f})",
            )
        )
    heads = ("SD of a block's log-ratio, %", "false positives", "any of three metrics", "+3 % found (blocks)")
    return table(("order of turns", *heads), rows)


class Gaps(NamedTuple):
    """Log-ratios of simulated runs: by slice, shape (runs, blocks, slices)."""

    slices: Floats

    @property
    def blocks(self) -> Floats:
        """By block."""
        return self.slices.mean(axis=2)


def gaps_of(host: Hosts, boots: Boots, runs: int) -> Gaps:
    """Log-ratios of two contenders by slice."""
    found = []
    for seed in range(-(-runs // 2000)):
        order = plans(orders, 2, RULE.max_blocks, 1)[: min(2000, runs)]
        arms = np.resize(order.reshape(len(order), -1), (min(2000, runs), 2 * RULE.max_blocks))
        logs = logs_of_slices(host, boots, IN_TURNS, arms, np.random.default_rng([seed, 7]))
        in_order = arms.reshape(*logs.shape[:3])
        sign = np.where(in_order[..., 1] > 0, 1, -1)[..., None]
        found.append(sign * (logs[:, :, 1] - logs[:, :, 0]))
    return Gaps(np.concatenate(found))


def with_larger(found: Estimates, gaps: Gaps, looks: Looks) -> Estimates:
    """The same with the larger of two variances: of blocks, and of slices within blocks by their number."""
    within = gaps.slices.var(axis=2, ddof=1) / gaps.slices.shape[2]
    count = np.array(looks.pairs)
    mean = np.cumsum(within, axis=1)[:, count - 1] / count
    return found._replace(error=np.maximum(found.error, np.sqrt(mean / count)))


def judged(gaps: Gaps, rule: Rule, larger: bool) -> tuple[float, float, float, float]:
    """Shares called higher, lower and equivalent, and mean blocks to the end."""
    looks = plan_looks(rule, range(1, rule.max_blocks + 1))
    found = plain_means(gaps.blocks, looks.pairs)
    if larger:
        found = with_larger(found, gaps, looks)
    low, high = repeated_interval(found, looks.levels(rule, rule.alpha))
    decision = decide(low, high, looks, margin("ratio", rule), rule, np.ones_like(low, dtype=bool))
    ends = np.where(decision.look < 0, rule.max_blocks, np.array(looks.blocks)[decision.look])
    return *(float((decision.side == side).mean()) for side in (1, -1, 0)), float(ends.mean())


def variances(runs: int) -> list[str]:
    """What the larger of two variances would do, and fewer blocks."""
    rows = []
    rules = {
        "blocks' variance, from 4": (RULE, False),
        "the larger, from 4": (RULE, True),
        "the larger, from 3": (Rule(adjust_from=None, fewest_pairs=3), True),
        "the larger, from 2": (Rule(adjust_from=None, fewest_pairs=2), True),
    }
    for name in (
        "quiet",
        "speed noise, 0.1 to 60 s",
        "0.3 s, 1 s between",
        "quiet, half of the boots 5 % slower",
        "quiet, 3 of 10 boots 5 % slower",
    ):
        host, boots = SCENES[name]
        none = gaps_of(host, boots, runs)
        three = Gaps(none.slices + np.log1p(0.03))
        cells = []
        for rule, larger in rules.values():
            above, below, *_ = judged(none, rule, larger)
            power, _, _, blocks = judged(three, rule, larger)
            cells.append(f"{pct(above + below)} / {pct(power, 0)} ({blocks:.1f})")
        rows.append((name, *cells))
    return table(("false positives / +3 % found (blocks)", *rules), rows)


def independent(runs: int) -> list[str]:
    """False positives after four blocks where slices, or turns, are taken for independent values."""
    rows = []
    blocks = 4
    for times in (0.0, 0.5, 1.0, 2.0):
        draw = np.random.default_rng(4)
        cells = []
        for many in (SLICES, SLICES * ROUNDS):
            single = draw.standard_normal((runs, blocks, many))
            single += times / np.sqrt(many) * draw.standard_normal((runs, blocks, 1))
            every = single.reshape(runs, -1)
            for values in (every, single.mean(axis=2)):
                count = values.shape[1]
                t = values.mean(axis=1) / values.std(axis=1, ddof=1) * np.sqrt(count)
                cells.append(pct(float((np.abs(t) > critical_t(np.array([0.05]), [count - 1])).mean())))
        rows.append((f"{times:g}", cells[0], cells[2], cells[1]))
    return table(("boots' SD, in SD of a block's mean of slices", "slices", "pairs of turns", "blocks"), rows)


PARTS: dict[str, Callable[[int], Any]] = {
    "spreads": spreads,
    "errors": errors,
    "quota": quota,
    "variances": variances,
    "independent": independent,
}

if __name__ == "__main__":
    logs = np.log([0.9, 1.0, 1.2, 1.1])
    assert np.isclose(reduced(logs, "better-half"), np.log(reduce_slices([0.9, 1.0, 1.2, 1.1], RATE, "better-half")))
    main(PARTS, __doc__, runs=4000, document=Path(__file__).parents[1] / "docs/evidence/turns.md")
