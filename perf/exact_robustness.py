"""How far do exact counts move under what must not matter, and do verdicts flip? Counted once, and under conditions.

    python perf/exact_robustness.py [--operations a,b,...] [--only PERTURBATION]... [--out FILE.json] KERNEL KERNEL...

Boots every kernel once under each of 32 perturbations of what surrounds the operations: memory, command line, script, host
name, delays, order and number of operations, address layouts, environment, files, sysctls, a sleeping process, another
seed. In each boot every operation is counted once (`single`) and then under five conditions (`robust`: the median).
The first kernel is the baseline. Prints, as Markdown, by operation: the spread of the counts in per cent of their median,
and the verdicts that the perturbations give against the baseline. A verdict must not turn from fewer to more.
Takes about a minute a boot on a free CPU.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from msgspec import Struct, structs

from kduel.benchmarks.kbench import read_lines
from kduel.benchmarks.support.operations import OPERATIONS
from kduel.core.cache import Cache
from kduel.core.experiment import Metric, Settle
from kduel.core.progress import Progress
from kduel.core.samples import Samples
from kduel.guest.script import ScriptStep, compose
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import Rule
from kduel.machines import Trial
from kduel.run.prepare import make_ready
from kduel.study.contenders import contender_tables
from kduel.study.file import parse_study
from kduel.study.load import assemble

STUDY = """[study]
name = "robustness"
[machine]
kind = "icount"
{machine}
[blocks]
fixed = 1
[[benchmark]]
use = "kbench"
mode = "exact"
operation = {operations}
"""
COUNT = Metric("instructions", "instructions", "lower", statistic="median")


class Perturbation(Struct, frozen=True, kw_only=True):
    """What surrounds the operations, otherwise than usual."""

    machine: str = ""
    """Lines for the table [machine]."""
    before: str = ""
    """Shell lines before the first operation."""
    between: str = ""
    """The same before each operation."""
    order: Callable[[list[str]], list[str]] = list
    count: str = ""
    """For kbench: how many calls."""
    seed: int = 1
    """Of the conditions."""
    block: int = 1
    """Which address layout, where the machine has several."""
    settle: float = 3


def shuffled(seed: int) -> Callable[[list[str]], list[str]]:
    """Another order of the operations."""
    return lambda names: random.Random(seed).sample(names, len(names))


PERTURBATIONS = {
    "as usual": Perturbation(),
    "memory 640 MiB": Perturbation(machine='memory = "640M"'),
    "memory 384 MiB": Perturbation(machine='memory = "384M"'),
    "a word more on the command line": Perturbation(machine='cmdline = "kduel.unused=1"'),
    "ten words more": Perturbation(machine='cmdline = "' + " ".join(f"kduel.unused{n}=1" for n in range(10)) + '"'),
    "a comment in the script": Perturbation(before="# a comment that is read by the shell and by nobody else"),
    "another host name": Perturbation(before="hostname a-much-longer-name-of-a-host"),
    **{f"delay {ms} ms": Perturbation(between=f"usleep {ms * 1000}") for ms in (1, 2, 3, 5, 10)},
    "reverse order": Perturbation(order=lambda names: names[::-1]),
    "shuffled, 1": Perturbation(order=shuffled(1)),
    "shuffled, 2": Perturbation(order=shuffled(2)),
    "few calls": Perturbation(count="--count 12"),
    "many calls": Perturbation(count="--count 400"),
    "each operation twice": Perturbation(order=lambda names: [name for each in names for name in (each, each)]),
    "half of the operations": Perturbation(order=lambda names: names[::2]),
    **{f"layout {n}": Perturbation(machine="layouts = 3", block=n) for n in (1, 2, 3)},
    "20 variables more": Perturbation(before="\n".join(f"export PADDING{n}=xxxxxxxxxxxxxxxx" for n in range(20))),
    "one variable more": Perturbation(before="export PADDING=x"),
    "3 MB in a file": Perturbation(before="head -c 3000000 /dev/zero >/tmp/three"),
    "2,000 empty files": Perturbation(before="for n in $(seq 2000); do : >/tmp/empty.$n; done"),
    "another sysctl": Perturbation(before="echo 5 >/proc/sys/kernel/panic_on_warn 2>/dev/null || :"),
    "a sleeping process": Perturbation(before="sleep 1000 &"),
    "settled for 4 s": Perturbation(settle=4),
    "another seed": Perturbation(seed=2),
    "a third seed": Perturbation(seed=3),
    "20 processes started before": Perturbation(before="for n in $(seq 20); do /bin/busybox true; done"),
}


class Counts(Struct):
    """One kernel under one perturbation, by operation."""

    single: dict[str, float] = {}
    robust: dict[str, dict[str, float]] = {}
    """By condition."""


def count(kernels: list[str], which: str, operations: list[str], cache: Cache) -> dict[str, Counts]:
    """Boot each kernel once."""
    chosen = PERTURBATIONS[which]
    text = STUDY.format(machine=chosen.machine, operations=json.dumps(operations)) + contender_tables(
        kernels, len(set(kernels)) < len(kernels)
    )
    ready = make_ready(assemble(parse_study(text, which), text, which), cache=cache, progress=Progress())
    order = chosen.order(operations)
    lines = [chosen.before]
    for way, words in (("single", ""), ("robust", f"--conditions 5 --seed {chosen.seed}")):
        for name in order:
            lines += [
                chosen.between,
                f'"$KDUEL_PROGRAMS/kbench" --exact {words} {chosen.count} {name} >"$KDUEL_STEP/{way}-{name}" || :',
            ]
    part = ScriptStep(label="all", script="\n".join(filter(None, lines)), timeout=3600)
    script = compose([part], settle=Settle(mode="fixed", seconds=chosen.settle))
    found = {}
    for arm in ready.arms:
        with tempfile.TemporaryDirectory() as place:
            trial = Trial(id="x", arm=arm, script=script, deadline=3600, into=Path(place), block=chosen.block)
            outcome = ready.machine.boot_once(trial)
            if outcome.void:
                sys.exit(f"{arm.contender.name}, {which}: {outcome.void}: {outcome.message}")
            counts = Counts(single={}, robust={})
            for name in dict.fromkeys(order):
                single, robust = (
                    [
                        line
                        for line in read_lines((Path(place) / "01-all" / f"{way}-{name}").read_text())
                        if not line.situation
                    ]
                    for way in ("single", "robust")
                )
                counts.single[name] = single[0].median
                counts.robust[name] = {
                    str(line.condition.number if line.condition else 0): line.median for line in robust
                }
            found[arm.contender.name] = counts
        print(f"{which}: {arm.contender.name}", file=sys.stderr, flush=True)
    return found


def verdict(before: dict[str, float], after: dict[str, float]) -> str:
    """What the rule calls one perturbation's counts."""
    table = Samples(
        benchmark="x",
        metric=COUNT,
        primary=True,
        counted=True,
        blocks=[1],
        values={"a": [median(before.values())], "b": [median(after.values())]},
        conditions={"a": [before], "b": [after]} if len(before) > 1 else {},
    )
    (result,) = judge([table], Rule.fixed_blocks(1))
    return "same" if result.verdict in ("equal", "equivalent") or result.below_delta else result.word


def spread(values: list[float]) -> float:
    """Largest less smallest, in per cent of the median."""
    return 100 * (max(values) - min(values)) / median(values)


def report(found: dict[str, dict[str, Counts]], kernels: list[str]) -> None:
    """Markdown on standard output: a table for each kernel but the first."""
    baseline = kernels[0]
    for kernel in kernels[1:]:
        print(f"\n{kernel} against {baseline}, {len(found)} perturbations\n")
        print(
            "| operation | spread of the count, once | under conditions | difference, once | under conditions | verdicts, once | under conditions |"
        )
        print("|---|---:|---:|---:|---:|---|---|")
        flips = [0, 0]
        operations = {name: None for each in found.values() for name in each[kernel].single}
        for name in operations:
            cells: dict[str, list[list[float]]] = defaultdict(lambda: [[], []])
            verdicts: list[dict[str, int]] = [{}, {}]
            for each in found.values():
                if name not in each[kernel].single:
                    continue
                for index, (a, b) in enumerate(
                    (
                        ({"0": each[baseline].single[name]}, {"0": each[kernel].single[name]}),
                        (each[baseline].robust[name], each[kernel].robust[name]),
                    )
                ):
                    other = median(b.values())
                    cells["count"][index].append(other)
                    cells["difference"][index].append(
                        100 * median((b[key] - a[key]) / a[key] for key in a if key in b)
                    )
                    word = verdict(a, b)
                    verdicts[index][word] = verdicts[index].get(word, 0) + 1
            for index in (0, 1):
                flips[index] += {"fewer", "more"} <= verdicts[index].keys()
            counts = [f"{spread(values):.2f} %" for values in cells["count"]]
            differences = [f"{min(values):+.2f} to {max(values):+.2f} %" for values in cells["difference"]]
            words = [", ".join(f"{word} {times}" for word, times in sorted(each.items())) for each in verdicts]
            print(f"| {name} | " + " | ".join([*counts, *differences, *words]) + " |")
        print(f"\nOperations whose verdict turns: counted once {flips[0]}, under conditions {flips[1]}.")


def main() -> None:
    read = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    read.add_argument("kernels", nargs="*", default=[f"debian:{v}-cloud" for v in ("5.10", "6.1", "6.12", "7")])
    read.add_argument("--operations", default=",".join(OPERATIONS[1:]))
    read.add_argument(
        "--only", action="append", choices=list(PERTURBATIONS), metavar="NAME", help="Only this one; repeat it."
    )
    read.add_argument("--out", type=Path, help="Keep the counts there, and go on from what is there.")
    given = read.parse_args()
    cache, found = Cache(), {}
    if given.out and given.out.is_file():
        found = {
            which: {kernel: Counts(**counts) for kernel, counts in each.items()}
            for which, each in json.loads(given.out.read_text()).items()
        }
    for which in given.only or PERTURBATIONS:
        if which in found:
            continue
        found[which] = count(given.kernels, which, given.operations.split(","), cache)
        if given.out:
            kept = {
                one: {name: structs.asdict(counts) for name, counts in each.items()} for one, each in found.items()
            }
            given.out.write_text(json.dumps(kept))
    names = list(next(iter(found.values())))
    report(found, names)


if __name__ == "__main__":
    main()
