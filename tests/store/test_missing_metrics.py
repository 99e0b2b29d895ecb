"""A metric that no trial gave is missing, and never left out without a word."""

from __future__ import annotations

from pathlib import Path

from made_runs import make_run

from kduel.judge.evaluate import judge_run


def test_a_metric_that_no_trial_gave_is_there_without_values(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run", blocks=6)
    for stdout in path.glob("trials/*/01-job/stdout"):
        stdout.write_text("nothing was measured\n")
    results = judge_run(path)
    (metric,) = results.metrics
    assert (metric.metric, metric.n, metric.verdict, metric.mean) == ("time", 0, "undecided", None)
    assert set(metric.values) == {"old", "new"} and not any(any(column) for column in metric.values.values())
    assert results.headlines[0].text.startswith("Nothing was measured")
