"""Which steps, and how long, tell most about a kernel in the least time? The choice behind the suite `quick`.

    python perf/quick_choice.py [--blocks N] [--kernel KERNEL] [--busy] [--out DIR]

One run of one kernel under two names, in which every candidate is a step: what stands for CPU throughput, for a switch, for many
tasks that wake each other, and for new processes, each for one, two and four seconds or by a program that does a fixed amount
of work. By candidate: seconds of a step, the spread of the paired ratio, the blocks that find a difference of 3 % with 80 % power
by the rule of a real run, and their seconds if the step has a boot of its own and if it shares one with three others. The
fewest seconds win. --busy: beside one busy process for each CPU. The runs are kept in DIR, and read instead of made again.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parent))

from against_itself import load, run, spread, with_contenders

from kduel.judge.verdict.rule import Rule, fewest_for
from kduel.judge.verdict.sample_size import POWER, blocks_for
from kduel.store.collect import collect
from kduel.store.rundir import RunDir

FOUND = math.log(1.03)
PRIMARY = 4
"""As many primary metrics as `quick` has: they share the error probability."""
HEAD = """[study]
name = "quick-choice"
[machine]
kind = "qemu"
[settle]
mode = "idle"
seconds = 10
[blocks]
fixed = {blocks}
"""
TIMED = {
    "throughput": 'use = "sysbench-cpu"\nthreads = 2',
    "switch": 'use = "stress-ng"\nstressor = "switch"\npinned = true',
    "wake-ups": 'use = "stress-ng"\nstressor = "switch"\ninstances = 8',
    "processes": 'use = "stress-ng"\nstressor = "fork"',
}
OTHERS = {
    "throughput": ['use = "sysbench-cpu"\nthreads = 1\ntime = 2'],
    "switch": [
        'use = "perf-sched-pipe"\nloops = 20000\npinned = true',
        'use = "kbench"\noperation = "pipe"\ntime = 2',
        'use = "stress-ng"\nstressor = "pipe"\npinned = true\ntime = 2',
        'use = "stress-ng"\nstressor = "futex"\npinned = true\ntime = 2',
    ],
    "wake-ups": [
        'use = "hackbench"\ngroups = 2\nloops = 50',
        'use = "perf-sched-messaging"\ngroups = 2\nloops = 50',
    ],
    "processes": [
        'use = "kbench"\noperation = "fork-exit"\ntime = 2',
        'use = "stress-ng"\nstressor = "clone"\ntime = 2',
        'use = "stress-ng"\nstressor = "vfork"\ntime = 2',
    ],
}


def study(kernel: str, blocks: int) -> str:
    """Every candidate as a step."""
    steps = [f"{words}\ntime = {seconds}" for words in TIMED.values() for seconds in (1, 2, 4)]
    steps += [words for group in OTHERS.values() for words in group]
    text = HEAD.format(blocks=blocks) + "".join(f"[[benchmark]]\n{words}\n" for words in steps)
    return with_contenders(text, kernel)


def rows(path: Path) -> list[str]:
    """Markdown, the fewest seconds first."""
    records = [record for record in RunDir.open(path).records() if record.status == "ok"]
    steps = {label: statistics.median(record.host[label].seconds for record in records) for label in records[0].host}
    boots = statistics.median(
        record.timings["off"] - sum(step.seconds for step in record.host.values()) for record in records
    )
    rule, found = Rule(), []
    first = {table.benchmark: table for table in reversed(collect(path))}
    for table in first.values():
        sd = spread(table)
        blocks = blocks_for(sd, FOUND, rule, rule.alpha / PRIMARY, POWER, fewest_for(PRIMARY)) if sd > 0 else None
        own = steps[table.benchmark]
        alone, shared = ((blocks or math.nan) * 2 * (part + own) for part in (boots, boots / PRIMARY))
        cells = [
            f"{table.benchmark}: {table.metric.name}",
            f"{own:.1f}",
            f"{100 * sd:.1f}",
            f"{blocks or 'over a million'}",
            f"{alone:.0f}",
            f"{shared:.0f}",
        ]
        found.append((shared, f"| {' | '.join(cells)} |"))
    head = [
        f"{len(records)} trials; a boot without its steps takes {boots:.1f} s\n",
        "| step | s | SD, % | blocks | s, a boot of its own | s, one boot for four |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    return head + [row for _, row in sorted(found)]


def main() -> None:
    read = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    read.add_argument("--blocks", type=int, default=10)
    read.add_argument("--kernel", default="debian:6.1-cloud")
    read.add_argument("--busy", action="store_true")
    read.add_argument("--out", type=Path)
    given = read.parse_args()
    out = given.out or Path(tempfile.mkdtemp(prefix="quick-choice-"))
    out.mkdir(parents=True, exist_ok=True)
    kind = "busy" if given.busy else "idle"
    path = out / kind
    if not path.exists():
        before = os.getloadavg()[0]
        with load(kind):
            run(study(given.kernel, given.blocks), path)
        print(f"load average {before:.1f} before, {os.getloadavg()[0]:.1f} after; run in {path}\n")
    print("\n".join(rows(path)))


if __name__ == "__main__":
    main()
