"""`kduel list benchmarks`: what a study file may ask for."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from kduel.benchmarks.support.operations import OPERATIONS
from kduel.cli.list_ import command
from kduel.core.errors import InputError


@pytest.fixture(scope="module")
def listed() -> dict[str, dict[str, object]]:
    done = CliRunner().invoke(command, ["benchmarks", "--format", "json"])
    return {entry["name"]: entry for entry in json.loads(done.output)}


def test_a_benchmark_with_a_choice_to_make_has_its_choices_and_their_metrics(
    listed: dict[str, dict[str, object]],
) -> None:
    """kbench had neither operations nor metrics there."""
    kbench = listed["kbench"]
    assert kbench["choices"] == {"mode": ["time", "exact"], "operation": list(OPERATIONS)}
    names = [metric["name"] for metric in kbench["metrics"]]  # type: ignore[attr-defined]
    assert {"time", "instructions", "instructions-fifo", "instructions-session"} <= set(names)
    assert len(names) == len(set(names))
    assert "bandwidth" in listed["lmbench"]["choices"]["category"]  # type: ignore[index]
    assert listed["lmbench"]["metrics"]


def test_a_benchmark_that_needs_no_choice_has_the_metrics_of_its_defaults(
    listed: dict[str, dict[str, object]],
) -> None:
    assert [metric["name"] for metric in listed["boot-instructions"]["metrics"]] == ["boot-instructions"]  # type: ignore[attr-defined]
    assert listed["command"]["metrics"] == [], "they are what the study says"


def test_the_text_has_the_choices() -> None:
    text = CliRunner().invoke(command, ["benchmarks"]).output
    assert "operation: one of empty, null-call, " in text and "operation = required" in text


@pytest.mark.parametrize(("kind", "escapes"), [("dumb", False), ("xterm", True)])
def test_a_dumb_terminal_gets_nothing_bold(monkeypatch: pytest.MonkeyPatch, kind: str, escapes: bool) -> None:
    monkeypatch.setenv("TERM", kind)
    assert ("\x1b" in CliRunner().invoke(command, ["machines"], color=True).output) == escapes


def test_one_of_a_kind_is_listed_by_its_name() -> None:
    done = CliRunner().invoke(command, ["benchmarks", "redis", "--format", "json"])
    assert [entry["name"] for entry in json.loads(done.output)] == ["redis"]
    assert CliRunner().invoke(command, ["suites", "network"]).output == "network  Network stack\n"
    with pytest.raises(InputError, match="no 'rediss' among the benchmarks") as error:
        CliRunner().invoke(command, ["benchmarks", "rediss"], catch_exceptions=False)
    assert "Did you mean redis?" in error.value.remedy
