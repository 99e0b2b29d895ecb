"""Cost and gain of turns by their length: one kernel under two names, steps that differ in nothing but the length of their turns.

    python perf/turns_lengths.py [--kernel KERNEL] [--blocks N] [--out DIR]

For CPU throughput, a switch on one CPU and new processes, by length (0: whole steps): the level relative to that of the longest
turns in the same boots, with a 95 % interval (caches are cold after each change-over, which costs by 1/length), and the standard
deviation of the logarithm of both contenders' ratio. Whole steps give a spread only: their level is that of a few moments of the
host. The run is kept in DIR, and continued where it is incomplete.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from against_itself import run, spread, with_contenders
from scipy.stats import t

from kduel.store.collect import collect

LENGTHS = (0, 20, 50, 100, 200)
HEAD = """[study]
name = "turns-lengths"
[machine]
kind = "qemu"
memory = "1024M"
[settle]
mode = "idle"
seconds = 10
[blocks]
fixed = {blocks}
slices = 2
turns = 50
"""
STEPS = {
    "cpu": 'use = "sysbench-cpu"\nthreads = 2',
    "switch": 'use = "kbench"\noperation = "pipe"',
    "fork": 'use = "kbench"\noperation = "fork-exit"\ncpu = 0',
}


def study(blocks: int) -> str:
    """The text of the study, without contenders."""
    tables = [
        f'[[benchmark]]\n{words}\ntime = 2\nturns = {length}\nlabel = "{name}-{length}"\n'
        for name, words in STEPS.items()
        for length in LENGTHS
    ]
    return HEAD.format(blocks=blocks) + "".join(tables)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", default="debian:6.12-cloud")
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "turns-lengths")
    given = parser.parse_args()
    run(with_contenders(study(given.blocks), given.kernel), given.out)
    tables = {}
    for table in collect(given.out):
        tables.setdefault(table.benchmark, table)
    print(
        f"| step | turns | level against turns of {LENGTHS[-1]} ms | SD of a block's log-ratio |\n|---|---|---|---|"
    )
    for name in STEPS:
        longest = np.log(np.array([*tables[f"{name}-{LENGTHS[-1]}"].values.values()], dtype=float))
        for length in LENGTHS:
            table = tables[f"{name}-{length}"]
            logs = np.log(np.array([*table.values.values()], dtype=float)) - longest
            blocks = logs.mean(axis=0)
            blocks = blocks[np.isfinite(blocks)]
            half = (
                t.ppf(0.975, blocks.size - 1) * blocks.std(ddof=1) / np.sqrt(blocks.size)
                if blocks.size > 1
                else np.nan
            )
            level = f"{100 * np.expm1(blocks.mean()):+.1f} ± {100 * half:.1f} %" if 0 < length < LENGTHS[-1] else ""
            print(f"| {name} | {length or 'whole'} | {level} | {100 * spread(table):.1f} % |")


if __name__ == "__main__":
    main()
