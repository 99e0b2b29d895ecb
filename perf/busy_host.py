"""What other work on the host does to a run, and what each measure against it gives: real guests, sysbench CPU.

    python perf/busy_host.py [--blocks N] [--loads idle,busy,bursts] [--measures off,weight,all,declared,covariate] [--out DIR]

Loads: nothing; one busy process for each CPU; the same in bursts of 45 s with 45 s between. Measures: `off` (no weight, no
rule), `weight` (QEMU has weight against other work), `all` (and the default rule for disturbed trials), `declared` (a stricter
one: 5 %, and up to a minute's wait for a quiet host before a trial), `covariate` (the default rule, and other work before the
boot as a covariate: give it ten blocks at least). Each cell is a run of one kernel under two names. The
planted 5 % multiplies the second one's values of the same run. Runs are judged after every block as a real one is; where a
cell's blocks decide nothing, the spread says how many would.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import msgspec
import numpy as np
from against_itself import load, pairs, run, spread, with_contenders

from kduel.core.host import other_work, wait_share
from kduel.core.samples import Samples
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import Rule
from kduel.store.collect import collect
from kduel.store.rundir import RunDir

PLANTED = 1.05
STUDY = """
[study]
name = "busy-host"
[machine]
kind = "qemu"
accel = "tcg"
memory = 1024
priority = "{priority}"
[settle]
mode = "fixed"
seconds = 0
[host]
{rule}
[blocks]
fixed = {blocks}
[[benchmark]]
use = "sysbench-cpu"
threads = 2
time = 2
primary = ["events-per-second"]
"""
MEASURES = {
    "off": ("normal", "max_wait = 100\nquiet_seconds = 0"),
    "weight": ("high", "max_wait = 100\nquiet_seconds = 0"),
    "all": ("high", ""),
    "declared": ("high", "max_wait = 5\nquiet_seconds = 60"),
    "covariate": ("high", "covariate = true"),
}


def measure(kernel: str, kind: str, measures: str, blocks: int, out: Path) -> str:
    """A row of the table: one run."""
    priority, rule = MEASURES[measures]
    path = out / f"{kind}-{measures}"
    with load(kind):
        ended = run(with_contenders(STUDY.format(priority=priority, rule=rule, blocks=blocks), kernel), path)
    return row(path, kind, measures) + (f" (ended with status {ended})" if ended else "")


def row(path: Path, kind: str, measures: str) -> str:
    """What a run shows."""
    table = next(table for table in collect(path) if table.primary)
    before, after = (np.array([x for x in values if x is not None]) for values in table.values.values())
    opened = RunDir.open(path)
    records, aside = opened.records(), opened.put_asides()
    hosts = [record.host.values() for record in records]
    waited = [100 * share for steps in hosts if (share := wait_share(steps)) is not None]
    other = [100 * share for steps in hosts if (share := other_work(steps)) is not None]
    cells = [
        kind,
        measures,
        f"{len(pairs(table))}",
        f"{np.mean([*before, *after]):.0f}",
        f"{100 * spread(table):.1f}",
        f"{np.mean(waited):.0f} ({min(waited):.0f} to {max(waited):.0f})" if waited else "",
        f"{np.mean(other):.0f}" if other else "",
        f"{len(aside)}",
        verdict(table),
        verdict(planted(table)),
    ]
    return f"| {' | '.join(cells)} |"


def planted(table: Samples, factor: float = PLANTED) -> Samples:
    """The same run, were the second contender's values so many times as large."""
    first, second = table.values
    values = {first: table.values[first], second: [None if x is None else factor * x for x in table.values[second]]}
    return msgspec.structs.replace(table, values=values)


def verdict(table: Samples) -> str:
    """The verdict after these blocks, with the block that decided, or how many more it would take."""
    rule = Rule(max_blocks=max(20, len(table.blocks)), covariates=tuple(table.covariates))
    [found] = judge([table], rule)
    if found.verdict != "undecided":
        return f"{found.verdict} after {found.decided_at}"
    return f"undecided, about {found.blocks_more} more" if found.blocks_more else "undecided"


def main() -> None:
    """The table, a row as each run ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--kernel", default="debian:6.1-cloud")
    parser.add_argument("--loads", default="idle,busy,bursts")
    parser.add_argument("--measures", default="off,weight,all,declared,covariate")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    out = given.out or Path(tempfile.mkdtemp(prefix="busy-host-"))
    out.mkdir(parents=True, exist_ok=True)
    print(f"load average {os.getloadavg()[0]:.1f}; runs in {out}")
    print(
        "| other work | measures | pairs | events/s | SD of the ratio, % | guest waited, % | other work, % | made again | A/A | +5 % |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for kind in given.loads.split(","):
        for measures in given.measures.split(","):
            print(measure(given.kernel, kind, measures, given.blocks, out), flush=True)


if __name__ == "__main__":
    main()
