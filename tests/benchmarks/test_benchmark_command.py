"""Benchmarks that a study gives as a command and regular expressions."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from kduel.benchmarks import ParseError, Raw, benchmark
from kduel.benchmarks import command as command_module
from kduel.core.errors import InputError
from kduel.study.steps import expand

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


@pytest.mark.parametrize("before", ["1\n", "1.\n", "v1,\n", "-\n", "1 ", ""])
def test_a_number_after_a_line_that_ends_in_one_is_whole(before: str) -> None:
    assert parse(f"{before}20\n", regex=r"^(?:.*\s)?(2[0-9])$") == 20


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


@pytest.fixture
def limited() -> Iterator[None]:
    """Ends a test that hangs, which an engine that backtracks would do for years."""

    def end(*_: object) -> None:
        raise TimeoutError("still searching")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize("regex", [r"^((?:[0-9]+)+)x$", r"^((?:[0-9]|[0-9][0-9])+)x$", r"(?:(?:1|1?)+)+(y)"])
def test_an_expression_that_python_would_search_for_years_ends(regex: str) -> None:
    with pytest.raises(ParseError, match="nothing in stdout"):
        parse("1" * 10_000 + "\n", regex=regex)


@pytest.mark.usefixtures("limited")
def test_the_matches_of_one_text_have_a_limit_of_cpu_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_module, "MOST_CPU_SECONDS", 0.2)
    with pytest.raises(ParseError, match="CPU time"):
        parse("1" * 2_000_000, regex="(?s)(1)(?:.*x)?", reduce="first")


@pytest.mark.slow
@pytest.mark.usefixtures("limited")
def test_the_expressions_of_a_step_share_the_limit_of_cpu_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_module, "MOST_CPU_SECONDS", 1.0)
    metrics = [METRIC | {"name": f"m{n}", "regex": "^(1)$", "reduce": "first"} for n in range(600)]
    parameters = COMMAND.read_parameters({"command": "true", "metrics": metrics})
    with pytest.raises(ParseError, match=r"m[1-9][0-9]*: .* with those before it"):
        COMMAND.parse(Raw("1\n" * 20_000, "", 0), parameters)


@pytest.mark.usefixtures("limited")
def test_a_large_expression_on_a_long_text_is_refused_at_once() -> None:
    """Each state of a deterministic automaton for it would be another one; 16 MB would take minutes."""
    with pytest.raises(ParseError, match="too large"):
        parse("ab" * (8 << 20), regex="[ab]*a[ab]{900}(c)")
    with pytest.raises(ParseError, match="nothing in stdout"):
        parse("ab\n" * (5 << 20), regex=r"^\s*(?:total|sum) +[:=] +([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?) *MB/s")


@pytest.mark.parametrize(
    ("regex", "reason"), [(r"(?=1)(1)", "look-around"), (r"(1)\1", "back-references"), (r"(\pL{0,900})", "too large")]
)
def test_an_expression_that_needs_more_than_linear_time_is_refused(regex: str, reason: str) -> None:
    with pytest.raises(InputError, match=r"regex .*RE2") as error:
        COMMAND.read_parameters({"command": "true", "metrics": [METRIC | {"regex": regex}]})
    assert reason in str(error.value)
