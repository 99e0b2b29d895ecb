"""Exact counts against the counter of a real processor: kernel instructions of each operation, on a machine that runs the kernel
that was counted.

    kduel run --aa 2 KERNEL --suite exact --single --out counted
    python perf/exact_hardware.py counted/results.json [--only NAME]... [--count 200] [--event instructions:k]

To be run as root, best alone on an x86 machine with a performance counter, under KERNEL (its release is compared). kbench calls each
operation, for so many calls and five times as many, under `perf stat`; the difference over the calls between is an operation's count,
the median of three tries. It is compared with instructions-mean. The exact count has the program's own instructions around a call
(some ten), too; the processor's has what QEMU's processor does not need (mitigations), counts a string instruction once,
and has what makes memory ready between calls of the faults (fault-anonymous, fault-file). Another event, such as page-faults or
context-switches, is counted alone: it needs no hardware, and shows that calls are counted as they should be.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parent))

from atlas_tables import values
from verdict_calibration import table

from kduel.benchmarks import ParseError
from kduel.benchmarks.kbench import read_lines
from kduel.benchmarks.perf_stat import read_row
from kduel.benchmarks.support.operations import MODULES
from kduel.core.cache import Cache
from kduel.core.format import with_sign
from kduel.core.metric_results import COUNTED
from kduel.guest import programs
from kduel.judge.published import read_results

EVENT = "instructions:k"
TRIES, FACTOR = 3, 5


def calls_of(output: str) -> int:
    """Calls of an operation that kbench made in exact mode: the rounds of its warm-up, and those that it measured."""
    (line,) = read_lines(output)
    return (line.rounds + 1) * line.count * line.hops


def counted(kbench: Path, operation: str, count: int, event: str) -> tuple[int, int]:
    """Calls, and events in all of kbench and its children. Raises ParseError where perf does not count the event."""
    with tempfile.NamedTemporaryFile("r") as out:
        words = ["perf", "stat", "-x,", "-o", out.name, "-e", event, "--"]
        words += [
            str(kbench),
            "--exact",
            "--count",
            str(count),
            "--cpu",
            str(max(os.sched_getaffinity(0))),
            operation,
        ]
        done = subprocess.run(words, env=os.environ | {"LC_ALL": "C"}, capture_output=True, text=True, check=False)
        told = "\n".join(line for line in out.read().splitlines() if line and not line.startswith("#"))
    if done.returncode:
        raise ParseError(f"kbench {operation}: {done.stderr.strip()[-200:]}")
    return calls_of(done.stdout), int(read_row(told + "\n", event)[0])


def per_call(count: Callable[[int], tuple[int, int]], calls: int) -> float:
    """Events per call: what more calls have more, so that the program's beginning and end are not in it."""
    found = []
    for _ in range(TRIES):
        (few, at_few), (many, at_many) = count(calls), count(FACTOR * calls)
        found.append((at_many - at_few) / (many - few))
    return statistics.median(found)


def row_of(operation: str, exact: float | None, here: float) -> tuple[str, ...]:
    """An operation's row; without an exact count the processor's alone."""
    if not exact:
        return operation, "", f"{here:,.2f}", ""
    return operation, f"{exact:,.0f}", f"{here:,.0f}", f"{with_sign(100 * (here / exact - 1), '.1f')} %"


def rows(exact: dict[str, float | None], count: int, event: str) -> Iterable[tuple[str, ...]]:
    """A row for each operation that can be counted here; the others' reasons go to stderr."""
    kbench = programs.build("kbench", platform.machine(), cache=Cache())
    for operation, value in exact.items():
        try:
            here = per_call(lambda calls: counted(kbench, operation, calls, event), count)  # noqa: B023
        except ParseError as error:
            print(f"{operation}: {error}", file=sys.stderr)
            continue
        yield row_of(operation, value if event == EVENT else None, here)


def chosen(
    means: dict[str, dict[str, float | None]], only: Sequence[str] | None, contender: str
) -> dict[str, float | None]:
    """The exact counts of the operations that are asked for; None of one that was not counted."""
    return {name: means.get(name, {}).get(contender) for name in only or means if name not in MODULES}


def main() -> None:
    """Count and print the table."""
    read = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    read.add_argument("results", type=Path)
    read.add_argument("--only", action="append", metavar="NAME", help="this operation; repeat it")
    read.add_argument("--count", type=int, default=200, help="calls of the shorter try")
    read.add_argument("--event", default=EVENT, help="of perf stat")
    given = read.parse_args()
    results = read_results(given.results)
    results = results.exact or results
    here = platform.release()
    contender = next((one for one in results.contenders if one.release == here), results.contenders[0])
    if given.event == EVENT and contender.release != here:
        sys.exit(
            f"{given.results} has no counts of {here}, which this machine runs: count it, or boot {contender.release}"
        )
    means = values(results, COUNTED, "instructions-mean")
    exact = chosen(means, given.only, contender.name)
    for line in table(
        ["operation", "exact, mean", f"{given.event} here", "deviation"], rows(exact, given.count, given.event)
    ):
        print(line, flush=True)


if __name__ == "__main__":
    main()
