"""Turns against one boot after the other: one kernel under two names, blocks of both kinds by turns in one run each.

    python perf/turns_gain.py [--kernel KERNEL] [--turns MS] [--load idle|busy] [--blocks N] [--out DIR]

Prints for each metric of the suite `quick` the standard deviation of the logarithm of the ratio within a block, in turns and
one boot after the other, and for the turns the times by which they were longer than wanted, and of QEMU's answers. The runs
are kept in DIR, and continued where they are incomplete.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from against_itself import load, pairs, spread, with_contenders

from kduel.core.cache import Cache
from kduel.core.progress import Progress
from kduel.core.turns import StepTurns, Turns
from kduel.run.prepare import Ready, make_ready, open_run
from kduel.run.records import Records
from kduel.run.trials import Trials
from kduel.store.collect import collect
from kduel.store.documents import read_turns
from kduel.store.rundir import RunDir
from kduel.study.file import parse_study, suite_text
from kduel.study.load import assemble


def get_ready(text: str, turns: Turns, blocks: int, cache: Cache) -> Ready:
    """A study with contenders, in so many blocks."""
    study = assemble(
        parse_study(text, "study"), text, "study", machine="qemu:accel=tcg", fixed_blocks=blocks, turns=turns
    )
    return make_ready(study, cache=cache, progress=Progress())


def measure(text: str, turns: int, kind: str, blocks: int, out: Path) -> list[RunDir]:
    """The two runs of a study, one boot after the other and in turns; the blocks of both alternate."""
    both = []
    for mode in ("off", turns):
        ready = get_ready(text, mode, blocks, Cache())
        both.append((ready, open_run(ready, out / f"{kind}-{mode}", origin="study", seed=1)))
    for block in range(1, blocks + 1):
        for ready, run in both[:: 1 if block % 2 else -1]:
            with run.at_work(), load(kind):
                records = Records(run, run.lock())
                records.put_aside_parts()
                Trials.for_run(records, Progress()).make(ready, records.missing_boots((block,)), lambda _: None)
            print(f"block {block}: {run.path}", flush=True)
    return [run for _, run in both]


def pieces(run: RunDir, turns: int) -> list[tuple[StepTurns, float]]:
    """All turns of a run that were not cut short by the step's end or prolonged by its last piece, with their lengths."""
    found = []
    for record in run.records():
        kept = read_turns(run.directory(record.id))
        for step in kept.steps.values() if kept else ():
            if step.turns > 1:
                found += [(step, length) for _, length in step.windows[:-1] if length >= turns / 1000]
    return found


def show(after: RunDir, in_turns: RunDir, turns: int) -> None:
    """Print the tables."""
    print(f"{'metric':44} {'blocks':>6} {'one after the other':>20} {f'turns of {turns} ms':>16} {'gain':>6}")
    # A metric that no trial of a run has is in its tables neither: by name, not by place.
    second_of = {f"{table.benchmark}/{table.metric.name}": table for table in collect(in_turns.path)}
    for one in collect(after.path):
        name = f"{one.benchmark}/{one.metric.name}"
        if name not in second_of:
            continue
        other = second_of[name]
        first, second = spread(one), spread(other)
        print(
            f"{name[:44]:44} {len(pairs(other)):6} {100 * first:19.2f}% {100 * second:15.2f}% {first / second:6.1f}"
        )
    found = pieces(in_turns, turns)
    if found:
        late = 1000 * np.array([length for _, length in found]) - turns
        longest = 1000 * np.array(
            [step.longest_stop_seconds for step in {id(step): step for step, _ in found}.values()]
        )
        print(
            f"{len(found)} turns, longer than wanted by: median {np.median(late):.2f} ms, p99 {np.quantile(late, 0.99):.2f} ms"
        )
        print(f"longest answer to stop of a step: median {np.median(longest):.2f} ms, largest {longest.max():.2f} ms")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", default="debian:6.12-cloud")
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--load", choices=("idle", "busy"), default="idle")
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "turns-gain")
    given = parser.parse_args()
    text = with_contenders(suite_text("quick"), given.kernel)
    show(*measure(text, given.turns, given.load, given.blocks, given.out), given.turns)


if __name__ == "__main__":
    main()
