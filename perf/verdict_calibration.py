"""The verdict rule on simulated noise, at length: every table of docs/statistics.md, written by this script.

    .venv/bin/python perf/verdict_calibration.py [--runs 20000] [--write]

The code that judges real runs judges the simulated ones. Seeded; about ten minutes of one processor. With --write the
tables in docs/statistics.md are replaced, between `<!-- table NAME -->` and `<!-- end of NAME -->`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import numpy as np
from flaws import codes
from msgspec import structs
from planted_flaws.carry_over import following

from kduel.core.experiment import Metric
from kduel.core.orders import reversed_orders
from kduel.core.samples import Samples
from kduel.judge.verdict import noise as noises
from kduel.judge.verdict.adjust import plain_means
from kduel.judge.verdict.calibrate import Characteristics, simulate
from kduel.judge.verdict.interim import primary_results
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.looks import plan_looks, repeated_interval
from kduel.judge.verdict.noise import DIFFERING, NAMES, Noise, made_up, scale_noise
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.spending import critical_t, normal_levels, student_levels

DOCUMENT = Path(__file__).parents[1] / "docs/statistics.md"
RULE, FIRST, CARRY_OVER = Rule(), Rule.of_edition(1), Rule(carry_over=True)
BOTH = float(np.sqrt(2))
"""Boots that vary by 1 % each make a ratio that varies by 1.41 %."""
SLOW = ("missing", "censored")
"""Noises with missing values are judged run by run."""


def tried(rule: Rule, noise: Noise, effect: float = 0.0, *, runs: int, **more: object) -> Characteristics:
    """A simulation of a hundred runs at least."""
    return simulate(rule, noise, effect, runs=max(100, runs), **more)  # type: ignore[arg-type]


def table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> list[str]:
    """Markdown."""
    heads = list(heads)
    return [
        f"| {' | '.join(heads)} |",
        f"|{'---|' * len(heads)}",
        *(f"| {' | '.join(str(cell) for cell in row)} |" for row in rows),
    ]


def pct(share: float, digits: int = 1) -> str:
    """A share in per cent."""
    return f"{100 * share:.{digits}f}"


def error_rates(runs: int) -> list[str]:
    """Every noise: alarms, equivalence, power, false equivalence."""
    rows = []
    for name in (name for name in NAMES if name not in DIFFERING):
        few = runs // 5 if name in SLOW else runs
        wide, usual = made_up(name, 4.2), made_up(name, 1.0)
        alarms = [tried(RULE, noise, runs=few) for noise in (usual, wide)]
        seven = tried(RULE, wide, runs=few // 4, metrics=7, seed=2) if name not in SLOW else None
        two, border = tried(RULE, usual, 2.0, runs=few // 2), tried(RULE, usual, 1.0, runs=few // 2)
        rows.append(
            (
                wide.about,
                *(pct(one.any_difference) for one in alarms),
                pct(seven.any_difference) if seven else "-",
                pct(alarms[0].equivalent),
                f"{alarms[0].blocks_mean:.1f}",
                pct(two.higher),
                f"{two.blocks_mean:.1f}",
                pct(border.equivalent),
            )
        )
    return table(
        (
            "noise",
            "false positives, spread 1 %",
            "4.2 %",
            "any of seven, 4.2 %",
            "equivalent, correctly",
            "blocks",
            "2 % found",
            "blocks",
            '"equivalent" at a true 1 %',
        ),
        rows,
    )


def contenders(runs: int) -> list[str]:
    """Any of several contenders, places balanced."""
    rows = []
    for name in ("normal", "bimodal", "ar-0.4", "ar-0.5", "ar-0.8", "period-3", "period-4", "period-5", "place"):
        noise = made_up(name, 4.2)
        found = [tried(RULE, noise, runs=runs // 2, contenders=count) for count in (2, 3, 4, 5)]
        rows.append((noise.about, *(pct(one.any_difference) for one in found)))
    return table(("noise", "two contenders", "three", "four", "five"), rows)


def comparisons(runs: int) -> list[str]:
    """Any of many comparisons, and the fewest pairs that so many need."""
    rows = []
    for name in ("normal", "heavy", "bimodal", "sharp"):
        noise = made_up(name, 4.2)
        found = [tried(RULE, noise, runs=2 * runs // (count + 1), metrics=count) for count in (1, 7, 30, 100)]
        rows.append((noise.about, *(pct(one.any_difference) for one in found)))
    fewest = [str(RULE.for_comparisons(count).fewest) for count in (1, 7, 30, 100)]
    return table(("noise", "1 comparison", "7", "30", "100"), [*rows, ("*fewest pairs*", *fewest)])


def orders(runs: int) -> list[str]:
    """The first edition's plan and rule, and the choices for the second."""
    rows = []
    periods = {
        f"period {trials} trials, {sds} SD": Noise("", "", scale_noise(sine(trials, sds), 0.03))
        for trials in (3, 4, 5)
        for sds in (1, 2)
    }
    places = {
        f"second boot {sds:g} SD slower": Noise("", "", scale_noise(partial(noises.slow_place, sds), 0.03))
        for sds in (2.0, 20.0)
    }
    others = {made_up(n, 4.2).about: made_up(n, 4.2) for n in ("normal", "bimodal", "ar-0.5", "ar-0.8")}
    early = Rule(adjust_from=6, first_look=6, fewest_pairs=6)
    never = Rule(adjust_from=None)
    for about, noise in (others | periods | places).items():
        turned = tried(FIRST, noise, runs=runs, plan=reversed_orders)
        found = [tried(rule, noise, runs=runs) for rule in (never, early, RULE)]
        rows.append((about, pct(turned.any_difference), *(pct(one.any_difference) for one in found)))
    return table(
        ("noise", "reversed (first edition)", "random, no covariate", "random, covariate from 6", "present method"),
        rows,
    )


def sine(trials: int, sds: float) -> noises.Draw:
    """A sine of this period and height on normal noise."""

    def draw(generator: np.random.Generator, arms: noises.Arms) -> np.ndarray:
        phase = generator.random((arms.shape[0], 1))
        wave = sds * np.sin(2 * np.pi * (np.arange(arms.shape[1]) / trials + phase))
        return noises.normal(generator, arms) + wave

    return draw


def blocks(runs: int) -> list[str]:
    """Blocks to the end of a run, before and after."""
    rows = []
    for metrics in (1, 7):
        for cv in (0.5, 1.0, 2.0):
            cells = []
            for effect in (0, 1, 2, 3, 5, 10, 20):
                noise, few = made_up("normal", cv * BOTH), runs // metrics
                before = tried(FIRST, noise, effect, runs=few, metrics=metrics, plan=reversed_orders).blocks_mean
                after = tried(RULE, noise, effect, runs=few, metrics=metrics).blocks_mean
                cells.append(f"{before:.1f} → {after:.1f} ({100 * (after / before - 1):+.0f} %)")
            rows.append((metrics, f"{cv:g} %", *cells))
    return table(
        ("metrics", "CV of a boot", "no effect", "+1 %", "+2 %", "+3 %", "+5 %", "+10 %", "+20 %"),
        rows,
    )


def covariate(runs: int) -> list[str]:
    """A covariate of the host by its correlation with the noise; boots vary by 1 % each."""
    rows = []
    for host in (None, 0.0, 0.3, 0.5, 0.7, 0.9):
        rule = RULE if host is None else Rule(covariates=("host",))
        wide = tried(rule, made_up("normal", 4.2), runs=runs, host=host)
        none, one = (tried(rule, made_up("normal", BOTH), effect, runs=runs, host=host) for effect in (0, 1))
        rows.append(
            (
                "without" if host is None else f"{host:g}",
                pct(wide.any_difference),
                pct(none.equivalent),
                f"{none.blocks_mean:.1f}",
                pct(one.higher),
                f"{one.blocks_mean:.1f}",
            )
        )
    return table(("r", "false positives", "equivalent at no effect", "blocks", "+1 % found", "blocks"), rows)


def giving_up(runs: int) -> list[str]:
    """What stopping for futility costs."""
    rows = []
    for metrics in (1, 7):
        for cv, effect in ((1.0, 0), (1.0, 1), (2.0, 0), (2.0, 1), (2.0, 2), (2.0, 3)):
            noise, few = made_up("normal", cv * BOTH), runs // metrics
            found = [tried(RULE, noise, effect, runs=few, metrics=metrics, futility=stop) for stop in (False, True)]
            cells = [f"{pct(one.any_difference)} / {pct(one.equivalent)} / {one.blocks_mean:.1f}" for one in found]
            rows.append((metrics, f"{cv:g} %", f"+{effect} %" if effect else "none", *cells))
    return table(
        (
            "metrics",
            "CV of a boot",
            "effect",
            "to the end: difference / equivalent / blocks",
            "with `--futility stop`",
        ),
        rows,
    )


def rare_modes(runs: int) -> list[str]:
    """Boots of the contender that are 20 % slower now and then; a boot varies by .5 % otherwise."""
    rows = []
    for name in ("rare-1", "rare-5", "rare-10"):
        noise = made_up(name, 0.5 * BOTH)
        first = tried(Rule(first_look=RULE.equivalent_from, max_blocks=RULE.equivalent_from), noise, runs=runs)
        found = [tried(rule, noise, runs=runs) for rule in (RULE, Rule(first_look=20))]
        rows.append((noise.about, *(pct(one.equivalent) for one in (first, *found))))
    return table(
        (
            "noise",
            f"equivalent after {RULE.equivalent_from} blocks",
            "at the end of a run of one metric",
            "of a run that goes on to 20 blocks",
        ),
        rows,
    )


def voids(runs: int) -> list[str]:
    """Trials without a value."""
    rows = []
    for name in SLOW:
        found = tried(RULE, made_up(name, 4.2), runs=runs // 4)
        rows.append(
            (made_up(name, 4.2).about, pct(found.any_difference), pct(found.lower), f"{found.blocks_mean:.1f}")
        )
    return table(("noise", "any difference", "called lower", "blocks"), rows)


def levels_for_t(runs: int) -> list[str]:
    """Levels of a z test with t quantiles, and the levels used."""
    rows = []
    for about, rule in (
        ("from 4, every block, to 20", RULE),
        ("from 5, every block, to 20", RULE.for_comparisons(7)),
        ("6, 8, ..., 20", FIRST),
        ("to 10", Rule(max_blocks=10)),
        ("to 40", Rule(max_blocks=40)),
    ):
        looks = plan_looks(rule, range(1, rule.max_blocks + 1))
        generator = np.random.default_rng(5)
        cells = []
        for alpha in (0.05, 0.05 / 7, 0.05 / 20):
            for levels in (normal_levels, student_levels):
                nominal = levels(alpha, looks.blocks, looks.pairs, rule.max_blocks)
                hits = 0
                for _ in range(20):
                    low, high = repeated_interval(
                        plain_means(generator.standard_normal((runs, rule.max_blocks)), looks.pairs), nominal
                    )
                    hits += int(((low > 0) | (high < 0)).any(axis=1).sum())
                cells.append(f"{hits / 20 / runs / alpha:.2f}")
        rows.append((about, *(f"{one} → {other}" for one, other in zip(cells[::2], cells[1::2], strict=True))))
    return table(("looks", "alpha .05", ".05 / 7", ".05 / 20"), rows)


def without(runs: int) -> list[str]:
    """What the parts of the rule are for: false alarms without them."""
    generator = np.random.default_rng(9)
    rows = []
    looks = plan_looks(RULE, range(1, 21))
    low, high = repeated_interval(
        plain_means(generator.standard_normal((runs, 20)), looks.pairs), np.full(len(looks.pairs), 0.05)
    )
    rows.append(
        ("a look at p < .05 after every block from the fourth", pct(((low > 0) | (high < 0)).any(axis=1).mean()))
    )
    for count in (5, 10, 20):
        drift = np.linspace(0, 2, 2 * count) + generator.standard_normal((runs, 2 * count))
        first, then = drift[:, :count], drift[:, count:]
        error = np.sqrt((first.var(axis=1, ddof=1) + then.var(axis=1, ddof=1)) / count)
        critical = critical_t(np.array([0.05]), [2 * count - 2])
        alarm = np.abs(then.mean(axis=1) - first.mean(axis=1)) > critical * error
        rows.append((f"all of A, then all of B, a drift of 2 SD, n = {count}", pct(alarm.mean())))
    for between in (0.3, 0.5, 1.0):
        arms = between * generator.standard_normal((2, runs, 10, 1)) + generator.standard_normal((2, runs, 10, 10))
        pooled = arms.reshape(2, runs, 100)
        error = np.sqrt(pooled.var(axis=2, ddof=1).sum(axis=0) / 100)
        alarm = np.abs(pooled[1].mean(axis=1) - pooled[0].mean(axis=1)) > 1.972 * error
        rows.append(
            (f"10 iterations of 10 boots as 100 values, boot SD / iteration SD = {between}", pct(alarm.mean()))
        )
    unsplit = tried(Rule(alpha=0.35), made_up("normal", 4.2), runs=runs // 4, metrics=7)
    rows.append(("alpha not split over seven metrics", pct(unsplit.any_difference)))
    for pairs in (2, 3):
        short = tried(Rule.fixed_blocks(pairs, fewest_pairs=2), made_up("sharp", 4.2), runs=runs, metrics=7)
        rows.append((f"seven metrics with two sharp modes, {pairs} pairs", pct(short.any_difference)))
    return table(("what is left out", "false positives, %"), rows)


def pairs_of(logs: np.ndarray, benchmark: str, primary: bool) -> Samples:
    return Samples(
        benchmark=benchmark,
        metric=Metric(name="rate", unit="ops/s", better="higher"),
        primary=primary,
        blocks=list(range(1, logs.size + 1)),
        values={"A": [1.0] * logs.size, "B": np.exp(logs).tolist()},
    )


def exploratory(runs: int) -> list[str]:
    """Exploratory metrics beside a primary one that may end the run early; nothing differs."""
    generator = np.random.default_rng(4)
    rows = []
    for correlation in (0.0, 0.9):
        alarms = bare = 0
        for _ in range(runs // 20):
            shared = generator.standard_normal(20)
            others = [
                correlation * shared + np.sqrt(1 - correlation**2) * generator.standard_normal(20) for _ in range(3)
            ]
            primary = pairs_of(0.03 * shared, "p", True)
            ended = 20
            for count in range(4, 20):
                if primary_results([pairs_of(0.03 * shared[:count], "p", True)], RULE)[0].decided:
                    ended = count
                    break
            cut = [pairs_of(0.03 * other[:ended], f"e{i}", False) for i, other in enumerate(others)]
            found = judge([pairs_of(0.03 * shared[:ended], primary.benchmark, True), *cut], RULE)[1:]
            alarms += any(result.verdict in ("faster", "slower") for result in found)
            bare += (found[0].beside["p_t"] or 0) < 0.05
        total = runs // 20
        rows.append((f"{correlation:g}", pct(alarms / total), pct(bare / total)))
    return table(("correlation with the primary metric", "any of three called", "plain p < .05 of one of them"), rows)


def more_blocks(runs: int) -> list[str]:
    """How often "about k more blocks", said after ten of forty, did decide."""
    rule = Rule(max_blocks=40)
    generator = np.random.default_rng(6)
    rows = []
    for effect in (0.0, 0.5, 1.2, 2.0):
        said = kept = 0
        for _ in range(runs // 40):
            logs = np.log1p(effect / 100) + 0.02 * generator.standard_normal(40)
            now = primary_results([pairs_of(logs[:10], "p", True)], rule)[0]
            if not now.decided and now.blocks_more is not None and 10 + now.blocks_more <= 40:
                said += 1
                kept += primary_results([pairs_of(logs[: 10 + now.blocks_more], "p", True)], rule)[0].decided
        rows.append((f"{effect:g} %", said, f"{100 * kept / max(said, 1):.0f} %"))
    return table(("true effect", "runs with an estimate below 40 blocks", "decided by then"), rows)


def held(runs: int) -> list[str]:
    """Whether a verdict is ever refuted by the interval of the look that the run ended with."""
    total = refuted = lost = 0
    for name in ("normal", "heavy", "step", "ar-0.5", "rare-5", "rare-10"):
        for effect in (0.0, 1.0):
            for metrics in (1, 3):
                found = tried(RULE, made_up(name, BOTH), effect, runs=runs // 4, metrics=metrics, seed=8)
                total, refuted = total + found.runs, refuted + found.refuted
    first = [
        Samples(
            benchmark="p",
            metric=Metric(name="time", unit="s", better="lower"),
            primary=True,
            blocks=list(range(1, 21)),
            values={"A": [1.0] * 20, "B": np.exp(logs).tolist()},
        )
        for logs in rare_logs(runs // 40)
    ]
    for one in first:
        (result,) = judge([one], RULE)
        lost += result.former_verdict == "equivalent"
    return [
        f"Of {total:,} simulated runs, {refuted} ended in a verdict that the interval of their last look refutes. Where one boot of "
        f"ten is 20 % slower and a run goes on to twenty blocks, {100 * lost / len(first):.0f} % of the metrics were equivalent "
        "at an earlier look and are undecided at the end."
    ]


def rare_logs(count: int) -> np.ndarray:
    """Log-ratios of twenty blocks in which one boot of ten of the contender is 20 % slower."""
    generator = np.random.default_rng(12)
    slow = generator.random((count, 20)) < 0.1
    return 0.007 * generator.standard_normal((count, 20)) + np.log(1.2) * slow


def carry_over(runs: int) -> list[str]:
    """Trials after one of the second contender are slower, whichever they are; nothing differs. Runs end at their verdict."""
    rows = []
    for sds in (0, 1, 2, 3, 4, 9):
        generator = np.random.default_rng([11, sds])
        false = named = left = 0
        for seed in range(max(100, runs // 66)):
            whole = following(sds)(generator, RULE.max_blocks, seed)
            (found,), (regressed,) = judge([whole], RULE), judge([whole], CARRY_OVER)
            left += regressed.verdict not in ("undecided", "equivalent")
            if found.verdict not in ("undecided", "equivalent"):
                false += 1
                named += "carry-over" in codes(first_blocks(whole, found.decided_at or RULE.max_blocks))
        rows.append(
            (sds, pct(false / (seed + 1), 0), pct(named / false, 0) if false else "–", pct(left / (seed + 1)))
        )
    heads = (
        "SD",
        "false verdicts, %",
        "of them with the finding, %",
        "with `carry_over = true`, %",
    )
    return table(heads, rows)


def first_blocks(table: Samples, count: int) -> Samples:
    """A run that ended after so many blocks."""
    values = {name: column[:count] for name, column in table.values.items()}
    order = {name: column[:count] for name, column in table.order.items()}
    return structs.replace(table, blocks=table.blocks[:count], values=values, order=order)


PARTS: dict[str, Callable[[int], list[str]]] = {
    "error-rates": error_rates,
    "contenders": contenders,
    "comparisons": comparisons,
    "orders": orders,
    "blocks": blocks,
    "covariate": covariate,
    "futility": giving_up,
    "rare-modes": rare_modes,
    "voids": voids,
    "levels": levels_for_t,
    "without": without,
    "exploratory": exploratory,
    "more-blocks": more_blocks,
    "held": held,
    "carry-over": carry_over,
}


def write(name: str, lines: list[str], document: Path = DOCUMENT) -> None:
    """Replace a table in the document."""
    text = document.read_text("utf-8")
    start, end = f"<!-- table {name} -->\n", f"<!-- end of {name} -->"
    if text.count(start) != 1 or text.count(end) != 1:
        raise SystemExit(f"docs/{document.name} has no place for the table {name}")
    before, rest = text.split(start)
    document.write_text(before + start + "\n".join(lines) + "\n" + end + rest.split(end)[1], "utf-8")


def main(
    parts: dict[str, Callable[[int], list[str]]], description: str | None, runs: int, document: Path = DOCUMENT
) -> None:
    """Every table of `parts`, with the time it took; `runs` simulated runs a figure unless the command line says."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--runs", type=int, default=runs)
    parser.add_argument("--only", choices=parts, action="append")
    parser.add_argument("--write", action="store_true", help=f"replace the tables in docs/{document.name}")
    given = parser.parse_args()
    start = time.process_time()
    for name in given.only or parts:
        lines = parts[name](given.runs)
        print(f"\n## {name}\n", *lines, sep="\n", flush=True)
        if given.write:
            write(name, lines, document)
    print(f"\n{time.process_time() - start:.0f} s of one processor")


if __name__ == "__main__":
    main(PARTS, __doc__, runs=20_000)
