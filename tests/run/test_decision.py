"""When a run ends of itself."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from kduel.core.experiment import Metric
from kduel.core.samples import Samples
from kduel.run.decision import Decision

COUNT = Metric("latency-p99", "us", "lower")


def blocks_of(values: list[tuple[float, float]], exact: bool = True) -> Any:
    """A decision's view of blocks with these values of two contenders, under one condition each."""

    def samples(blocks: list[int]) -> list[Samples]:
        conditions = {name: [{"plain": values[block - 1][arm]} for block in blocks] for arm, name in enumerate("ab")}
        columns: dict[str, list[float | None]] = {
            name: [one["plain"] for one in found] for name, found in conditions.items()
        }
        return [Samples(benchmark="wakeup", metric=COUNT, blocks=blocks, values=columns, conditions=conditions)]

    machine = SimpleNamespace(evidence=SimpleNamespace(varies=not exact))
    return SimpleNamespace(lock=SimpleNamespace(machine=machine), samples=samples)


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
