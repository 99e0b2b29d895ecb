"""A run of several kernels as a history by version."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from kduel.analysis.versions import courses
from kduel.cli import write_up
from kduel.core.errors import InputError
from kduel.core.metric_results import ConditionResult, MetricResult
from kduel.core.results import Results
from kduel.judge.evaluate import judge_run
from kduel.report import report_format


@pytest.fixture
def two(unpack: Callable[[str], Path]) -> Results:
    return judge_run(unpack("icount"))


@pytest.fixture
def three(two: Results) -> Results:
    """The same with a third kernel, in which each operation has an instruction more than in the second."""

    def more(metric: MetricResult) -> MetricResult:
        values = {
            metric.baseline: metric.values[metric.baseline],
            "third": [None if value is None else value + 1 for value in metric.values[metric.contender]],
        }
        conditions = [
            ConditionResult(name=one.name, block=one.block, baseline=one.baseline, contender=one.contender + 1)
            for one in metric.conditions
        ]
        return structs.replace(metric, contender="third", values=values, conditions=conditions)

    contenders = [*two.contenders, structs.replace(two.contenders[1], name="third", kernel="debian:7.3")]
    return structs.replace(two, contenders=contenders, metrics=[*two.metrics, *map(more, two.metrics)])


def test_two_kernels_have_the_verdicts_of_the_run(two: Results):
    verdicts = {one.benchmark: one for one in two.metrics if one.role == "primary"}
    found = courses(two)
    assert found and {one.label for one in found} == set(verdicts)
    for one in found:
        mine, own = one.changes[0], verdicts[one.label]
        assert (mine.verdict, mine.effect, mine.ci_low, mine.ci_high) == (
            own.verdict,
            own.effect,
            own.ci_low,
            own.ci_high,
        )


def test_each_kernel_is_held_against_the_one_before_it(two: Results, three: Results):
    for before, one in zip(courses(two), courses(three), strict=True):
        assert one.values == [*before.values, None if before.values[1] is None else before.values[1] + 1]
        assert one.changes[0].verdict == before.changes[0].verdict
        assert (one.changes[1].effect, one.changes[1].verdict) == (1, "more")
        if one.explains[1]:
            assert one.explains[1].startswith(f"kduel explain {three.contenders[1].kernel} debian:7.3 -b ")


def test_each_primary_count_of_an_operation_has_its_own_line(two: Results):
    """The last one had overwritten the first."""
    count = next(one for one in two.metrics if one.role == "primary")
    doubled = {name: [None if one is None else 2 * one for one in values] for name, values in count.values.items()}
    pair = [
        structs.replace(count, metric="lines", unit="lines", conditions=[]),
        structs.replace(count, metric="lines-accesses", unit="lines-accesses", values=doubled, conditions=[]),
    ]
    found = structs.replace(two, metrics=pair)
    lines, accesses = courses(found)
    assert (lines.unit, accesses.unit) == ("lines", "lines-accesses")
    assert accesses.values == [2 * (value or 0) for value in lines.values]
    page = report_format("versions").render(found)
    assert "Loads and stores to the cache lines that CPUs share in an operation" in page


def test_the_page_has_a_line_for_each_operation_and_what_changes_it(three: Results):
    page = report_format("versions").render(three)
    found = courses(three)
    assert page.count("<polyline") == sum(not one.nowhere for one in found)
    assert "<script" not in page and "http" not in re.sub("<meta[^>]*>", "", page)
    assert all(one.label in page for one in found)


@pytest.mark.parametrize("usual", [True, False])
def test_a_history_is_written_of_a_run_that_has_one(
    three: Results, usual: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """An exact study of factors has none: it had status 2 after all its results."""
    written: list[str] = []
    monkeypatch.setattr(write_up, "start_kduel", lambda *words: written.append(words[2]))
    write_up.keep_report(tmp_path, three if usual else structs.replace(three, metrics=[]))
    assert written == (["html", "versions"] if usual else ["html"])


def test_what_counts_nothing_has_no_history(unpack: Callable[[str], Path]):
    with pytest.raises(InputError, match="no counts"):
        report_format("versions").render(judge_run(unpack("qemu")))
