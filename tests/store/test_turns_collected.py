"""The record of turns in a run's samples: by step, contender and block, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from lint_runs import table as lint_table
from msgspec import structs
from taken_turns import in_turns, turns_of, with_slices

from kduel.core.experiment import RESOLUTION
from kduel.core.samples import SECONDS, Samples
from kduel.core.turns import TURNS_FILE, TrialTurns
from kduel.judge.pooled import join
from kduel.store.collect import Collector, collect, step_directory
from kduel.store.integrity import trials_of
from kduel.store.rundir import RunDir


def test_each_table_has_the_turns_of_its_step(unpack: Callable[[str], Path]) -> None:
    run = RunDir.open(unpack("qemu"))
    assert all(table.turns == {} for table in collect(run.path)), "a run of one boot after the other has none"
    lock = run.lock()
    records = trials_of(run, lock)
    collector = Collector(run, lock)
    for record in records:
        steps = {
            step_directory(Path(), index, step.label).name: turns_of(record.position, float(index))
            for index, step in enumerate(lock.steps)
        }
        if record.position == 0:
            steps.popitem()
        told = TrialTurns(turns_ms=50, partners=[], place=1, steps=steps)
        (run.directory(record.id) / TURNS_FILE).write_bytes(msgspec.json.encode(told))
        collector.add(record)
    first = records[0]
    *others, last = lock.steps
    for table in collector.samples():
        place = table.blocks.index(first.block)
        (begin,) = {index for index, step in enumerate(lock.steps) if step.label == table.benchmark}
        found = table.turns.get(first.contender, [[]] * (place + 1))[place]
        assert found == ([] if table.benchmark == last.label else [turns_of(0, float(begin))])
        for record in records[1:]:
            assert table.turns[record.contender][table.blocks.index(record.block)] == [
                turns_of(record.position, float(begin))
            ]
    assert others, "one step is recorded, one is not"


def test_times_are_resolved_as_in_the_trial_that_resolves_least(unpack: Callable[[str], Path]) -> None:
    """Of several exact CPUs one may have been behind in a trial: no smaller difference in time is called then."""
    run = RunDir.open(unpack("qemu"))
    lock = run.lock()
    lock.machine.facts[RESOLUTION] = 40_000
    for told, resolved in ((0, 40e-6), (120_000, 120e-6)):
        collector = Collector(run, lock)
        for record in trials_of(run, lock):
            collector.add(structs.replace(record, facts={RESOLUTION: told} if record.position == 1 else {}))
        of_times: set[float] = set()
        of_others: set[float] = set()
        for table in collector.samples():
            unit = SECONDS.get(table.metric.unit)
            (of_others if unit is None else of_times).add(table.resolution * (unit or 1))
        assert sorted(of_times) == [pytest.approx(resolved)] * len(of_times) != [] and of_others <= {0}


def test_a_merged_run_keeps_the_turns_of_all_its_parts() -> None:
    """A block in which a part's step was never recorded has none."""
    tables = [in_turns(lint_table([1.0] * blocks, [2.0] * blocks)) for blocks in (2, 3)]
    tables[1].turns["new"][1] = []
    joined = joined_of(tables)
    assert [len(turns) for turns in joined.turns["new"]] == [4, 4, 4, 0, 4]
    assert joined.turns["old"] == tables[0].turns["old"] + tables[1].turns["old"]


def test_a_merged_run_keeps_the_details_of_all_its_parts() -> None:
    """It had the slices, the printed figures and the work of its first part alone, though lists run parallel to all blocks."""
    draw = np.random.default_rng(1)
    plain = [lint_table([1.0] * blocks, [2.0] * blocks) for blocks in (2, 3, 1)]
    tables = [with_slices(table, draw, own=0.1, shared=0.1, slices=2) for table in plain[:2]] + plain[2:]
    tables[1].printed = {name: [7.0] * 3 for name in ("old", "new")}
    tables[0].work = {"new": {"sleeps": 1.0}}
    tables[1].work = {"old": {"sleeps": 2.0}, "new": {"sleeps": 3.0}}
    joined = joined_of(tables)
    for name in ("old", "new"):
        assert joined.slices[name] == [*tables[0].slices[name], *tables[1].slices[name], []]
        assert joined.printed[name] == [None, None, 7.0, 7.0, 7.0, None]
    assert joined.work == {"old": {"sleeps": 2.0}, "new": {"sleeps": 1.0}}


def joined_of(tables: list[Samples]) -> Samples:
    parts: list[Any] = [
        SimpleNamespace(name="part", samples=[one], machine=name) for one, name in zip(tables, "abc", strict=False)
    ]
    return join((tables[0].benchmark, tables[0].metric), parts)
