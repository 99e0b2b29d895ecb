"""The verdict rule on simulated noise, at length: every figure that docs/statistics.md quotes.

    .venv/bin/python perf/verdict_calibration.py [--runs 20000]

The code that judges real runs judges the simulated ones. Seeded; about a minute of one processor.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np

from kduel.core.experiment import Metric
from kduel.core.samples import Samples
from kduel.judge.verdict import looks as sequence
from kduel.judge.verdict.calibrate import simulate
from kduel.judge.verdict.interim import standing
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.looks import plan_looks, prefix_statistics
from kduel.judge.verdict.noise import NAMES, Noise, made_up, orders
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.spending import critical_t, normal_levels, student_levels

RULE = Rule()
SPREADS = (0.5, 0.7, 1.0, 1.4, 2.0, 4.2)


def title(text: str) -> None:
    print(f"\n## {text}\n")


def rule_itself(runs: int) -> None:
    title("The rule: per cent of runs; blocks on average (spread: SD of the paired ratio)")
    print(
        f"{'noise':8} {'spread':>6} | {'false':>6} {'equal':>6} {'blocks':>6} | {'+2 %':>6} {'blocks':>6} | equal at delta"
    )
    for name in NAMES:
        for spread in SPREADS:
            noise = made_up(name, spread)
            none, two, border = (simulate(RULE, noise, effect, runs=runs) for effect in (0, 2, 1))
            print(
                f"{name:8} {spread:5.1f}% | {100 * none.any_difference:6.2f} {100 * none.equivalent:6.1f} "
                f"{none.blocks_mean:6.2f} | {100 * two.higher:6.1f} {two.blocks_mean:6.2f} | {100 * border.equivalent:.2f}"
            )


def families(runs: int) -> None:
    title("Seven primary metrics: per cent of runs in which any of them is a false alarm")
    for name in NAMES:
        found = [simulate(RULE, made_up(name, spread), runs=runs, metrics=7).any_difference for spread in (1.0, 4.2)]
        print(f"{name:8} spread 1.0 %: {100 * found[0]:.2f}   spread 4.2 %: {100 * found[1]:.2f}")
    wrong = simulate(Rule(alpha=0.35), made_up("normal", 4.2), runs=runs, metrics=7).any_difference
    print(f"alpha not split, with spending: {100 * wrong:.1f}")


def levels_for_t(runs: int) -> None:
    title("False alarms over alpha, 20 blocks: levels of a z test with t quantiles, and the levels used here")
    for rule in (RULE, Rule(look_every=1), Rule(max_blocks=10), Rule(max_blocks=40), Rule(first_look=10)):
        looks = plan_looks(rule, range(1, rule.max_blocks + 1))
        generator = np.random.default_rng(5)
        alphas = (0.05, 0.05 / 7, 0.05 / 20)
        widths = [
            [critical_t(levels(a, looks.blocks, looks.pairs, rule.max_blocks), looks.pairs) / np.sqrt(looks.pairs)
             for a in alphas]
            for levels in (normal_levels, student_levels)
        ]  # fmt: skip
        hits = np.zeros((2, 3))
        total = 20 * runs
        for _ in range(total // 20_000):
            mean, sd = prefix_statistics(generator.standard_normal((20_000, rule.max_blocks)), looks.pairs)
            for i in range(2):
                for j in range(3):
                    hits[i, j] += (np.abs(mean) > widths[i][j] * sd).any(axis=1).sum()
        ratio = hits / total / np.array(alphas)
        print(
            f"looks {rule.first_look}, every {rule.look_every}, to {rule.max_blocks}: "
            f"alpha .05 {ratio[0, 0]:.3f} -> {ratio[1, 0]:.3f}; .05/7 {ratio[0, 1]:.3f} -> {ratio[1, 1]:.3f}; "
            f".05/20 {ratio[0, 2]:.3f} -> {ratio[1, 2]:.3f}"
        )


def fewest_pairs(runs: int) -> None:
    title("Why five pairs: false alarms of a single look at so many, per cent")
    kept, sequence.FEWEST_PAIRS = sequence.FEWEST_PAIRS, 2
    for name in NAMES:
        found = [100 * simulate(Rule.fixed(n), made_up(name, 4.2), runs=runs).any_difference for n in (2, 3, 4, 5, 6)]
        print(
            f"{name:8} " + "  ".join(f"n={n}: {value:5.2f}" for n, value in zip((2, 3, 4, 5, 6), found, strict=True))
        )
    halves = Noise("halves", "", two_sharp_modes)
    found = [100 * simulate(Rule.fixed(n), halves, runs=runs, metrics=7).any_difference for n in (2, 3, 4, 5, 6)]
    print("two sharp modes, half of the boots each, seven metrics: " + "  ".join(f"{value:.2f}" for value in found))
    sequence.FEWEST_PAIRS = kept


def two_sharp_modes(generator: np.random.Generator, runs: int, blocks: int) -> np.ndarray:
    modes = generator.random((2, runs, blocks)) < 0.5
    return 0.05 * (modes[0] * 1.0 - modes[1] + 0.01 * generator.standard_normal((runs, blocks)))


def other_ways(runs: int) -> None:
    title("What the parts of the rule are for: false alarms without them, per cent")
    generator = np.random.default_rng(9)
    looks = plan_looks(RULE, range(1, 21))
    mean, sd = prefix_statistics(generator.standard_normal((runs, 20)), looks.pairs)
    half = critical_t(np.full(len(looks.pairs), 0.05), looks.pairs) / np.sqrt(looks.pairs) * sd
    print(f"a look at p < .05 at 6, 8, ..., 20 blocks: {100 * (np.abs(mean) > half).any(axis=1).mean():.1f}")
    for blocks in (5, 10, 20):
        drift = np.linspace(0, 2, 2 * blocks) + generator.standard_normal((runs, 2 * blocks))
        first, then = drift[:, :blocks], drift[:, blocks:]
        error = np.sqrt((first.var(axis=1, ddof=1) + then.var(axis=1, ddof=1)) / blocks)
        alarm = (
            np.abs(then.mean(axis=1) - first.mean(axis=1)) > critical_t(np.array([0.05]), [2 * blocks - 1]) * error
        )
        print(f"all of A, then all of B, while the machine drifts by 2 SD, n = {blocks}: {100 * alarm.mean():.0f}")
    for between in (0.3, 0.5, 1.0):
        arms = between * generator.standard_normal((2, runs, 10, 1)) + generator.standard_normal((2, runs, 10, 10))
        pooled = arms.reshape(2, runs, 100)
        error = np.sqrt(pooled.var(axis=2, ddof=1).sum(axis=0) / 100)
        alarm = np.abs(pooled[1].mean(axis=1) - pooled[0].mean(axis=1)) > 1.972 * error
        print(
            f"10 iterations of 10 boots as 100 values, boot SD / iteration SD = {between}: {100 * alarm.mean():.0f}"
        )
    for order, by_chance in (("every block in random order", True), ("every second block turned round", False)):
        for name, blur in (("5 %", 0.02), ("5 %, blurred", 0.3)):
            noise = Noise("", "", position_effect(blur, by_chance))
            found = [100 * simulate(RULE, noise, runs=runs, metrics=metrics).any_difference for metrics in (1, 7)]
            print(f"the second boot of a block is slower by {name}; {order}: "
                  f"one metric {found[0]:.1f}, any of seven {found[1]:.1f}")  # fmt: skip


def position_effect(blur: float, by_chance: bool):  # type: ignore[no-untyped-def]
    """The second boot of a block is always slower than the first: the rule does not know of it."""

    def draw(generator: np.random.Generator, runs: int, blocks: int) -> np.ndarray:
        sign = generator.choice([-1.0, 1.0], (runs, blocks)) if by_chance else orders(generator, runs, blocks)
        return 0.05 * (sign + blur * generator.standard_normal((runs, blocks)))

    return draw


def table(benchmark: str, logs: np.ndarray, primary: bool) -> Samples:
    return Samples(
        benchmark=benchmark,
        metric=Metric(name="rate", unit="ops/s", better="higher"),
        primary=primary,
        blocks=list(range(1, logs.size + 1)),
        values={"A": [1.0] * logs.size, "B": np.exp(logs).tolist()},
    )


def exploratory(runs: int) -> None:
    title("Exploratory metrics beside a primary one that may end the run early; nothing differs, per cent")
    generator = np.random.default_rng(4)
    runs = runs // 20
    for correlation in (0.0, 0.9):
        alarms = plain = 0
        for _ in range(runs):
            shared = generator.standard_normal(20)
            others = [
                correlation * shared + np.sqrt(1 - correlation**2) * generator.standard_normal(20) for _ in range(3)
            ]
            samples = [table("p", 0.03 * shared, True)] + [
                table(f"e{i}", 0.03 * other, False) for i, other in enumerate(others)
            ]
            ended = standing(samples[:1], RULE)[0]
            blocks = 20 if not ended.decided else judge(samples[:1], RULE)[0].decided_at or 20
            cut = [table(s.benchmark, np.log(s.values["B"][:blocks]), s.primary) for s in samples]  # type: ignore[arg-type]
            found = judge(cut, RULE)[1:]
            alarms += any(result.verdict in ("faster", "slower") for result in found)
            plain += (found[0].beside["p_t"] or 0) < 0.05
        print(
            f"correlation {correlation}: any of three called {100 * alarms / runs:.1f} (nominal 5); "
            f"plain p < .05 of one of them {100 * plain / runs:.1f}"
        )


def more_blocks(runs: int) -> None:
    title('"About k more blocks": how often they did decide')
    rule = Rule(max_blocks=40)
    generator = np.random.default_rng(6)
    for effect in (0.0, 0.5, 1.2, 2.0):
        said = kept = 0
        for _ in range(runs // 40):
            logs = np.log1p(effect / 100) + 0.02 * generator.standard_normal(40)
            now = standing([table("p", logs[:10], True)], rule)[0]
            if not now.decided and now.blocks_more is not None and 10 + now.blocks_more <= 40:
                said += 1
                kept += standing([table("p", logs[: 10 + now.blocks_more], True)], rule)[0].decided
        print(
            f"true effect {effect} %, spread 2 %, told at 10 blocks: {said} times, came true in {100 * kept / said:.0f} %"
        )


def main() -> None:
    """Everything, with the time it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20_000)
    runs = parser.parse_args().runs
    start = time.process_time()
    print(f"{runs:,} runs a figure; standard error of a 5 % figure {100 * np.sqrt(0.05 * 0.95 / runs):.2f} points")
    for part in (rule_itself, families, levels_for_t, fewest_pairs, other_ways, exploratory, more_blocks):
        part(runs)
    print(f"\n{time.process_time() - start:.0f} s of one processor")


if __name__ == "__main__":
    main()
