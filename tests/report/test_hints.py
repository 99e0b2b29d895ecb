"""A run without a primary metric hints, and fails nobody's build."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from kduel.core.results import Results
from kduel.judge.evaluate import judge_run
from kduel.judge.verdict.headline import headlines
from kduel.report import report_format
from kduel.report.content.answer import answer
from kduel.store.imported import Source, bring_in


@pytest.fixture
def hints(tmp_path: Path) -> Results:
    """An import whose only metric, twenty per cent slower, is exploratory."""
    rows = [
        f"{contender},{trial},build,time,s,lower,{value + trial / 100},exploratory\n"
        for contender, value in (("old", 10), ("new", 12))
        for trial in range(1, 11)
    ]
    file = tmp_path / "values.csv"
    file.write_text("contender,trial,benchmark,metric,unit,better,value,role\n" + "".join(rows))
    bring_in([Source(file)], tmp_path / "run")
    return judge_run(tmp_path / "run")


def test_the_headline_says_that_it_is_a_hint(hints: Results) -> None:
    assert [one.text for one in hints.headlines] == ["new is slower than old (a hint)"]


def test_the_badge_says_that_it_is_a_hint(hints: Results) -> None:
    assert "hint: slower in 1 of 1</text>" in report_format("badge").render(hints)


def test_no_test_of_junit_fails_by_a_hint(hints: Results) -> None:
    text = report_format("junit").render(hints)
    assert 'failures="0" skipped="1"' in text and 'message="exploratory: slower' in text


def test_no_test_of_kernelci_fails_by_a_hint(hints: Results) -> None:
    (test,) = msgspec.json.decode(report_format("kcidb").render(hints))["tests"]
    assert test["status"] == "DONE" and "exploratory: slower" in test["comment"]


def test_an_exact_count_is_no_hint(unpack: Callable[[str], Path]) -> None:
    """Nothing about it is left to chance."""
    results = judge_run(unpack("icount"))
    for metric in results.metrics:
        metric.role = "exploratory"
    results.headlines = headlines(results)
    assert any(metric.claimed for metric in results.metrics)
    texts = [*(one.text for one in results.headlines), report_format("badge").render(results), answer(results).text]
    assert not any("hint" in text for text in texts)
    assert "exploratory" not in report_format("junit").render(results)
