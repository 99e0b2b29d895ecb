"""False verdicts in turns with real guests: one kernel under two names, many short runs, each with its own seed.

    python perf/turns_alike.py [--kernel KERNEL] [--runs N] [--first SEED] [--blocks N] [--out DIR] [--write]

Prints each metric that was called faster or slower, and how many of how many; with --write the table `alike` in
docs/evidence/turns.md is replaced. The three primary metrics of a run divide alpha (5 %): of 20 runs, one false verdict is
expected where boots differ by nothing but chance. The runs are kept in DIR, and continued where they are incomplete.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from against_itself import pairs, run, with_contenders
from verdict_calibration import table, write

from kduel.store.collect import collect

STUDY = """[study]
name = "turns-alike"
[machine]
kind = "qemu"
cpus = 2
memory = "512M"
[settle]
mode = "fixed"
seconds = 2
[blocks]
max = {blocks}
slices = 2
[[benchmark]]
use = "kbench"
operation = "null-call"
time = 1
primary = ["time"]
[[benchmark]]
use = "kbench"
operation = "pipe"
time = 1
primary = ["time"]
[[benchmark]]
use = "kbench"
operation = "fork-exit"
cpu = 0
time = 1
primary = ["time"]
"""


def verdicts(path: Path) -> list[tuple[str, str]]:
    """The primary metrics of a run with their verdicts."""
    command = [sys.executable, "-P", "-m", "kduel", "report", str(path), "--format", "json"]
    environment = {"PYTHONPATH": str(Path(__file__).parents[1] / "src"), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment).stdout
    rows = json.loads(text)["metrics"]
    return [(f"{row['benchmark']}/{row['metric']}", row["verdict"]) for row in rows if row["role"] == "primary"]


def differences(path: Path) -> dict[str, list[float]]:
    """By primary metric, the logarithm of the ratio of the two names in each block."""
    return {
        one.key: [math.log(after / before) for before, after in pairs(one)] for one in collect(path) if one.primary
    }


def summary(paths: list[Path], found: list[list[tuple[str, str]]]) -> list[str]:
    """The table: by metric, verdicts, and by how much the two names differ over all blocks and from block to block."""
    every = [differences(path) for path in paths]
    rows = []
    for name in every[0]:
        called = sum(verdict in ("faster", "slower") for one in found for metric, verdict in one if metric == name)
        logs = 100 * np.array([log for one in every for log in one[name]])
        spread = math.sqrt(np.mean([np.var(one[name], ddof=1) for one in every]))
        error = 1.96 * logs.std(ddof=1) / math.sqrt(logs.size)
        rows.append(
            (
                name,
                f"{called} of {len(every)}",
                f"{logs.mean():+.1f} ± {error:.1f} %".replace("-", "−"),
                f"{100 * spread:.1f} %",
            )
        )
    blocks = sum(len(one[name]) for one in every)
    return table(
        (f"{len(every)} runs, {blocks} blocks", "called different", "difference", "SD of a block's log-ratio"), rows
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", default="debian:6.12-cloud")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first", type=int, default=1, help="seed and number of the first run")
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "turns-alike")
    parser.add_argument("--write", action="store_true", help="replace the table in docs/evidence/turns.md")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    found = []
    for number in range(given.first, given.first + given.runs):
        path = given.out / f"run-{number}"
        run(with_contenders(STUDY.format(blocks=given.blocks), given.kernel), path, seed=number)
        found.append(verdicts(path))
        print(number, *(f"{name}: {verdict}" for name, verdict in found[-1]), flush=True)
    called = [[verdict for _, verdict in one if verdict in ("faster", "slower")] for one in found]
    print(f"{sum(map(bool, called))} of {len(found)} runs called a difference, {sum(map(len, called))} metrics")
    lines = summary([given.out / f"run-{number}" for number in range(given.first, given.first + given.runs)], found)
    print(*lines, sep="\n")
    if given.write:
        write("alike", lines, Path(__file__).parents[1] / "docs/evidence/turns.md")


if __name__ == "__main__":
    main()
