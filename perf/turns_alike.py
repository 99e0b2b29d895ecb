"""False verdicts in turns with real guests: one kernel under two names, many short runs, each with its own seed.

    python perf/turns_alike.py [--kernel KERNEL] [--runs N] [--first SEED] [--blocks N] [--out DIR]

Prints each metric that was called faster or slower, and how many of how many. The three primary metrics of a run divide alpha
(5 %): of 20 runs, one false verdict is expected where boots differ by nothing but chance. The runs are kept in DIR, and
continued where they are incomplete.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parent))

from against_itself import run, with_contenders

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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", default="debian:6.12-cloud")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first", type=int, default=1, help="seed and number of the first run")
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "turns-alike")
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


if __name__ == "__main__":
    main()
