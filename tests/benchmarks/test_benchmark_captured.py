"""Every parser on what real programs of four Debian releases printed: exact, and never an invented value."""

from __future__ import annotations

import string

import pytest
from benchmark_cases import CASES, GOOD, Case
from hypothesis import given, settings
from hypothesis import strategies as st

from kduel.benchmarks import ParseError
from kduel.registry import plugins

NOISE = string.ascii_letters + string.punctuation + "\0\ufffd\N{ARABIC-INDIC DIGIT SEVEN}"
"""What garbles a byte here: all but digits and white space. One digit for another can be found only by the checksum
of the trial's envelope."""


@pytest.mark.parametrize("case", GOOD, ids=repr)
def test_values_are_exactly_those_printed(case: Case) -> None:
    values = case.benchmark.parse(case.raw, case.parameters)
    assert case.benchmark.label(case.parameters) == case.directory.name
    assert values == pytest.approx(case.expected, rel=1e-9, abs=0)
    assert {metric.name for metric in case.benchmark.metrics(case.parameters)} == set(values)


@pytest.mark.parametrize("case", [case for case in CASES if case.expected is None], ids=repr)
def test_output_that_has_no_answer_is_refused_with_the_reason(case: Case) -> None:
    assert case.error
    with pytest.raises(ParseError) as told:
        case.benchmark.parse(case.raw, case.parameters)
    assert case.error in str(told.value)


def test_every_benchmark_that_has_a_program_is_captured_from_several_versions() -> None:
    versions: dict[str, set[str]] = {}
    for case in GOOD:
        versions.setdefault(case.benchmark.name, set()).add(case.directory.parent.name)
    for name, plugin in plugins("benchmarks").items():
        if plugin.packages and not plugin.programs:
            assert len(versions.get(name, ())) >= 3, name


@pytest.mark.parametrize("case", GOOD, ids=repr)
def test_truncated_at_any_line(case: Case) -> None:
    for name, text in case.texts.items():
        lines = text.splitlines(keepends=True)
        for count in range(len(lines)):
            found = case.outcome(**{name: "".join(lines[:count])})
            assert found is None or found == case.whole, f"{name} cut after line {count}: {found}"


def test_truncated_everywhere_gives_nothing() -> None:
    for case in GOOD:
        assert case.outcome(**dict.fromkeys(case.texts, "")) is None, case


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_truncated_at_any_byte(data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(GOOD))
    name = data.draw(st.sampled_from(case.written))
    text = case.texts[name]
    found = case.outcome(**{name: text[: data.draw(st.integers(0, len(text) - 1))]})
    assert found is None or found == case.whole


@settings(max_examples=1000, deadline=None)
@given(st.data())
def test_garbled_at_any_byte(data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(GOOD))
    name = data.draw(st.sampled_from(case.written))
    text = case.texts[name]
    at = data.draw(st.integers(0, len(text) - 1))
    garbled = text[:at] + data.draw(st.sampled_from(NOISE)) + text[at + 1 :]
    found = case.outcome(**{name: garbled})
    assert found is None or found == case.whole


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_a_line_lost_or_doubled(data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(GOOD))
    name = data.draw(st.sampled_from(case.written))
    lines = case.texts[name].splitlines(keepends=True)
    at = data.draw(st.integers(0, len(lines) - 1))
    times = data.draw(st.sampled_from([0, 2]))
    found = case.outcome(**{name: "".join(lines[:at] + times * [lines[at]] + lines[at + 1 :])})
    assert found is None or found == case.whole


@pytest.mark.parametrize("nonsense", ["nan", "inf", "-1.00", "1e3", "1,234.5", "1.234,5", "٣", "9" * 400, ""])
def test_nonsense_in_place_of_any_number_that_counts(nonsense: str) -> None:
    """Each value of each case, replaced wherever it stands as printed."""
    tried = 0
    for case in GOOD:
        for name, text in case.texts.items():
            for value in {f"{v:.2f}" for v in (case.expected or {}).values()} | {
                f"{v:g}" for v in (case.expected or {}).values()
            }:
                if text.count(f" {value}\n") != 1:
                    continue
                tried += 1
                found = case.outcome(**{name: text.replace(f" {value}\n", f" {nonsense}\n")})
                assert found is None or found == case.whole, (case, value)
    assert tried > 50


def test_the_output_of_other_parameters_is_refused() -> None:
    """A file in the wrong directory is no measurement."""
    for name, known in (
        ("sysbench-cpu", "threads"),
        ("sysbench-fileio", "mode"),
        ("sysbench-memory", "operation"),
        ("perf-sched-pipe", "loops"),
        ("perf-sched-messaging", "groups"),
        ("hackbench", "datasize"),
        ("stress-ng", "stressor"),
        ("vmstat", "time"),
    ):
        cases = [case for case in GOOD if case.benchmark.name == name]
        for case in cases:
            for other in cases:
                if getattr(case.parameters, known) != getattr(other.parameters, known):
                    with pytest.raises(ParseError):
                        case.benchmark.parse(case.raw, other.parameters)
