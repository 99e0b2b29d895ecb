"""Planted differences in turns and one boot after the other, blocks of both by turns: both have to find the same.

    python perf/turns_planted.py [--kernel KERNEL] [--load idle|busy] [--blocks N] [--out DIR]

A step of which an event takes 3 % longer where the command line says so (sysbench's loop, by its limit of primes), and new
processes beside a kernel whose allocators check each object (`slub_debug=FZ`). Prints each ratio with its 95 % interval.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from against_itself import pairs, spread
from scipy.stats import t
from turns_gain import measure

from kduel.core.turns import DEFAULT_MS
from kduel.store.collect import collect

STUDY = """[study]
name = "turns-planted"
[[contender]]
name = "plain"
kernel = "{kernel}"
[[contender]]
name = "planted"
kernel = "{kernel}"
cmdline = "slub_debug=FZ"
[machine]
kind = "qemu"
cpus = 2
memory = "1024M"
[settle]
mode = "idle"
seconds = 10
[blocks]
slices = 4
[[benchmark]]
use = "command"
label = "primes"
command = '''
limit=20000
grep -q slub_debug /proc/cmdline && limit=20398
sysbench cpu --threads=2 --time=2 --cpu-max-prime=$limit run
'''
time = 2
turns = 50
packages = ["sysbench"]
metrics = [{{ name = "events", unit = "1/s", better = "higher", regex = "events per second: *([0-9.]+)" }}]
[[benchmark]]
use = "kbench"
operation = "fork-exit"
cpu = 0
time = 2
"""
"""The work of an event grows about as the limit to the power of 1.5."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", default="debian:6.12-cloud")
    parser.add_argument("--load", choices=("idle", "busy"), default="idle")
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "turns-planted")
    given = parser.parse_args()
    text = STUDY.format(kernel=given.kernel)
    for run in measure(text, DEFAULT_MS, given.load, given.blocks, given.out):
        print(run.path)
        for table in collect(run.path):
            logs = np.array([np.log(after / before) for before, after in pairs(table)])
            half = t.ppf(0.975, logs.size - 1) * spread(table) / np.sqrt(logs.size) if logs.size > 2 else np.nan
            low, middle, high = (100 * np.expm1(logs.mean() + step) for step in (-half, 0, half))
            print(
                f"  {table.benchmark}/{table.metric.name}: {middle:+.1f} % ({low:+.1f} to {high:+.1f} %), {logs.size} blocks"
            )


if __name__ == "__main__":
    main()
