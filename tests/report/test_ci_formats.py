"""Formats for continuous integration: JUnit XML and the badge."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest
from examples import ALL, simulated
from msgspec import structs

from kduel.analysis.matrix.advice import advise
from kduel.core.metric_results import CONTRADICTED, HARNESS, FindingResult, MachineEffect, MachinesResult
from kduel.core.text import visible
from kduel.judge.verdict.headline import compared_pairs
from kduel.judge.verdict.wording import withhold
from kduel.report import report_format


@pytest.mark.parametrize("example", ALL)
def test_junit_has_a_case_for_each_gating_metric(example: str) -> None:
    results = ALL[example]()
    root = ElementTree.fromstring(report_format("junit").render(results).encode("utf-8", "backslashreplace"))
    gating = [m for m in results.metrics if m.role == "primary"]
    assert len(root.findall("testsuite")) == len(compared_pairs(results))
    assert len(root.findall("*/testcase")) >= len(gating)
    for suite in root:
        assert int(suite.get("tests", "")) == len(suite.findall("testcase"))
        assert int(suite.get("failures", "")) == len(suite.findall("*/failure"))
        assert int(suite.get("skipped", "")) == len(suite.findall("*/skipped"))


@pytest.mark.parametrize(
    ("verdict", "below", "junit", "badge"),
    [
        ("slower", False, "failure", "slower in 1 of 1"),
        ("slower", True, "system-out", "no difference that matters"),
        ("faster", False, "system-out", "faster in 1 of 1"),
        ("equivalent", False, "system-out", "no difference that matters"),
        ("undecided", False, "skipped", "undecided in 1 of 1"),
        ("higher", False, "system-out", "higher in 1 of 1"),
    ],
)
def test_outcomes_follow_the_verdict(verdict: Any, below: bool, junit: str, badge: str) -> None:
    results = simulated(blocks=10, metrics=1)
    metric = results.metrics[0]
    metric.role, metric.verdict, metric.below_delta = "primary", verdict, below
    (case,) = ElementTree.fromstring(report_format("junit").render(results).encode()).findall("*/testcase")
    assert [child.tag for child in case] == [junit]
    assert badge in report_format("badge").render(results)


@pytest.mark.parametrize(
    ("verdicts", "badge"),
    [
        (["faster", "slower", "faster"], "slower in 1 of 3"),
        (["faster", "undecided", "undecided"], "faster in 1 of 3"),
        (["equivalent", "undecided", "equivalent"], "undecided in 1 of 3"),
    ],
)
def test_the_badge_has_the_worst_outcome(verdicts: list[Any], badge: str) -> None:
    results = simulated(blocks=10, metrics=3)
    for metric, verdict in zip(results.metrics, verdicts, strict=True):
        metric.role, metric.verdict, metric.below_delta = "primary", verdict, False
    assert badge in report_format("badge").render(results)


@pytest.mark.parametrize("verdict", ["slower", "faster", "equivalent", "undecided"])
def test_nothing_follows_from_what_the_benchmark_sets(verdict: Any) -> None:
    results = simulated(blocks=10, metrics=1)
    metric = results.metrics[0]
    metric.role, metric.verdict = "primary", verdict
    metric.warnings = [FindingResult(code=HARNESS, message="set")]
    (case,) = ElementTree.fromstring(report_format("junit").render(results).encode()).findall("*/testcase")
    assert [(child.tag, child.get("message")) for child in case] == [("skipped", "set by the benchmark itself")]
    badge = report_format("badge").render(results)
    assert "nothing follows" in badge and "in 1 of 1" not in badge
    (test,) = json.loads(report_format("kcidb").render(results))["tests"]
    assert test["status"] == "DONE" and test["comment"].endswith(": set by the benchmark itself")
    other = structs.replace(metric, metric="other", verdict="equivalent", warnings=[])
    results.metrics.append(other)
    assert "no difference that matters" in report_format("badge").render(results)


@pytest.mark.parametrize("example", ALL)
def test_a_badge_is_a_picture_whatever_the_names_are(example: str) -> None:
    results = ALL[example]()
    root = ElementTree.fromstring(report_format("badge").render(results).encode("utf-8", "backslashreplace"))
    assert root.tag.endswith("svg")
    assert {element.tag.split("}")[1] for element in root.iter()} == {"svg", "title", "rect", "path", "g", "text"}


@pytest.mark.parametrize("example", ALL)
def test_junit_says_what_was_measured(example: str) -> None:
    results = ALL[example]()
    root = ElementTree.fromstring(report_format("junit").render(results).encode("utf-8", "backslashreplace"))
    for suite in root:
        assert suite[0].tag == "properties", "the schema has them first"
        found = {one.get("name", ""): one.get("value", "") for one in suite[0]}
        assert set(found) == {"kernels", "machine", "measured"}
        for contender in results.contenders:
            assert not contender.release or visible(contender.release) in found["kernels"]


@pytest.mark.parametrize("verdict", ["slower", "faster", "equivalent"])
def test_no_format_claims_what_machines_contradict(verdict: Any) -> None:
    results = simulated(blocks=10, metrics=1)
    metric = results.metrics[0]
    metric.role, metric.verdict, metric.aspect = "primary", verdict, "throughput"
    effects = [
        MachineEffect(
            machine=f"m{number}",
            n=10,
            effect=0.1,
            low=0.05,
            high=0.15,
            others=0.0,
            differs=number > 0,
            contradicts=number > 0,
        )
        for number in range(2)
    ]
    metric.machines = MachinesResult(
        scope="these",
        effects=effects,
        pooled=0.1,
        low=0.05,
        high=0.15,
        spread=None,
        spread_low=None,
        spread_high=None,
    )
    withhold(metric)
    (case,) = ElementTree.fromstring(report_format("junit").render(results).encode()).findall("*/testcase")
    assert [(child.tag, child.get("message", "").partition(":")[0]) for child in case] == [("skipped", CONTRADICTED)]
    assert "undecided in 1 of 1" in report_format("badge").render(results)
    (test,) = json.loads(report_format("kcidb").render(results))["tests"]
    assert test["status"] == "DONE" and CONTRADICTED in test["comment"]
    (said,) = advise(results)
    assert "nothing is decided" in said.told and not (said.better or said.worse or said.same)
