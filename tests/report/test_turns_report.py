"""The report of a run in turns: how it is said, and the strip that shows what the host did to all contenders alike."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from examples import simulated
from msgspec import structs

from kduel.core.results import Results
from kduel.core.slices import SliceValue
from kduel.core.turns import Turns
from kduel.report import report_format
from kduel.report.page.charts import Charts, metric_groups
from kduel.report.plots.turns import strips, turns_charts


def run(turns: Turns | None, *, sliced: bool = True) -> Results:
    """Six blocks in which the host's speed moves by 10 % from slice to slice and a boot's own noise is 0.1 %."""
    results = simulated(blocks=6, metrics=1)
    results.study.turns = turns
    metric = results.metrics[0]
    draw = np.random.default_rng(3)
    host = np.exp(draw.normal(0, 0.1, (6, 4)))
    for level, (name, column) in zip((100.0, 110.0), metric.values.items(), strict=True):
        values = level * host * np.exp(draw.normal(0, 0.001, host.shape))
        column[:] = values.mean(axis=1).tolist()
        if sliced:
            metric.slices[name] = [[SliceValue(None, value) for value in boot] for boot in values.tolist()]
    return results


def words(format_: str, results: Results) -> str:
    rendered = report_format(format_).render(results)
    text = rendered.decode() if isinstance(rendered, bytes) else rendered
    return " ".join(text.replace("&#39;", "'").split())


@pytest.mark.parametrize("format_", ["markdown", "html"])
def test_the_methods_say_how_the_contenders_shared_the_time(format_: str) -> None:
    assert "they took turns of 50 ms, and steps that cannot be held ran whole" in words(format_, run(50))
    whole = words(format_, run(0))
    assert "they took turns: each step or slice ran whole" in whole and " 0 ms" not in whole
    for turns in ("off", None):
        assert "took turns" not in words(format_, run(turns))  # type: ignore[arg-type]


def test_the_text_says_it_in_a_sentence() -> None:
    told = "The contenders of a block ran in turns"
    assert told in words("text", run(50)) and told in words("text", run(0, sliced=False))
    assert told not in words("text", run("off"))


@pytest.mark.parametrize("turns", [50, 0, "off", None])
def test_the_results_have_the_mode(turns: Turns | None) -> None:
    assert json.loads(report_format("json").render(run(turns)))["study"]["turns"] == turns


@pytest.mark.parametrize("sliced", [True, False])
def test_the_page_shows_both_contenders_and_their_ratio(sliced: bool) -> None:
    told = "Above, each against its own mean"
    results = run(50, sliced=sliced)
    assert words("html", results).count(told) == 1
    drawn = Charts(results).turns(metric_groups(results)[0])
    assert drawn.count("<svg class=") == 2
    # A dot a slice: two contenders above, one ratio below.
    assert drawn.count("h0") == (3 * 24 if sliced else 3 * 6)
    assert told not in words("html", run("off", sliced=sliced))


def test_only_what_was_measured_in_slices_has_a_strip() -> None:
    """The strip of whole trials would repeat the chart of values above it."""
    told = "Above, each against its own mean"
    for sliced, count in ((False, 1), (True, 2)):
        results = run(50)
        second = structs.replace(results.metrics[0], metric="other")
        if not sliced:
            second.slices = {}
        results.metrics.append(second)
        assert words("html", results).count(told) == count


def test_very_many_slices_are_shown_by_their_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kduel.report.page.charts.MOST_SLICES_OF_PAGE", 40)
    results = run(50)
    assert Charts(results).turns(metric_groups(results)[0]).count("h0") == 3 * 6


def test_what_the_host_does_is_in_the_values_and_not_in_the_ratio() -> None:
    metric = run(50).metrics[0]
    own, ratios = strips(
        {arm: [[one.value for one in boot] for boot in boots] for arm, boots in enumerate(metric.slices.values())}
    )
    spreads = [float(np.std([value for _, value in strip])) for strip in (own[0], own[1], ratios[1])]
    assert spreads[0] > 5 and spreads[1] > 5 and spreads[2] < 0.5
    assert all(
        math.isclose(sum(value for _, value in strip), 0, abs_tol=1e-9) for strip in (*own.values(), ratios[1])
    )


def test_a_trial_without_values_leaves_its_place_free() -> None:
    """Its partner's slices stay where they are, and have no ratio."""
    own, ratios = strips({0: [[1.0, 2.0], [], [3.0, 1.0]], 1: [[2.0, 4.0], [5.0, 5.0], [6.0, 2.0]]})
    assert [place for place, _ in own[0]] == [1, 2, 5, 6] and [place for place, _ in own[1]] == [1, 2, 3, 4, 5, 6]
    assert ratios == {1: [(1, 0.0), (2, 0.0), (5, 0.0), (6, 0.0)]}


def test_what_has_no_ratio_is_not_drawn() -> None:
    assert turns_charts([1, 2], {0: [[0.0], [0.0]], 1: [[1.0], [2.0]]}) == ""
    assert turns_charts([1], {0: [[1.0]]}) == ""
    assert turns_charts([], {0: [], 1: []}) == ""


def test_both_charts_have_one_scale() -> None:
    """A ratio that hardly moves must not look as restless as the values."""
    drawn = Charts(run(50)).turns(metric_groups(run(50))[0])
    first, second = drawn.split("</svg><svg class=")
    labels = [part.split('class="end"')[1].split("</g>")[0] for part in (first, second)]
    assert labels[0] == labels[1]
