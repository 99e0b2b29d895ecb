"""What the benchmark itself sets is never told as proof that kernels are equal, nor a bound as violated that nothing exceeds."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from examples import simulated

from kduel.analysis.index import SCHEMA
from kduel.analysis.index_rows import add_run
from kduel.analysis.matrix.advice import advise
from kduel.core.metric_results import HARNESS, FindingResult
from kduel.core.results import Results
from kduel.core.samples import Distribution
from kduel.judge.tails.results import count_above
from kduel.report import report_format


def set_by_harness() -> Results:
    results = simulated(blocks=10, metrics=1)
    (metric,) = results.metrics
    metric.warnings, metric.verdict, metric.aspect = (
        [FindingResult(code=HARNESS, message="")],
        "equivalent",
        "throughput",
    )
    return results


def test_the_index_says_not_judged(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "index") as connection:
        connection.executescript(SCHEMA)
        add_run(connection, "run", "", set_by_harness())
        assert connection.execute("SELECT verdict FROM verdict").fetchall() == [("not judged",)]


def test_kcidb_says_not_judged() -> None:
    (test,) = json.loads(report_format("kcidb").render(set_by_harness()))["tests"]
    assert test["status"] == "DONE" and test["misc"]["kduel"]["verdict"] == "not judged"


def test_no_advice_rests_on_it() -> None:
    assert advise(set_by_harness()) == []


def test_nothing_exceeds_a_limit_that_the_largest_value_keeps() -> None:
    boot = Distribution(unit="us", values=[151.5], counts=[12_000], largest=149.9)
    assert count_above(boot, 150) == (0, 0)
