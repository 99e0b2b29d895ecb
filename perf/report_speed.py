"""How long a report of a long run takes: python perf/report_speed.py [BLOCKS METRICS | RUN].

Makes results of 2 x BLOCKS trials in memory (500 blocks and 200 metrics by default), writes them in every format, and
prints seconds (by the clock, and of processor time) and bytes.

Given a finished run, its trials are copied until there are 1,000, and `kduel report` is timed from its start to its end.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests/support")]

from examples import simulated  # noqa: E402

from kduel.report import report_format  # noqa: E402

LIMIT = 2.0
"""Seconds that a report of 1,000 trials may take, loading and judging not counted."""


def main(blocks: int, metrics: int) -> None:
    """Time every format."""
    results = simulated(blocks=blocks, metrics=metrics)
    print(f"{2 * blocks} trials, {metrics} metrics; at most {LIMIT} s each")
    for name in ("text", "json", "csv", "markdown", "latex", "mail", "html"):
        began, busy = time.perf_counter(), time.process_time()
        size = len(report_format(name).render(results).encode())
        seconds, busy = time.perf_counter() - began, time.process_time() - busy
        print(f"{name:10} {seconds:6.2f} s {busy:6.2f} s {size / 1e6:8.2f} MB{'' if busy < LIMIT else '  TOO SLOW'}")


def stored(run: Path) -> None:
    """Time `kduel report` on 1,000 trials made from those of `run`."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "run"
        multiply(run, copy, 1000)
        for form in ("text", "json", "html"):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            began = time.perf_counter()
            subprocess.run(
                [sys.executable, "-P", "-m", "kduel", "report", copy, "--format", form],
                env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
                stdout=subprocess.DEVNULL,
                check=True,
            )
            seconds = time.perf_counter() - began
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            most = after.ru_maxrss / 1024
            print(f"{form:10} {seconds:6.2f} s {busy:6.2f} s of processor time, {most:.0f} MiB at most so far")


def multiply(run: Path, into: Path, wanted: int) -> None:
    """A run of `wanted` trials whose blocks repeat those of `run`."""
    plan = [json.loads(line) for line in (run / "plan.jsonl").read_text().splitlines()]
    plan = [line for line in plan if (run / "trials" / line["id"]).is_dir()]
    blocks = max(line["block"] for line in plan)
    (into / "trials").mkdir(parents=True)
    shutil.copy(run / "study.toml", into)
    times = -(-wanted // len(plan))
    lock = json.loads((run / "lock.json").read_text())
    lock["study"] |= {"max": blocks * times, "fixed": None}
    (into / "lock.json").write_text(json.dumps(lock))
    with (into / "plan.jsonl").open("w") as stream:
        for again in range(times):
            for line in plan:
                position, block = line["position"] + again * len(plan), line["block"] + again * blocks
                place = {
                    "id": f"{position + 1:04d}-b{block:02d}-{line['contender']}",
                    "block": block,
                    "position": position,
                }
                stream.write(json.dumps(line | place | {"boot": line["boot"] + again * len(plan)}) + "\n")
                shutil.copytree(run / "trials" / line["id"], into / "trials" / place["id"])
                record = into / "trials" / place["id"] / "trial.json"
                record.write_text(json.dumps(json.loads(record.read_text()) | place))


if __name__ == "__main__":
    if sys.argv[1:] and not sys.argv[1].isdigit():
        stored(Path(sys.argv[1]))
    else:
        main(*(int(word) for word in sys.argv[1:3] or ("500", "200")))
