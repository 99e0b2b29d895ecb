"""When a run ends of itself."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from kduel.core.experiment import Metric
from kduel.core.samples import Samples
from kduel.judge.verdict.judge import judge_primary
from kduel.judge.verdict.rule import Rule
from kduel.run.decision import Decision
from kduel.run.records import Records
from kduel.store.documents import TrialRecord
from kduel.study.plan import PlannedTrial

COUNT = Metric("latency-p99", "us", "lower")


def blocks_of(values: list[tuple[float, float]], exact: bool = True) -> Any:
    """A decision's view of blocks with these values of two contenders, under one condition each."""

    def samples(blocks: list[int]) -> list[Samples]:
        conditions = {name: [{"plain": values[block - 1][arm]} for block in blocks] for arm, name in enumerate("ab")}
        columns: dict[str, list[float | None]] = {
            name: [one["plain"] for one in found] for name, found in conditions.items()
        }
        return [Samples(benchmark="wakeup", metric=COUNT, blocks=blocks, values=columns, conditions=conditions)]

    machine = SimpleNamespace(evidence=SimpleNamespace(varies=not exact), resolution=0.0)
    records = SimpleNamespace(excluded_contenders=set)
    rule = Rule.of_edition(2, max_blocks=20)
    return SimpleNamespace(lock=SimpleNamespace(machine=machine), samples=samples, records=records, rule=rule)


@pytest.mark.parametrize(
    ("values", "exact", "expected"),
    [
        ([(1.0, 2.0)], True, False),
        ([(1.0, 2.0), (1.0, 2.0)], True, True),
        ([(1.0, 2.0), (1.0, 2.5)], True, False),
        ([(1.0, 2.0), (3.0, 2.5), (3.0, 2.5)], True, True),
        ([(1.0, 2.0), (1.0, 2.0)], False, False),
    ],
)
def test_an_exact_machine_that_repeats_itself_has_no_more_to_say(
    values: list[tuple[float, float]], exact: bool, expected: bool
) -> None:
    assert Decision.repeats(blocks_of(values, exact), list(range(1, len(values) + 1))) is expected


@pytest.mark.parametrize(("fixed", "expected"), [(None, True), (20, False)])
def test_a_run_that_repeats_itself_is_over_unless_its_blocks_are_fixed(fixed: int | None, expected: bool) -> None:
    view = blocks_of([(1.0, 2.0), (1.0, 2.0)])
    view.lock.blocks, view.lock.steps = SimpleNamespace(fixed=fixed), [SimpleNamespace(primary=["latency-p99"])]
    view.complete_blocks, view.repeats = lambda: [1, 2], partial(Decision.repeats, view)
    assert Decision.is_finished(view) is expected


def planned(block: int) -> list[PlannedTrial]:
    """A boot of a block, with all steps in an order of its own."""
    return [PlannedTrial(id=f"t{block}", block=block, position=block - 1, contender="a", boot=block, steps=[2, 0, 1])]


@pytest.mark.parametrize(
    ("block", "there", "open_", "expected"),
    [
        (1, {}, [0], [2, 0, 1]),
        (2, {1: [2, 0, 1]}, [0, 2], [2, 0]),
        (3, {1: [2, 0, 1], 2: [2, 0]}, [2], [2]),
        # Another contender's trial of the block is there: both run the same.
        (3, {1: [2, 0, 1], 2: [2, 0], 3: [0]}, [2], [0]),
        (2, {1: [2, 0, 1]}, [], [2, 0, 1]),
    ],
)
def test_a_block_counts_what_those_before_left_open(
    block: int, there: dict[int, list[int]], open_: list[int], expected: list[int]
) -> None:
    """From the second on; the first counts everything."""
    records = {str(number): SimpleNamespace(block=number, steps=steps) for number, steps in there.items()}
    asked: list[list[int]] = []
    view: Any = SimpleNamespace(
        counts_by_need=True, records=SimpleNamespace(by_id=records), complete_blocks=lambda: [1, 2, 3, 4],
        open_steps=lambda blocks: asked.append(blocks) or open_,
    )  # fmt: skip
    assert [one.steps for one in Decision.select_open_steps(view, planned(block))] == [expected]
    assert asked in ([], [list(range(1, block))])


def test_the_last_block_of_a_plan_counts() -> None:
    view: Any = SimpleNamespace(plan=[*planned(1), *planned(2)], has_block=bool)
    assert Records.leading_blocks(view) == [1, 2]
    view.has_block = {2}.__contains__
    assert Records.leading_blocks(view) == []


@pytest.mark.parametrize(
    ("out", "expected"), [(["b"], {"b"}), (["b", "c"], set()), (["a", "b"], {"b"}), (["a"], set())]
)
def test_never_are_all_contenders_but_the_baseline_left_out(out: list[str], expected: set[str]) -> None:
    """Then nothing would be left to compare: the run ends instead."""
    contenders = [SimpleNamespace(name=name) for name in "abc"]
    view: Any = SimpleNamespace(lock=SimpleNamespace(contenders=contenders), unmeasurable=out)
    assert Records.excluded_contenders(view) == expected


def test_a_block_in_turns_of_which_a_trial_is_missing_is_made_again_as_a_whole() -> None:
    there = {
        f"{block}-{name}": TrialRecord(id=f"{block}-{name}", block=block, position=0, contender=name, status="ok")
        for block, name in ((1, "a"), (1, "b"), (2, "a"))
    }
    aside: list[tuple[str, str]] = []
    view: Any = SimpleNamespace(
        by_id=dict(there), lock=SimpleNamespace(blocks=SimpleNamespace(in_turns=True)),
        in_block={1: 2, 2: 1}, has_block=lambda block: block == 1,
        run=SimpleNamespace(directory=str, put_aside=lambda place, record: aside.append((place, record.void.code))),
    )  # fmt: skip
    Records.put_aside_parts(view)
    assert aside == [("2-a", "block-interrupted")] and [*view.by_id] == ["1-a", "1-b"] and view.in_block == {1: 2}


@pytest.mark.parametrize(
    ("values", "resolution", "over"),
    [
        ([(1.0, 2.0), (2.0, 1.0)], 40e-6, True),
        ([(1.0, 2.0), (2.0, 1.0)], 0.0, False),
        ([(1.0, 2.0), (1.0, 3.0)], 40e-6, True),
    ],
)
def test_exact_cpus_stop_at_what_depends_on_conditions(
    values: list[tuple[float, float]], resolution: float, over: bool
) -> None:
    """A further block has other conditions, and cannot take a sign back; where operations are counted it is cheap."""
    view = blocks_of(values)
    view.lock.machine.resolution = resolution
    view.lock.blocks, view.lock.steps = SimpleNamespace(fixed=None), [SimpleNamespace(primary=["latency-p99"])]
    view.complete_blocks, view.repeats = lambda: [1, 2], partial(Decision.repeats, view)
    plain = view.samples
    view.samples = lambda blocks: [structs.replace(one, primary=True, counted=True) for one in plain(blocks)]
    view.judge_primary = lambda: judge_primary(view.samples([1, 2]), view.rule)
    assert Decision.is_finished(view) is over


@pytest.mark.parametrize(("conditions", "over"), [(False, True), (True, False)])
def test_exact_cpus_stop_at_what_has_no_conditions(conditions: bool, over: bool) -> None:
    """A further block repeats it."""
    view = blocks_of([(1.0, 2.0)])
    view.lock.machine.resolution = 40e-6
    view.lock.blocks, view.lock.steps = (
        SimpleNamespace(fixed=None),
        [SimpleNamespace(primary=["latency-p99"], label="wakeup")],
    )
    view.complete_blocks, view.repeats = lambda: [1], partial(Decision.repeats, view)
    plain = view.samples

    def samples(blocks: list[int]) -> list[Samples]:
        more = {} if conditions else {"conditions": {}}
        return [structs.replace(one, primary=True, counted=True, scheduled=True, **more) for one in plain(blocks)]

    view.samples = samples
    view.judge_primary = lambda: judge_primary(samples([1]), view.rule)
    assert Decision.is_finished(view) is over
    assert Decision.open_steps(view, [1]) == ([] if over else [0])
