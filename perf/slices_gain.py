"""Slices against one piece: real guests in which each step is measured both ways, for the same seconds, within every boot.

    python perf/slices_gain.py [--kernel BASELINE [CONTENDER]] [--loads idle,busy,bursts] [--blocks N] [--out DIR]

Steps: those that decided in the suite `quick` of then, in one piece (at a time drawn from the block's seed) and in slices,
and a fork on one CPU. With one kernel it has two names, and nothing may be called. Loads: nothing; one busy process for each
CPU, which a guest outranks by its priority; bursts of about 4 s with 8 s between, which it may not outrank, as it cannot
outrank the neighbours of a virtual machine. Runs are kept in DIR, and continued where they are incomplete.

The spread is the standard deviation of the logarithm of the ratio within a block. Blocks find a difference of that size with
80 % power by the rule of a run with four primary metrics; minutes are those of trials that hold the four steps in this form only.
Planted: the second contender's values are multiplied, and judged after every block as in a real run.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import msgspec
from against_itself import load, run, spread
from verdict_calibration import table, write

from kduel.core.experiment import Metric
from kduel.core.samples import Samples
from kduel.core.slices import REDUCERS, Reducer
from kduel.judge.verdict.rule import Rule, fewest_for
from kduel.judge.verdict.sample_size import POWER, blocks_for
from kduel.store.collect import collect
from kduel.store.rundir import RunDir
from kduel.study.contenders import contender_tables

STEPS = {
    "cpu": ('use = "sysbench-cpu"\nthreads = 2\ntime = 4', "events-per-second"),
    "switch": ('use = "stress-ng"\nstressor = "switch"\npinned = true\ntime = 4', "operations-per-second"),
    "wake-ups": ('use = "stress-ng"\nstressor = "switch"\ninstances = 8\ntime = 4', "operations-per-second"),
    "fork": ('use = "kbench"\noperation = "fork-exit"\ntime = 2', "time"),
    "fork-one-cpu": ('use = "kbench"\noperation = "fork-exit"\ntime = 2\ncpu = 0', "time"),
}
DECIDING = ("cpu", "switch", "wake-ups", "fork")
DOCUMENT = Path(__file__).parents[1] / "docs/evidence/slices.md"
SLICES = 4
QUARTER = "best quarter"
PIECES = "one piece"
LOADS = {
    "idle": ("high", ""),
    "busy": ("high", ""),
    "bursts": ("normal", "[host]\nmax_wait = 100\nquiet_seconds = 0\n"),
}
"""Priority of the guest, and the rule about disturbed trials."""
SPELLS = (4.0, 8.0)
"""Seconds of a burst and between, on average."""
HEAD = """[study]
name = "slices-gain"
[machine]
kind = "qemu"
priority = "{priority}"
[settle]
mode = "idle"
seconds = 10
{rule}[blocks]
fixed = {blocks}
slices = {slices}
"""


def study(kernels: list[str], kind: str, blocks: int) -> str:
    """Every step twice."""
    priority, rule = LOADS[kind]
    text = HEAD.format(priority=priority, rule=rule, blocks=blocks, slices=SLICES)
    for name, (words, metric) in STEPS.items():
        for form, number in (("slices", SLICES), ("piece", 1)):
            text += f'[[benchmark]]\n{words}\nlabel = "{name}-{form}"\nslices = {number}\nprimary = ["{metric}"]\n'
    two = kernels * 2 if len(kernels) == 1 else kernels
    return text + contender_tables(two, numbered=len(kernels) == 1)


def best_quarter(values: Sequence[float], metric: Metric) -> float:
    """Mean of the best quarter of the values."""
    ordered = sorted(values, reverse=metric.better == "higher")[: max(1, len(values) // 4)]
    return math.fsum(ordered) / len(ordered)


def reduced(sliced: Samples, reducer: Reducer | str, step: int = 1) -> list[Samples]:
    """Tables of the values that a reducer makes of every `step`th slice, one table for each slice to begin with."""
    reduce = REDUCERS.get(reducer, best_quarter)  # type: ignore[call-overload]
    return [
        msgspec.structs.replace(
            sliced,
            slices={},
            values={
                name: [
                    reduce([one.value for one in found[first::step]], sliced.metric) if found else None
                    for found in boots
                ]
                for name, boots in sliced.slices.items()
            },
        )
        for first in range(step)
    ]


def mean_spread(tables: Sequence[Samples]) -> float:
    """Root mean square of their spreads."""
    return math.sqrt(statistics.mean(spread(one) ** 2 for one in tables))


class Found:
    """What a run shows, by step and form."""

    def __init__(self, path: Path) -> None:
        self.tables = {one.benchmark: one for one in collect(path) if one.primary}
        records = [record for record in RunDir.open(path).records() if record.status == "ok" and record.host]
        self.trials = len(records)
        spent = {name: [one.host[name].seconds for one in records if name in one.host] for name in records[0].host}
        self.seconds = {
            name: {
                form: sum(
                    statistics.mean(each)
                    for label, each in spent.items()
                    if label == f"{name}-{form}" or label.startswith(f"{name}-{form}.s")
                )
                for form in ("piece", "slices")
            }
            for name in STEPS
        }
        self.boot = statistics.mean(
            record.timings["off"] - sum(step.seconds for step in record.host.values()) for record in records
        )

    def trial(self, form: str) -> float:
        """Seconds of a trial that holds the deciding steps in this form only."""
        return self.boot + sum(self.seconds[name][form] for name in DECIDING)

    def forms(self, name: str) -> dict[str, tuple[str, list[Samples]]]:
        """By the words for it, the form and the tables of each way to measure a step."""
        sliced = self.tables[f"{name}-slices"]
        return {
            PIECES: ("piece", [self.tables[f"{name}-piece"]]),
            **{reducer: ("slices", reduced(sliced, reducer)) for reducer in (*REDUCERS, QUARTER)},
            "mean of 2": ("slices", reduced(sliced, "mean", SLICES // 2)),
            "one slice": ("slices", reduced(sliced, "mean", SLICES)),
        }


def spreads(found: Found) -> list[str]:
    """Spread of the ratio by step and form, in per cent."""
    rows, head = [], ["step", "s: piece", "s: slices"]
    for name in STEPS:
        forms = found.forms(name)
        cells = [f"{100 * mean_spread(tables):.1f}" for _, tables in forms.values()]
        rows.append((name, *(f"{found.seconds[name][form]:.1f}" for form in ("piece", "slices")), *cells))
        head[3:] = list(forms)
    return table(head, rows)


def costs(found: Found) -> list[str]:
    """Blocks and minutes to differences of 1 and 3 %."""
    rule, rows = Rule(), []
    ways = (PIECES, "mean", "median", "better-half")
    for name in DECIDING:
        for size in (0.03, 0.01):
            cells = []
            for way in ways:
                form, tables = found.forms(name)[way]
                border = math.log1p(size)
                alpha = rule.alpha / len(DECIDING)
                blocks = blocks_for(mean_spread(tables), border, rule, alpha, POWER, fewest_for(len(DECIDING)))
                cells.append("" if blocks is None else f"{blocks} ({blocks * 2 * found.trial(form) / 60:.0f} min)")
            rows.append((name, f"{100 * size:.0f} %", *cells))
    return table(["step", "difference", *ways], rows)


def main() -> None:
    """The tables of each load, as each run ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--kernel", nargs="+", default=["debian:6.1-cloud"])
    parser.add_argument("--loads", default="idle,busy,bursts")
    parser.add_argument("--seconds", type=float, help="interrupt each run after so many; the same command goes on")
    parser.add_argument("--read", action="store_true", help="only read the runs in DIR, complete or not")
    parser.add_argument("--write", action="store_true", help=f"replace the tables in docs/evidence/{DOCUMENT.name}")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    out = given.out or Path(tempfile.mkdtemp(prefix="slices-gain-"))
    out.mkdir(parents=True, exist_ok=True)
    for kind in given.loads.split(","):
        path = out / kind
        before, ended = os.getloadavg()[0], ""
        if not given.read:
            with load(kind, SPELLS):
                ended = f", ended with status {run(study(given.kernel, kind, given.blocks), path, given.seconds)}"
        found = Found(path)
        print(
            f"\n{kind}: {found.trials} trials, load average {before:.1f} to {os.getloadavg()[0]:.1f}{ended}; {path}"
        )
        print(f"A trial takes {found.trial('piece'):.1f} s in one piece, {found.trial('slices'):.1f} s in slices\n")
        for part in (spreads, costs):
            lines = part(found)
            print("\n".join([*lines, ""]), flush=True)
            if given.write:
                write(f"{kind}-{part.__name__}", lines, DOCUMENT)


if __name__ == "__main__":
    main()
