"""How long judging takes, and how much memory: 1,000 blocks of 200 metrics, with and without looks on the way.

    .venv/bin/python perf/verdict_speed.py

Each case runs in a process of its own, so that peaks of memory do not mix. Limits: 5 s and 500 MiB.
Seconds are of the processor, so that a busy host does not count.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCKS, METRICS = 1000, 200
CASES = {
    "one look, 10 primary": {"fixed": True, "primary": 10, "missing": "none"},
    "498 looks, 10 primary": {"fixed": False, "primary": 10, "missing": "none"},
    "498 looks, 200 primary": {"fixed": False, "primary": 200, "missing": "none"},
    "498 looks, 2 % of trials void": {"fixed": False, "primary": 10, "missing": "trials"},
    "one look, 2 % of values missing": {"fixed": True, "primary": 10, "missing": "values"},
    "20 blocks, 8 looks": {"fixed": False, "primary": 10, "missing": "trials", "blocks": 20},
}


def measure(case: dict[str, object]) -> dict[str, float]:
    """Judge once in this process."""
    sys.path.insert(0, str(ROOT / "src"))
    import numpy as np

    from kduel.core.experiment import Metric
    from kduel.core.samples import Samples
    from kduel.judge.verdict.rule import Rule

    generator = np.random.default_rng(1)
    blocks = int(case.get("blocks", BLOCKS))  # type: ignore[call-overload]
    void = {arm: generator.random(blocks) < 0.02 for arm in "AB"}
    samples = []
    for number in range(METRICS):
        values = {}
        for arm in "AB":
            drawn = 1000 * np.exp(generator.normal(0.002 * (number % 5) * (arm == "B"), 0.02, blocks))
            lost = {"none": np.zeros(blocks, bool), "trials": void[arm], "values": generator.random(blocks) < 0.02}
            gone = lost[str(case["missing"])]
            values[arm] = [None if miss else value for value, miss in zip(drawn.tolist(), gone.tolist(), strict=True)]
        samples.append(
            Samples(
                benchmark=f"b{number}",
                metric=Metric(name="rate", unit="ops/s", better="higher"),
                primary=number < int(case["primary"]),  # type: ignore[call-overload]
                blocks=list(range(1, blocks + 1)),
                values=values,
            )
        )
    rule = Rule.fixed_blocks(blocks) if case["fixed"] else Rule(max_blocks=blocks)
    start = time.process_time()
    from kduel.judge.verdict.judge import judge

    imported = time.process_time()
    results = judge(samples, rule)
    judged = time.process_time()
    from kduel.judge.verdict.interim import primary_results

    primary_results(samples, rule)
    return {
        "import": imported - start,
        "judge": judged - imported,
        "standing": time.process_time() - judged,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "decided": sum(result.verdict != "undecided" for result in results),
    }


def main() -> None:
    """All cases, one line each."""
    print(f"{'':34} {'import':>8} {'judge':>8} {'standing':>9} {'memory':>9}  decided of {METRICS}")
    for name, case in CASES.items():
        command = [sys.executable, __file__, json.dumps(case)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(
            f"{name:34} {found['import']:6.2f} s {found['judge']:6.2f} s {found['standing']:7.2f} s "
            f"{found['memory']:5.0f} MiB  {found['decided']}"
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(json.loads(sys.argv[1]))))
    else:
        main()
