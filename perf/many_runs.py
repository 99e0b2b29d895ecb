"""Many runs: how long the index, the history, questions and the site of 1,000 runs take, and how large they are.

    .venv/bin/python perf/many_runs.py [--runs 1000] [--place DIR] [--write]

The runs are imported: two contenders, four metrics, ten trials each, one run a day; in one metric the newer kernel gets 3 %
slower on a day of its own. With --write the table in docs/many-runs.md is replaced.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path

import numpy as np
from verdict_calibration import table

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from kduel.store.imported import Source, bring_in

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs/many-runs.md"
METRICS = (("sched", "wakeup", "us"), ("sched", "switch", "us"), ("fs", "create", "ms"), ("net", "round-trip", "us"))
TRIALS = 10


def make(place: Path, number: int, slower_from: int) -> None:
    """One imported run of a day, with the date in its conditions."""
    draw = np.random.default_rng(number)
    day = date(2023, 1, 1) + timedelta(days=number)
    lines = ["contender,trial,benchmark,metric,unit,better,value"]
    for benchmark, metric, unit in METRICS:
        for contender in ("stable", "next"):
            level = 100.0 * (1.03 if (metric, contender) == ("switch", "next") and number >= slower_from else 1.0)
            values = level * (1 + 0.01 * draw.standard_normal(TRIALS))
            lines += [
                f"{contender},{trial},{benchmark},{metric},{unit},lower,{value:.6f}"
                for trial, value in enumerate(values, 1)
            ]
    (place / "values.csv").write_text("\n".join(lines) + "\n")
    conditions = "".join(
        f'[contenders.{name}]\ncpu_model = "machine {number % 2}"\n[contenders.{name}.conditions]\ndate = "{day}"\n'
        for name in ("stable", "next")
    )
    (place / "conditions.toml").write_text(conditions)
    bring_in(
        [Source(place / "values.csv")],
        place / "runs" / f"run-{number:04d}",
        conditions=place / "conditions.toml",
        primary=["sched/switch"],
    )


def timed(*arguments: object) -> tuple[float, float, str]:
    """Elapsed and processor seconds of `kduel ARGUMENTS...` started anew, and what it prints."""
    code = (
        "import resource, sys; from kduel.cli import main\n"
        "import atexit\n"
        "def told():\n"
        "    used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "    print(used.ru_utime + used.ru_stime, file=sys.stderr)\n"
        "atexit.register(told); main()"
    )
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *map(str, arguments)],
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return time.monotonic() - start, float(done.stderr.splitlines()[-1]), done.stdout


def size(path: Path) -> str:
    """Of a file, or of all files below a directory."""
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return f"{sum(one.stat().st_size for one in files) / 1e6:.1f} MB in {len(files)} files"


def measured(place: Path, runs: int) -> list[str]:
    """The table of times and sizes."""
    start = time.monotonic()
    for number in range(runs):
        if not (place / "runs" / f"run-{number:04d}").exists():
            make(place, number, runs * 6 // 10)
    print(f"made in {time.monotonic() - start:.0f} s", flush=True)
    folder, site = place / "runs", place / "site"
    index = folder / "kduel-index.sqlite"
    rows = []
    for what, arguments, result in (
        ("`kduel query --update DIR`, new", ("query", "--update", folder, "--rebuild", "--quiet"), index),
        ("`kduel query --update DIR`, nothing changed", ("query", "--update", folder, "--quiet"), None),
        ("`kduel query DIR slower`", ("query", folder, "slower"), None),
        ("`kduel query --history DIR --index`", ("query", "--history", folder, "--index", "--format", "json"), None),
        (
            "`kduel query --history DIR --index --metric switch`",
            ("query", "--history", folder, "--index", "--metric", "switch"),
            None,
        ),
        ("`kduel query DIR --series sched/switch`", ("query", folder, "--series", "sched/switch"), None),
        ("`kduel site DIR`, index current", ("site", folder, "--output", site, "--quiet"), site),
    ):
        elapsed, used, _ = timed(*arguments)
        rows.append([what, f"{elapsed:.1f}", f"{used:.1f}", size(result) if result else ""])
        print(rows[-1], flush=True)
    return table(["1,000 runs" if runs == 1000 else f"{runs} runs", "elapsed, s", "processor, s", "size"], rows)


def main() -> None:
    """Measure, and write the table where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--place", type=Path, help="keep the runs here, and use those that are there")
    parser.add_argument("--write", action="store_true", help="replace the table in docs/many-runs.md")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = given.place or Path(temporary)
        (place / "runs").mkdir(parents=True, exist_ok=True)
        lines = measured(place, given.runs)
    print(*lines, sep="\n")
    if given.write:
        text = DOCUMENT.read_text("utf-8")
        before, rest = text.split("<!-- table many-runs -->\n")
        after = rest.split("<!-- end of many-runs -->")[1]
        DOCUMENT.write_text(
            f"{before}<!-- table many-runs -->\n{chr(10).join(lines)}\n<!-- end of many-runs -->{after}", "utf-8"
        )


if __name__ == "__main__":
    main()
