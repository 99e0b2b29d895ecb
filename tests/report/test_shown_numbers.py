"""Numbers as reports show them: a bound that decides is not rounded to nothing, a huge number is no line of digits."""

from __future__ import annotations

import re

import numpy as np
import pytest
from examples import simulated
from msgspec import structs

from kduel.core.experiment import Metric
from kduel.core.format import effect, interval_text, means, share_text, shown_unit, signed_number
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


@pytest.mark.parametrize(
    ("before", "after", "shown", "change"),
    [
        (6334.125, 6706.25, ("6,334", "6,706"), "+372 (+5.87 %)"),
        (378.5, 373.5, ("379", "374"), "−5 (−1.32 %)"),
        (1000.4, 1200.8, ("1,000", "1,201"), "+201 (+20.0 %)"),
        (378.2, 378.4, ("378.2", "378.4"), "+0.2 (+0.0529 %)"),
    ],
)
def test_instructions_have_no_fraction_unless_the_change_is_one(
    before: float, after: float, shown: tuple[str, str], change: str
) -> None:
    found, lines = (result([before], [after], unit) for unit in ("instructions", "lines"))
    for one in (found, lines):
        one.scale, one.effect = "exact", after - before
    assert found.mean == after and means(found) == shown and effect(found) == change
    assert "." in "".join(means(lines))


@pytest.mark.parametrize(
    ("values", "unit", "shown"),
    [
        ([1_514_035.0, 1_283_411.0, 1_746_120.0], "ns", ("1.51 ± 0.23", "ms")),
        ([0.0231, 0.0239, 0.0248], "s", ("23.93 ± 0.85", "ms")),
        ([1400.0, 1500.0, 1600.0], "s", ("1,500 ± 100", "s")),
        ([0.0004, 0.0005, 0.00061], "us", ("0.50 ± 0.11", "ns")),
        ([242_340.0, 203_600.0, 281_080.0], "events/s", ("242,000 ± 39,000", "events/s")),
    ],
)
def test_means_are_in_the_unit_and_to_the_digits_that_can_be_read(
    values: list[float], unit: str, shown: tuple[str, str]
) -> None:
    found = result(values, [value * 0.99 for value in values], unit)
    assert (means(found)[0], shown_unit(found)) == shown
    assert found.unit == unit and found.baseline_mean == pytest.approx(np.mean(values))


@pytest.mark.parametrize("form", ["text", "markdown", "mail", "summary", "latex", "html"])
def test_every_format_names_the_unit_in_which_it_shows_the_means(form: str) -> None:
    found = simulated(metrics=1)
    table = result([1_514_035.0, 1_283_411.0, 1_746_120.0], [1_414_035.0, 1_183_411.0, 1_646_120.0])
    one = found.metrics[0]
    found.metrics = [structs.replace(table, benchmark="pipe", baseline=one.baseline, contender=one.contender)]
    text = report_format(form).render(found)
    assert "1.51" in text and re.search(r"ms, lower is better|\(ms\)|\(ms\\\(", text)


@pytest.mark.parametrize("form", ["text", "markdown", "mail", "summary"])
def test_a_single_trial_shows_its_values_and_no_dash(form: str) -> None:
    found = simulated(metrics=1, blocks=1)
    one = found.metrics[0]
    one.effect = one.effect_pct = None
    text = report_format(form).render(found)
    assert one.n == 1 and one.mean and one.baseline_mean
    assert f"{abs(100 * (one.mean / one.baseline_mean - 1)):.2f}"[:3] in text
    assert all(bare not in text for bare in ("| – |", " – ", "interval  "))
    assert not re.search(r"\bn\b +(\| )?notes", text)
    # With a second block there are both columns again.
    text = report_format(form).render(simulated(metrics=1, blocks=3))
    assert form == "summary" or re.search(r"interval.*\bn +(\| )?notes", text)


def test_a_virtual_time_has_three_digits_its_unit_and_a_change_in_per_cent() -> None:
    """0.01659725 s against 0.01818853 s was to be read, where differences of less than 40 us are not resolved."""
    found = result([298.6], [1242.75], "us")
    found.scale, found.effect = "exact", 944.15
    assert (means(found), shown_unit(found), effect(found)) == (("0.299", "1.24"), "ms", "+316 %")
