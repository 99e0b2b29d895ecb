"""Numbers as reports show them: a bound that decides is not rounded to nothing, a huge number is no line of digits."""

from __future__ import annotations

import numpy as np
import pytest
from examples import simulated
from msgspec import structs

from kduel.core.experiment import Metric
from kduel.core.format import effect, interval_text, share_text, signed_number
from kduel.core.metric_results import MetricResult
from kduel.core.samples import Samples
from kduel.judge.verdict.headline import headline
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.unpaired import judge_unpaired
from kduel.report import report_format


def result(old: list[float], new: list[float], unit: str = "ns", *, exact: bool = False) -> MetricResult:
    values: dict[str, list[float | None]] = {"old": [*old], "new": [*new]}
    table = Samples(
        benchmark="b",
        metric=Metric(name="m", unit=unit, better="lower", exact=exact),
        primary=True,
        paired=False,
        blocks=list(range(len(old))),
        values=values,
    )
    (found,) = judge_unpaired([table], Rule.of_edition(1))
    return found


def between(low: float, high: float) -> MetricResult:
    found = result([1.0, 2.0, 1.5], [1.1, 2.2, 1.6])
    found.effect_pct, found.ci_low_pct, found.ci_high_pct = (low + high) / 2, low, high
    return found


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.036, 3.32, "+0.04 to +3.3 %"),
        (-3.32, -0.036, "−3.3 to −0.04 %"),
        (0.0000123, 3.32, "+0.00001 to +3.3 %"),
        (-0.036, 3.32, "0.0 to +3.3 %"),
        (0.6, 3.6, "+0.6 to +3.6 %"),
        (0.0, 3.32, "0.0 to +3.3 %"),
    ],
)
def test_a_bound_that_excludes_nothing_is_not_shown_as_nothing(low: float, high: float, text: str) -> None:
    assert interval_text(between(low, high)) == text


def test_plain_lines_show_it_too() -> None:
    from kduel.report.content.overview import interval_words

    assert interval_words(between(0.0036, 3.32)) == "+0.004 to +3.32 %"


@pytest.mark.parametrize(("count", "text"), [(10, "26 %"), (100, "3 %"), (1000, "0.3 %"), (20_000, "0.01 %")])
def test_the_share_of_an_unseen_mode_is_never_nothing(count: int, text: str) -> None:
    rng = np.random.default_rng(1)
    found = result(*rng.normal(100, 0.1, (2, count)).tolist())
    assert found.verdict == "equivalent"
    assert f"a slow mode in up to {text} of boots" in headline([found], "old", "new", "metric", 1.0)
    assert f"a slow mode in up to {text} of trials" in found.told
    assert share_text(0.0) == "0 %"


def test_huge_numbers_are_in_scientific_notation() -> None:
    found = result([-1e140, 1e140, -1e140, 1e140, 1.0, 2.0], [1e140, 1e140, 2.0, 3.0, 2.5, 2.5])
    assert effect(found) == "+3.333e+139 ns"
    assert len(interval_text(found)) < 40 and "e+139 to +" in interval_text(found)
    assert signed_number(9_007_199_254_740_992.0, 0) == "+9,007,199,254,740,992"


@pytest.mark.parametrize("unit", ["ns", "events/s", "MB/sec", "fps", "requests/min", "IOPS"])
def test_what_is_measured_is_not_exact_because_it_never_varies(unit: str) -> None:
    found = result([5.0] * 8, [6.0] * 8, unit)
    assert found.verdict == "undecided" and "no value varies" in found.told
    assert result([5.0] * 8, [6.0] * 8, "switches").scale == "exact"


def test_a_change_from_0_is_shown_in_its_unit() -> None:
    found = result([0.0] * 8, [1.0] * 8)
    assert (found.verdict, found.scale, effect(found), interval_text(found)) == (
        "undecided",
        "difference",
        "+1 ns",
        "–",
    )


@pytest.mark.parametrize("form", ["text", "markdown", "html", "mail", "summary"])
def test_means_that_differ_the_other_way_than_the_change_are_explained(form: str) -> None:
    found = simulated(metrics=2)
    before, after = [100.0, 100.0, 400.0, 100.0, 100.0], [110.0, 110.0, 330.0, 110.0, 110.0]
    found.metrics[0] = structs.replace(
        result(before, after),
        benchmark="pipe",
        baseline=found.metrics[0].baseline,
        contender=found.metrics[0].contender,
    )
    one = found.metrics[0]
    assert effect(one).startswith("+") and one.mean is not None and one.baseline_mean is not None
    assert one.mean < one.baseline_mean
    words = " ".join(report_format(form).render(found).split())
    assert words.count("the means beside the change differ the other way, as they are arithmetic") == 1
    assert "pipe/m: the means beside" in words
    one.mean = one.baseline_mean
    assert "differ the other way" not in report_format(form).render(found)
