"""What the rule for disturbed trials does to verdicts, simulated: load on the host comes in bursts of many trials.

    python perf/host_disturbance.py [RUNS]

Boots follow one another; other work is there or not, in bursts of a mean length, and slows a boot by 10 or 30 %. A boot that
it slows is disturbed. The runs are judged by the code that judges a real run, and the boots that are made again count.
"""

from __future__ import annotations

import sys

import numpy as np
from msgspec import Struct

from kduel.core.orders import orders
from kduel.judge.verdict.calibrate import SimulatedEnds, SimulatedRuns, at_once, one_by_one, plans
from kduel.judge.verdict.rule import Rule
from kduel.run.repeat import SHARE_OF_PLAN

BLOCKS = 20
CV = 0.01
"""Of an undisturbed boot."""


class Policy(Struct, frozen=True, kw_only=True):
    """How disturbed trials are treated."""

    name: str
    repeats: int
    void: bool = False
    """Whether a trial is void that is still disturbed after its last repeat; then nothing bounds the repeats in all."""


POLICIES = (
    Policy(name="no rule", repeats=0),
    Policy(name="default: one repeat, a fifth of the trials", repeats=1),
    Policy(name="declared: one repeat, then void", repeats=1, void=True),
    Policy(name="declared: three repeats, then void", repeats=3, void=True),
)


class Bursts(Struct, frozen=True, kw_only=True):
    """Other work on the host."""

    share: float
    """Of the time."""
    length: float
    """Mean length in boots."""
    slowdown: float
    """By which a disturbed boot is slower, as a part of 1."""


def draw(
    policy: Policy, bursts: Bursts, effect: float, runs: int, generator: np.random.Generator
) -> tuple[SimulatedRuns, np.ndarray]:
    """Simulated runs of two contenders, and how many boots each took."""
    known = plans(orders, 2, BLOCKS, 1)
    order = known[generator.integers(0, len(known), runs)]
    logs, places = np.empty((runs, 1, 2, BLOCKS)), np.empty((runs, 1, 2, BLOCKS))
    busy = generator.random(runs) < bursts.share
    leave = 1 / bursts.length
    enter = leave * bursts.share / (1 - bursts.share)
    boots, again = np.zeros(runs, dtype=int), np.zeros(runs, dtype=int)
    every = np.arange(runs)

    def boot(which: np.ndarray) -> np.ndarray:
        """One boot in some of the runs; gives the logarithms of the values."""
        nonlocal busy
        switch = generator.random(runs) < np.where(busy, leave, enter)
        busy = np.where(which & switch, ~busy, busy)
        boots[which] += 1
        slow = busy * np.log1p(-bursts.slowdown) * (1 + 0.2 * generator.standard_normal(runs))
        return slow + CV * generator.standard_normal(runs)

    for block in range(BLOCKS):
        waiting = []
        for place in range(2):
            arm = order[:, block, place]
            values = boot(np.ones(runs, dtype=bool))
            logs[every, 0, arm, block], places[every, 0, arm, block] = values, place
            waiting.append((arm, busy.copy()))
        for _ in range(policy.repeats):
            for arm, disturbed in waiting:
                allowed = disturbed if policy.void else disturbed & (again < SHARE_OF_PLAN * 2 * BLOCKS)
                values = boot(allowed)
                again[allowed] += 1
                rows = every[allowed]
                logs[rows, 0, arm[allowed], block] = values[allowed]
                # It came after the other one, unless that one was made again too.
                places[rows, 0, arm[allowed], block] = 1
                places[rows, 0, 1 - arm[allowed], block] = 0
                disturbed[allowed] = busy[allowed]
        if policy.void:
            for arm, disturbed in waiting:
                logs[every[disturbed], 0, arm[disturbed], block] = np.nan
    logs[:, :, 1] += np.log1p(effect)
    return SimulatedRuns(logs, places, None), boots


def judged(drawn: SimulatedRuns) -> SimulatedEnds:
    """By the code that judges a real run."""
    rule = Rule(max_blocks=BLOCKS)
    return one_by_one(rule, drawn) if np.isnan(drawn.logs).any() else at_once(rule, drawn)


def alarms(policy: Policy, bursts: Bursts, runs: int, seed: int = 1) -> float:
    """The share of runs without an effect that call a difference."""
    drawn, _ = draw(policy, bursts, 0.0, runs, np.random.default_rng(seed))
    return float((np.abs(judged(drawn).sides) == 1).any(axis=1).mean())


def main(runs: int) -> None:
    """A row for each policy and kind of load."""
    print("| rule | load | bursts | slower by | false alarms | +5 % found | blocks | boots made again |")
    print("|---|---|---|---|---|---|---|---|")
    for bursts in (
        Bursts(share=0.0, length=1.0, slowdown=0.3),
        *(Bursts(share=0.3, length=length, slowdown=0.3) for length in (1.5, 4.0, 12.0, 40.0)),
        Bursts(share=0.3, length=12.0, slowdown=0.1),
        Bursts(share=0.7, length=12.0, slowdown=0.3),
    ):
        for policy in POLICIES:
            count = runs // 20 if policy.void and bursts.share else runs
            wrong = alarms(policy, bursts, count)
            drawn, boots = draw(policy, bursts, 0.05, count, np.random.default_rng(2))
            found = judged(drawn)
            print(
                f"| {policy.name} | {100 * bursts.share:.0f} % | {bursts.length:g} boots | {100 * bursts.slowdown:.0f} % "
                f"| {100 * wrong:.1f} | {100 * (found.sides == 1).mean():.1f} | {found.blocks.mean():.1f} "
                f"| {100 * (boots.mean() / (2 * BLOCKS) - 1):.0f} % |",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
