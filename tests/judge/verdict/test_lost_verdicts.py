"""A verdict of an earlier look that the data contradict, or that missing trials forbid: no promise and no denial beside it."""

from __future__ import annotations

import numpy as np
import pytest

from kduel.core.experiment import Metric
from kduel.core.metric_results import MetricResult
from kduel.core.samples import Samples
from kduel.judge.verdict.classify import ABOVE, BELOW, WITHIN, deciding_half
from kduel.judge.verdict.futility import futile
from kduel.judge.verdict.headline import headline
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import Rule

RULE = Rule.of_edition(2, max_blocks=40)


def drifting(*shifts: tuple[int, float], seed: int = 3) -> Samples:
    """So many blocks with each shift (a share), one after another."""
    draw = np.random.default_rng(seed)
    steps = np.concatenate([np.full(count, shift) for count, shift in shifts])
    before = 100 * (1 + 0.002 * draw.standard_normal(steps.size))
    after = 100 * (1 + steps + 0.002 * draw.standard_normal(steps.size))
    return Samples(
        benchmark="job",
        metric=Metric("time", "s", "lower"),
        primary=True,
        blocks=list(range(1, steps.size + 1)),
        values={"a": before.tolist(), "b": after.tolist()},
    )


def only(samples: Samples, rule: Rule = RULE) -> MetricResult:
    (found,) = judge([samples], rule)
    return found


def test_data_that_contradict_an_earlier_verdict_promise_nothing() -> None:
    samples = drifting((10, 0.0), (20, 0.05))
    found = only(samples)
    assert (found.verdict, found.former_verdict, found.contradicted) == ("undecided", "equivalent", True)
    assert found.ci_low_pct is not None and found.ci_low_pct > 0
    assert found.blocks_more is None and "more block" not in found.told and "a new run" in found.told
    said = headline([found], "a", "b", "primary metric", 1.0)
    assert "cannot distinguish" not in said and "a new run" in said
    (hopeless,) = futile([samples], RULE)
    assert hopeless.contradicted and hopeless.chance < 0.05


def test_a_lost_verdict_comes_back_on_its_own_side_only() -> None:
    """The estimate of blocks is for that side: the other one was about one block for ever."""
    found = only(drifting((8, -0.012), (9, 0.016)))
    assert (found.verdict, found.former_verdict, found.contradicted) == ("undecided", "faster", False)
    assert found.effect_pct is not None and found.effect_pct > 0 and found.blocks_more is None


@pytest.mark.parametrize(("side", "half"), [(ABOVE, 0.3), (BELOW, -0.3), (WITHIN, 0.7)])
def test_the_half_width_that_decides_as_one_side_only(side: int, half: float) -> None:
    assert deciding_half(0.3, 1.0, side) == (pytest.approx(half), side)


def test_a_verdict_that_voids_forbid_promises_nothing() -> None:
    samples = drifting((12, -0.05))
    samples.values["b"][3] = samples.values["b"][5] = samples.values["b"][7] = None
    found = only(samples)
    assert found.verdict == "undecided" and found.withheld
    assert found.blocks_more is None and "more block" not in found.told
