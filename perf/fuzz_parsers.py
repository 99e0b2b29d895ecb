"""Fuzzes every parser of a benchmark and every importer, plug-ins of others included: the long form of the tests.

    python perf/fuzz_parsers.py [--mutations 10000] [--seed 1] [--jobs 2] [NAME...]

Mutates the captured outputs (tests/benchmarks/captured) and the importers' samples (tests/store/imported/fixtures), which a
new benchmark or importer brings with it, and holds the properties of tests/support/fuzzing.py against what comes
out. Then times each parser on swollen outputs of two sizes: the time must grow as the size does, not as its square.
Prints a table; status 1 where anything was found, with the first of each kind.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests/support")]

SIZES = (250_000, 1_000_000)
SWOLLEN = 30
"""Swollen outputs a parser."""
SLOWER = 8.0
"""Times as long for four times as much: 4 would be linear, 16 a square. Below QUICK seconds nothing is said."""
QUICK = 0.25


class Count(NamedTuple):
    """What came of one parser."""

    name: str
    samples: int
    mutations: int
    refused: int
    same: int
    changed: int
    findings: int
    seconds: float
    slowest: float
    shown: list[str]


def targets() -> dict[str, list[Any]]:
    """All samples, by parser."""
    from benchmark_cases import GOOD
    from import_cases import SAMPLES

    found: dict[str, list[Any]] = {}
    for case in GOOD:
        found.setdefault(case.benchmark.name, []).append(case)
    for sample in SAMPLES:
        found.setdefault(f"import {sample.format.name}", []).append(sample)
    return found


def fuzz(name: str, mutations: int, seed: int) -> Count:
    from fuzzing import examine, mutate

    cases = targets()[name]
    source = random.Random(f"{seed} {name}")
    outcomes: Counter[str] = Counter()
    shown: dict[str, str] = {}
    began = time.process_time()
    for _ in range(mutations):
        case = source.choice(cases)
        mutation = mutate(case, source, source.choice(cases))
        fault, values = examine(case, mutation)
        if fault:
            outcomes["finding"] += 1
            shown.setdefault(f"{mutation.kind}: {fault[:25]}", f"{case}, {mutation.kind}: {fault}")
            continue
        outcomes["refused" if values is None else "same" if values == case.whole else "changed"] += 1
    took = time.process_time() - began
    slowest = 0.0
    for _ in range(SWOLLEN if mutations else 0):
        case = source.choice(cases)
        small, large = time_twice(case, source)
        slowest = max(slowest, large)
        if large > QUICK and large > SLOWER * small:
            outcomes["finding"] += 1
            shown["time"] = f"{case}: {small:.2f} s for {SIZES[0]:,} characters, {large:.2f} s for {SIZES[1]:,}"
    return Count(
        name, len(cases), mutations, outcomes["refused"], outcomes["same"], outcomes["changed"], outcomes["finding"],
        took, slowest, list(shown.values()),
    )  # fmt: skip


def time_twice(case: Any, source: random.Random) -> tuple[float, float]:
    """CPU seconds for one swollen output of both sizes."""
    from fuzzing import swollen

    name = source.choice([name for name, text in case.texts.items() if text])
    state = source.getstate()
    took = []
    for size in SIZES:
        source.setstate(state)
        texts = case.texts | {name: swollen(case.texts[name], source, size)}
        times = []
        for _ in range(2):
            began = time.process_time()
            case.outcome(texts)
            times.append(time.process_time() - began)
        took.append(min(times))
    return took[0], took[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--mutations", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("names", nargs="*", metavar="NAME")
    given = parser.parse_args()
    names = given.names or list(targets())
    print(
        f"{'parser':<26}{'samples':>8}{'mutations':>10}{'refused':>9}{'same':>7}{'changed':>8}{'found':>6}{'CPU s':>8}{'1 MB':>7}"
    )
    found: list[str] = []
    with ProcessPoolExecutor(given.jobs) as pool:
        for count in pool.map(fuzz, names, [given.mutations] * len(names), [given.seed] * len(names)):
            print(
                f"{count.name:<26}{count.samples:>8}{count.mutations:>10,}{count.refused:>9,}{count.same:>7,}"
                f"{count.changed:>8,}{count.findings:>6}{count.seconds:>8.1f}{count.slowest:>7.2f}",
                flush=True,
            )
            found += count.shown
    for line in found:
        print(repr(line)[1:-1])
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
