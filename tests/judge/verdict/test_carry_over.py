"""The contender of the trial before as a covariate: what a contender leaves behind counts against none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msgspec import structs
from planted_flaws.carry_over import following

from kduel.core.errors import InputError
from kduel.core.samples import Samples
from kduel.judge.verdict.comparison import compare, trials_after
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import Rule
from kduel.study.file import parse_study
from kduel.study.load import assemble

PLAIN, OPTION = Rule(), Rule(carry_over=True)
BLOCKS = PLAIN.max_blocks
RUNS = 40


def runs(sds: float) -> list[Samples]:
    draw = np.random.default_rng(8)
    return [following(sds)(draw, BLOCKS, seed) for seed in range(RUNS)]


def false_verdicts(tables: list[Samples], rule: Rule) -> int:
    return sum(judge([one], rule)[0].verdict in ("faster", "slower") for one in tables)


@pytest.mark.parametrize("sds", [3, 9])
def test_what_a_contender_leaves_behind_makes_no_verdict(sds: float) -> None:
    tables = runs(sds)
    assert false_verdicts(tables, PLAIN) > RUNS / 3
    assert false_verdicts(tables, OPTION) <= 5, "five of a hundred are expected"


def test_the_estimate_is_the_intercept_of_a_regression_on_place_and_trial_before() -> None:
    (table, *_) = runs(3)
    (c,) = compare([table], OPTION)
    old, new = (np.log(np.array(table.values[name], dtype=float)) for name in table.contenders)
    order = {place: name for name, places in table.order.items() for place in places}
    before = {
        name: np.array([0.5 if not place else float(order[place - 1] == "new") for place in table.order[name]])
        for name in ("old", "new")
    }
    places = np.array(table.order["new"], dtype=float) - np.array(table.order["old"], dtype=float)
    columns = np.column_stack([np.ones(BLOCKS), places, before["new"] - before["old"]])
    found, *_ = np.linalg.lstsq(columns, new - old, rcond=None)
    assert float(c.estimates.mean[-1]) == pytest.approx(float(found[0]), abs=1e-12)
    rest = new - old - columns @ found
    spread = math.sqrt(rest @ rest / (BLOCKS - 3) * np.linalg.inv(columns.T @ columns)[0, 0])
    assert float(c.estimates.error[-1]) == pytest.approx(spread, rel=1e-9)


def test_no_verdict_before_the_covariate_enters() -> None:
    large = structs.replace(runs(0)[0])
    large.values = large.values | {"new": [2 * (value or 1) for value in large.values["new"]]}
    assert judge([large], PLAIN)[0].decided_at == 4
    assert judge([large], OPTION)[0].decided_at == 10


def test_a_trial_follows_the_last_one_of_its_own_machine() -> None:
    table = structs.replace(
        runs(0)[0], blocks=[1, 2, 3], machines=["m1", "m2", "m1"], values={"old": [1.0] * 3, "new": [1.0] * 3},
        order={"old": [0, 2, 5], "new": [1, 3, 4]},
    )  # fmt: skip
    assert trials_after(table, "new") == {"old": [0.5, 0.5, 1.0], "new": [0.0, 0.0, 1.0]}


def test_the_first_trial_of_a_merged_part_follows_none() -> None:
    table = structs.replace(
        runs(0)[0], blocks=[1, 2, 3], machines=["m"] * 3, parts=["a", "a", "b"], values={"old": [1.0] * 3, "new": [1.0] * 3},
        order={"old": [0, 3, 4], "new": [1, 2, 5]},
    )  # fmt: skip
    assert trials_after(table, "new") == {"old": [0.5, 1.0, 0.5], "new": [0.0, 1.0, 0.0]}


def test_one_missing_pair_leaves_the_shortest_run_a_verdict() -> None:
    study = assemble(parse_study(text := STUDY.format(blocks="fixed = 11", more=""), "s.toml"), text, "s.toml")
    table = structs.replace(runs(0)[0], blocks=list(range(1, 12)))
    table.order = {name: places[:11] for name, places in table.order.items()}
    old, new = ([value or 1 for value in values[:11]] for values in table.values.values())
    table.values = {"old": [*old[:5], None, *old[6:]], "new": [2 * value for value in new]}
    assert judge([table], Rule.fixed_blocks(study.blocks.count, carry_over=True))[0].verdict != "undecided"


def test_blocks_in_one_order_give_no_verdict() -> None:
    """Then a trial before is always the same, too, and nothing tells it from the kernel."""
    table = runs(0)[0]
    values = {"old": [10.0 + i % 3 for i in range(BLOCKS)], "new": [20.1 + i % 4 for i in range(BLOCKS)]}
    order: dict[str, list[int | None]] = {
        "old": [2 * i for i in range(BLOCKS)],
        "new": [2 * i + 1 for i in range(BLOCKS)],
    }
    alike = structs.replace(table, order=order, values=values)
    assert set(compare([alike], OPTION)[0].followers[0][1:]) == {-1.0}
    assert judge([alike], OPTION)[0].verdict == "undecided"


STUDY = """
[study]
name = "heat"
[[contender]]
kernel = "a"
[[contender]]
kernel = "b"
[blocks]
carry_over = true
{blocks}
[[benchmark]]
use = "hackbench"
{more}
"""


@pytest.mark.parametrize(
    ("blocks", "more", "machine", "reason"),
    [
        ("turns = 10", "", "", "take turns"),
        ("fixed = 10", "", "", "fewer than 11 blocks"),
        ("max = 10", "", "", "fewer than 11 blocks"),
        ("", "", "icount", "counts have no intervals"),
        ("", '[[factor]]\nname = "sysctl"\nlevels = { a = {}, b = { cmdline = "quiet" } }', "", "effects of factors"),
        ("", "".join(f'[[contender]]\nkernel = "{name}"\n' for name in "cde"), "", "more than four contenders"),
    ],
)
def test_it_is_refused_where_it_cannot_be_applied(blocks: str, more: str, machine: str, reason: str) -> None:
    text = STUDY.format(blocks=blocks, more=more)
    with pytest.raises(InputError, match=f"blocks.carry_over cannot be applied: .*{reason}"):
        assemble(parse_study(text, "study.toml"), text, "study.toml", machine=machine)


def test_no_turns_are_taken_where_it_is_applied() -> None:
    text = STUDY.format(blocks="", more="")
    assert assemble(parse_study(text, "study.toml"), text, "study.toml").blocks.turns == "off"
