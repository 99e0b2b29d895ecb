"""The ranking in every format that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages import KINDS

from kduel.core.experiment import Aspect
from kduel.core.metric_results import AspectRanking, MetricResult, Rank
from kduel.report import report_format
from kduel.report.content.ranking import ranking_rows, ranking_title


def aspect_of(low: float, effect: float, high: float, aspect: Aspect = "throughput") -> AspectRanking:
    result = MetricResult(
        benchmark=aspect, metric="geometric mean", unit="", better="higher", role="exploratory", baseline="a", contender="b", n=9,
        baseline_mean=1, baseline_sd=0, mean=1, sd=0, effect_pct=effect, ci_low_pct=low, ci_high_pct=high, verdict="faster",
    )  # fmt: skip
    ranks = [
        Rank(contender="b", first=1, last=1),
        Rank(contender="a", first=2, last=3),
        Rank(contender="c", first=None, last=None, reason="why"),
    ]
    return AspectRanking(
        aspect=aspect,
        metrics=["x/rate", "y/rate"],
        left_out=["z/rate"],
        ranks=ranks,
        results=[result, *no_result("c")],
    )


def no_result(contender: str) -> list[MetricResult]:
    return [
        MetricResult(
            benchmark="", metric="", unit="", better="higher", role="exploratory", baseline="a", contender=contender, n=0,
            baseline_mean=None, baseline_sd=None, mean=None, sd=None, effect_pct=None, ci_low_pct=None, ci_high_pct=None,
            verdict="undecided",
        )
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("low", "effect", "high", "said"),
    [
        (5.2, 6.9, 8.7, "1.069 times as fast (1.052 to 1.087)"),
        (50.0, 100.0, 150.0, "2.00 times as fast (1.50 to 2.50)"),
        (-9.5, -8.0, -6.5, "0.920 times as fast (0.905 to 0.935)"),
        (0.001, 0.4, 0.8, "1.00400 times as fast (1.00001 to 1.00800)"),
        (-80.0, -20.0, 220.0, "0.80 times as fast (0.20 to 3.20)"),
    ],
)
def test_a_change_in_multiples_of_the_baseline(low: float, effect: float, high: float, said: str) -> None:
    """An end that is not 1 is not shown as 1."""
    assert [row.said for row in ranking_rows(aspect_of(low, effect, high))] == [said, "baseline", "no rank: why"]


def test_what_is_no_speed_is_not_called_fast() -> None:
    assert ranking_rows(aspect_of(5, 7, 9, "power"))[0].said.startswith("1.070 times as good")


def test_ranks_and_title() -> None:
    found = aspect_of(5, 7, 9)
    assert [row.rank for row in ranking_rows(found)] == ["1", "2–3", "–"]
    assert ranking_title(found) == "throughput, the geometric mean of x/rate, y/rate; without z/rate"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["text", "summary", "markdown", "html"])
def test_every_format_has_each_contender_with_its_rank(name: str, tmp_path: Path) -> None:
    results = KINDS["ranking"](tmp_path)
    shown = report_format(name).render(results)
    assert len(results.rankings) == 2
    for ranking in results.rankings:
        for row in ranking_rows(ranking):
            assert any(row.rank in line and row.contender in line for line in shown.splitlines()), row
            assert row.said in " ".join(shown.split()), row
    results.rankings = []
    assert "Ranking" not in report_format(name).render(results)
