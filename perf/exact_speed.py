"""What the exact machine costs: the commands, two workers against one, and the counting plug-in against none.

    python perf/exact_speed.py commands [--only WHAT]... [--out FILE.json] [BASELINE CONTENDER]
    python perf/exact_speed.py parts [KERNEL]

`commands` runs the suites exact-quick, exact and exact-lines, and `explain` without and with --lines, each with one worker and
with two: *cold*, where the cache has the kernels and programs but no counts or proofs, and *warm*, again with the same cache.
It prints a Markdown table with seconds of elapsed time, CPU seconds, and the host's load; with --out it keeps the rows and
continues from them.

`parts` compares trials in turn: one worker and two, without and with the plug-in. Besides elapsed time it gives QEMU's CPU
seconds, which other work on the host disturbs less: two workers are as fast as 2 x (CPU of a trial alone) / (CPU of a
trial beside another) where both CPUs are free. About ten minutes; for a host with two CPUs at least.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from kduel.core.cache import Cache
from kduel.core.progress import Progress
from kduel.guest import programs
from kduel.guest.processor import plugin_api
from kduel.machines import Trial
from kduel.machines.icount import IcountMachine
from kduel.run.prepare import make_ready
from kduel.study.contenders import contender_tables
from kduel.study.file import parse_study, suite_text
from kduel.study.load import assemble

TRIALS, ROUNDS = 2, 3
KEPT = ("archive", "busybox", "initramfs", "kernels", "programs", "root", "vmlinux")
"""Of the cache: what a command finds that was not run before with these kernels."""
OPERATION = "pipe"


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock, and of CPU in the programs that were started."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - begin, cpu


def cold_cache(into: Path) -> Path:
    """A cache that has the entries of the usual one, but no counts and no proofs."""
    usual = Cache().root
    (into / "manifests").mkdir(parents=True)
    for kind in KEPT:
        for top in (usual, usual / "manifests"):
            if (top / kind).is_dir():
                (into / (top / kind).relative_to(usual)).symlink_to(top / kind)
    return into


def command_of(what: str, workers: int, kernels: list[str], place: Path) -> list[str]:
    """The command line: a suite with so many workers, or `explain`, which has as many as there are CPUs."""
    if what.startswith("explain"):
        words = [*what.split(), *kernels, "--benchmark", OPERATION]
    else:
        run = tempfile.mkdtemp(dir=place)
        words = ["run", *kernels, "--suite", what, "--machine", f"icount:workers={workers}", "--out", f"{run}/run"]
    return [sys.executable, "-P", "-m", "kduel", *words]


def commands(kernels: list[str], only: list[str], out: Path | None) -> None:
    """Time the commands that are not in `out` yet, and print the table of all."""
    rows: dict[str, tuple[float, float, float]] = {}
    if out and out.is_file():
        rows = json.loads(out.read_text())
    for what in ("exact-quick", "exact", "exact-lines", "explain", "explain --lines"):
        for workers in (1, 2):
            if only and f"{what} {workers}" not in only:
                continue
            with tempfile.TemporaryDirectory(prefix="kduel-speed-") as name:
                place = Path(name)
                env = os.environ | {"KDUEL_CACHE": str(cold_cache(place / "cache")), "PYTHONPATH": sys.path[0]}
                cpus = sorted(os.sched_getaffinity(0))[:workers]
                for state in ("cold", "warm"):
                    words = command_of(what, workers, kernels, place)
                    if what.startswith("explain"):
                        words = ["taskset", "-c", ",".join(map(str, cpus)), *words]
                    wall, cpu = timed(
                        lambda: subprocess.run(words, env=env, check=True, stdout=subprocess.DEVNULL)  # noqa: B023
                    )
                    rows[f"{what}, {state}, {workers}"] = (wall, cpu, os.getloadavg()[0])
                    if out:
                        out.write_text(json.dumps(rows))
    print("| command | cache | workers | elapsed | CPU | load of the host |\n|---|---|---:|---:|---:|---:|")
    for key, (wall, cpu, load) in rows.items():
        what, state, workers_word = key.split(", ")
        print(f"| `{what}` | {state} | {workers_word} | {wall:.0f} s | {cpu:.0f} s | {load:.1f} |")


def parts(kernel: str) -> None:
    """Two workers against one, and the counting plug-in against none."""
    cache = Cache()
    text = suite_text("exact") + contender_tables([kernel, kernel], True)
    ready = make_ready(assemble(parse_study(text, "exact"), text, "exact"), cache=cache, progress=Progress())
    machine, arm = ready.machine, ready.arms[0]
    assert isinstance(machine, IcountMachine)
    script = ready.setup.script(arm.contender, range(len(ready.study.steps)))
    plugin = programs.build_plugin(api=plugin_api(machine.facts["qemu"]), cache=cache)

    def once(extra: list[str]) -> None:
        with tempfile.TemporaryDirectory() as name:
            trial = Trial(id="x", arm=arm, script=script.text, deadline=1800, into=Path(name))
            outcome = machine.boot_once(trial, [word.replace("@", name) for word in extra])
            assert not outcome.void, outcome.message

    once([])
    print(f"load of the host at the start: {os.getloadavg()[0]:.1f}", flush=True)
    rows: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
    for _ in range(ROUNDS):
        for workers, measured in rows.items():
            with ThreadPoolExecutor(workers) as pool:
                measured.append(timed(lambda: list(pool.map(once, [[]] * TRIALS))))
            wall, cpu = measured[-1]
            print(f"{TRIALS} trials, {workers} worker(s): {wall:6.1f} s, QEMU's CPU {cpu:6.1f} s", flush=True)
    (wall_1, cpu_1), (wall_2, cpu_2) = (
        [statistics.median(values) for values in zip(*rows[workers], strict=True)] for workers in (1, 2)
    )
    print(f"two workers are {wall_1 / wall_2:.2f} times as fast as one by the clock; by CPU {2 * cpu_1 / cpu_2:.2f}")
    ways = {
        "no plug-in": [],
        "counting": ["-plugin", f"{plugin},out=@/counts"],
        "counting, with texts": ["-plugin", f"{plugin},out=@/counts,disassemble=on"],
    }
    costs: dict[str, list[tuple[float, float]]] = {what: [] for what in ways}
    for _ in range(ROUNDS):
        for what, extra in ways.items():
            costs[what].append(timed(lambda: once(extra)))  # noqa: B023
    plain = statistics.median(cpu for _, cpu in costs["no plug-in"])
    for what, pairs in costs.items():
        wall, cpu = (statistics.median(values) for values in zip(*pairs, strict=True))
        print(f"{what:22} {wall:6.1f} s, QEMU's CPU {cpu:6.1f} s: {cpu / plain:.2f} times the plain run")
    print(f"load of the host at the end: {os.getloadavg()[0]:.1f}")


def main() -> None:
    read = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = read.add_subparsers(dest="mode", required=True)
    timing = modes.add_parser("commands", help="The suites and explain, cold and warm, with one and two workers.")
    timing.add_argument("kernels", nargs="*", default=["debian:6.1-cloud", "debian:6.12-cloud"])
    timing.add_argument(
        "--only", action="append", default=[], metavar="'WHAT WORKERS'", help="As 'exact 2'; repeat it."
    )
    timing.add_argument("--out", type=Path, help="Keep the rows there, and continue from them.")
    modes.add_parser("parts", help="Workers and plug-in.").add_argument(
        "kernel", nargs="?", default="debian:6.12-cloud"
    )
    given = read.parse_args()
    if given.mode == "parts":
        parts(given.kernel)
    else:
        commands(given.kernels, given.only, given.out)


if __name__ == "__main__":
    main()
