"""Lines and pages that operations touch: the plug-in's figures, matched with what the guest's clock counted."""

from __future__ import annotations

import json

import pytest

from kduel.benchmarks import ParseError, Raw, benchmark
from kduel.benchmarks.lines import FOOTPRINTS

LINES = benchmark("lines")
PARAMETERS = LINES.read_parameters({"operation": "null-call", "conditions": 0})
SAMPLES = [300, 300, 360]
VALUES = {
    "touched-lines": 5, "code-lines": 9, "data-pages": 2, "code-pages": 3, "stack-lines": 4, "user-lines": 1,
}  # fmt: skip


def line(**more: object) -> str:
    return json.dumps({
        "operation": "null-call", "mode": "exact", "unit": "instructions", "count": 3, "samples": SAMPLES, "empty": 0,
        "hops": 1, "region": 1, "median": 300, "mean": 320, "min": 300, "max": 360, "resolution": 1,
    } | more)  # fmt: skip


def seen(**changed: object) -> str:
    """A visit in which two calls touched VALUES, and one more of everything."""
    usual = list(VALUES.values())
    touched = [[2, *usual], [1, *(value + 7 for value in usual)]]
    return json.dumps({"region": 1, "count": 3, "user": 100, "kernel": 870, "touched": touched} | changed)


def parse(*visits: str) -> dict[str, float]:
    raw = Raw(stdout=line() + "\n", stderr="", exit_status=0, files={FOOTPRINTS: "".join(f"{v}\n" for v in visits)})
    found: dict[str, float] = LINES.parse(raw, PARAMETERS)
    return found


def test_the_usual_call_counts() -> None:
    assert parse(seen()) == VALUES


def test_visits_of_other_operations_and_conditions_are_left_out() -> None:
    other = [[3, *(value + 1 for value in VALUES.values())]]
    assert parse(seen(region=2, touched=other), seen(kernel=5000, touched=other), seen()) == VALUES


@pytest.mark.parametrize(
    "changed",
    [
        {"kernel": 859},  # One instruction fewer than the clock saw.
        {"kernel": 10_000},
        {"count": 2},
        {"touched": [[2, 1, 1, 1, 1, 1, 1]]},
        {"region": 3},
    ],
)
def test_what_is_not_of_these_calls_is_no_value(changed: dict[str, object]) -> None:
    with pytest.raises(ParseError, match="counted 0 times"):
        parse(seen(**changed))


def test_two_visits_that_cannot_be_told_apart_give_no_value_unless_they_agree() -> None:
    assert parse(seen(), seen()) == VALUES
    with pytest.raises(ParseError, match="counted 2 times"):
        parse(seen(), seen(touched=[[3, 1, 1, 1, 1, 1, 1]]))


def test_conditions_that_take_equally_long_may_touch_different_lines() -> None:
    """They are told apart by their order, as in a kernel so small that nothing else runs."""
    plain = {"number": 0, "phase": 0, "times": 1, "environment": 0, "layout": 0, "held": 0, "before": ""}
    which = [plain, plain | {"number": 1, "environment": 64}]
    stdout = "".join(f"{line(condition=one)}\n" for one in which)
    touched = [[[3, value, 1, 1, 1, 1, 1]] for value in (4, 6)]
    visits = "".join(
        f"{one}\n" for one in (seen(region=2), *(seen(touched=one) for one in touched), seen(kernel=5000))
    )
    raw = Raw(stdout=stdout, stderr="", exit_status=0, files={FOOTPRINTS: visits})
    two = LINES.read_parameters({"operation": "null-call", "conditions": 2})
    assert LINES.parse(raw, two)["touched-lines"] == 5
    assert list(LINES.details(raw, two).conditions["touched-lines"].values()) == [4, 6]


def test_without_the_plug_in_there_is_no_value() -> None:
    with pytest.raises(ParseError, match="takes the machine icount"):
        LINES.parse(Raw(stdout=line() + "\n", stderr="", exit_status=0), PARAMETERS)
