"""The JSON for KCIDB, by KCIDB's own library (kcidb-io)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from examples import ALL, simulated
from jsonschema import ValidationError
from kcidb_io.schema import LATEST, V5_0

from kduel.report import ReportOptions, report_format


def nulls(value: Any) -> bool:
    if isinstance(value, dict):
        return any(nulls(one) for one in value.values())
    return value is None or (isinstance(value, list) and any(nulls(one) for one in value))


def test_the_origin_is_that_of_whoever_submits() -> None:
    (test,) = json.loads(
        report_format("kcidb").render(simulated(blocks=10, metrics=1), ReportOptions(origin="mine"))
    )["tests"]
    assert test["origin"] == "mine" and test["id"].startswith("mine:") and test["build_id"].startswith("mine:")


@pytest.mark.parametrize("example", ALL)
def test_kcidb_takes_each_document_and_upgrades_it(example: str) -> None:
    document = json.loads(report_format("kcidb").render(ALL[example]()))
    assert V5_0.is_compatible_exactly(document) and not nulls(document)
    assert V5_0.validate(document) == document
    upgraded = LATEST.upgrade(document)
    assert LATEST.validate(upgraded)["tests"] == document["tests"]
    assert len({test["id"] for test in document["tests"]}) == len(document["tests"])
    for test in document["tests"]:
        assert test["id"].startswith("kduel:") and test["build_id"].startswith("kduel:")


@pytest.mark.parametrize("change", [{"status": "SLOW"}, {"path": "a b"}, {"number": {"value": "1"}}, {"more": 1}])
def test_kcidb_refuses_what_its_schema_has_not(change: dict[str, Any]) -> None:
    document = json.loads(report_format("kcidb").render(simulated(blocks=10, metrics=1)))
    document["tests"][0] |= change
    with pytest.raises(ValidationError):
        V5_0.validate(document)


def test_kernels_without_an_image_are_told_apart() -> None:
    results = simulated(blocks=10, metrics=1)
    identifiers = set()
    for name in ("a|b", "a``b", "🙂", "é"):
        results.metrics[0].contender = results.contenders[1].name = name
        results.contenders[1].sha256 = ""
        (test,) = json.loads(report_format("kcidb").render(results))["tests"]
        assert re.fullmatch(r"kduel:[A-Za-z0-9_-]+", test["build_id"])
        identifiers.add(test["build_id"])
    assert len(identifiers) == 4


def test_a_checksum_that_a_run_has_not_got_is_left_out() -> None:
    results = simulated(blocks=10, metrics=1)
    for checksum, expected in (("ab" * 32, "ab" * 32), ("", None)):
        results.study.checksum = checksum
        (test,) = json.loads(report_format("kcidb").render(results))["tests"]
        assert test["misc"]["kduel"].get("run_sha256") == expected


@pytest.mark.parametrize(
    ("verdict", "below", "n", "expected"),
    [
        ("slower", False, 10, "FAIL"),
        ("slower", True, 10, "PASS"),
        ("faster", False, 10, "PASS"),
        ("equivalent", False, 10, "PASS"),
        ("undecided", False, 10, "DONE"),
        ("higher", False, 10, "DONE"),
        ("undecided", False, 0, "MISS"),
    ],
)
def test_the_status_follows_the_verdict(verdict: Any, below: bool, n: int, expected: str) -> None:
    results = simulated(blocks=10, metrics=1)
    metric = results.metrics[0]
    metric.role, metric.verdict, metric.below_delta, metric.n = "primary", verdict, below, n
    assert json.loads(report_format("kcidb").render(results))["tests"][0]["status"] == expected


def test_a_mail_ends_with_the_checksum() -> None:
    results = simulated(blocks=10, metrics=1)
    results.study.checksum = "ab" * 32
    assert report_format("mail").render(results).endswith(f"  {'ab' * 32}\n")
