"""Benchmarks that a study gives as a command and regular expressions."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kduel.benchmarks import ParseError, Raw, benchmark
from kduel.core.errors import InputError
from kduel.study.load import expand

COMMAND = benchmark("command")
METRIC = {"name": "rate", "unit": "1/s", "better": "higher", "regex": r"^rate: (\S+)$"}
OUTPUT = "rate: 10\nnoise\nrate: 30\nrate: 20.5\n"


def parse(stdout: str, stderr: str = "", **changes: Any) -> float:
    parameters = COMMAND.read_parameters({"command": "true", "metrics": [METRIC | changes]})
    return COMMAND.parse(Raw(stdout, stderr, 0), parameters)["rate"]


@pytest.mark.parametrize(
    ("reduce", "value"),
    [("last", 20.5), ("first", 10), ("mean", 60.5 / 3), ("median", 20.5), ("min", 10), ("max", 30)],
)
def test_many_matches_are_reduced_as_the_study_says(reduce: str, value: float) -> None:
    assert parse(OUTPUT, reduce=reduce) == pytest.approx(value, rel=1e-12)


def test_many_matches_without_a_word_about_it_are_an_error() -> None:
    with pytest.raises(ParseError, match=r"3 places in stdout .* choose one: reduce"):
        parse(OUTPUT)
    assert parse("rate: 10\n") == 10


def test_no_match_names_the_metric_and_the_expression() -> None:
    with pytest.raises(ParseError, match=re.escape(r"rate: nothing in stderr is like '^rate: (\\S+)$'")):
        parse(OUTPUT, of="stderr")
    assert parse("", OUTPUT, of="stderr", reduce="max") == 30


@pytest.mark.parametrize(("text", "value"), [("-3", -3.0), ("+.5", 0.5), ("2.", 2.0), ("1e3", 1000.0), ("0", 0.0)])
def test_numbers_as_programs_print_them(text: str, value: float) -> None:
    assert parse(f"rate: {text}\n") == value


@pytest.mark.parametrize("text", ["nan", "-inf", "1e999", "1,234", "1_000", "0x10", "٣", "12ms", "--1", "."])
def test_what_is_no_finite_number_is_refused_even_beside_good_ones(text: str) -> None:
    with pytest.raises(ParseError, match="not a finite number"):
        parse(f"rate: 1\nrate: {text}\n", reduce="first")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"regex": "("}, "no regular expression"),
        ({"regex": "rate"}, "has 0 groups"),
        ({"regex": "(a)(b)"}, "has 2 groups"),
        ({"better": "faster"}, "better"),
        ({"reduce": "sum"}, "reduce"),
        ({"unit": ""}, "unit"),
        ({"name": "my rate"}, "name"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_metric_that_cannot_be_meant(changes: dict[str, str], told: str) -> None:
    with pytest.raises(InputError) as error:
        COMMAND.read_parameters({"command": "true", "metrics": [METRIC | changes]})
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"metrics": [METRIC]}, "command"),
        ({"command": " ", "metrics": [METRIC]}, "command"),
        ({"command": "true"}, "metrics"),
        ({"command": "true", "metrics": []}, "metrics"),
        ({"command": "true", "metrics": [METRIC, METRIC]}, "two metrics are called 'rate'"),
        ({"command": "true", "metrics": [METRIC], "packages": ["python3; reboot"]}, "packages"),
        ({"command": "true", "metrics": [METRIC], "time": 0}, "time"),
    ],
)
def test_a_command_that_cannot_be_meant(table: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as error:
        COMMAND.read_parameters(table)
    assert told in str(error.value)


def test_in_a_study_its_metrics_are_no_matrix_but_its_command_may_be() -> None:
    table = {"use": "command", "metrics": [METRIC], "primary": ["rate"]}
    (step,) = expand({**table, "command": "one", "label": "mine"})
    assert step.label == "mine" and step.primary == ["rate"]
    first, second = expand({**table, "command": ["echo 1", "echo 2"]})
    assert first.label != second.label
    assert all(re.fullmatch("[a-z0-9.-]+", step.label) for step in (first, second))


def test_what_it_says_to_the_plan_and_the_guest() -> None:
    parameters = COMMAND.read_parameters(
        {"command": "\n  a\n  b\n", "metrics": [METRIC | {"reduce": "max"}], "time": 7.5, "packages": ["python3"]}
    )
    assert COMMAND.script(parameters) == "a\n  b\n"
    assert COMMAND.seconds(parameters) == 7.5
    assert COMMAND.packages_for(parameters) == ("python3",)
    assert COMMAND.metrics(parameters)[0].statistic == "max"
