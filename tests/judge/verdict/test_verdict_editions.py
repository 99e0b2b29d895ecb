"""Each edition of the method keeps its numbers: a run is judged as it was when it was planned, at the border, too."""

from __future__ import annotations

import json
import math

import msgspec
import pytest
from kept_editions import KEPT, verdicts
from verdict_tables import table

from kduel.core.editions import EDITION, EDITIONS, Edition
from kduel.core.samples import Samples
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import Rule, fewest_for

KNOWN = json.loads(KEPT.read_text())
REMEDY = """
A record of EDITIONS (src/kduel/core/editions.py) never changes: other numbers are a new edition. For a new one, run
PYTHONPATH=src .venv/bin/python -P tests/support/kept_editions.py
"""


def test_no_edition_changes() -> None:
    records = {int(number): msgspec.convert(record, Edition) for number, record in KNOWN["records"].items()}
    assert records == EDITIONS, REMEDY
    assert list(EDITIONS) == list(range(1, EDITION + 1)), "editions are numbered without a gap"


def test_every_number_that_no_study_chooses_is_in_the_record() -> None:
    chosen = {"delta_pct", "alpha", "covariates", "carry_over", "scope", "in_turns"}
    assert set(Rule.__struct_fields__) - chosen == set(Edition.__struct_fields__)


def test_a_default_of_the_rule_moves_no_edition() -> None:
    class Other(Rule, frozen=True, forbid_unknown_fields=True, kw_only=True):
        equivalent_from: int = 12
        adjust_from: int | None = None

    for number, record in EDITIONS.items():
        rule = Other.of_edition(number)
        assert (rule.equivalent_from, rule.adjust_from) == (record.equivalent_from, record.adjust_from)


@pytest.mark.parametrize(
    ("comparisons", "pairs"), [(1, 4), (2, 5), (7, 5), (8, 6), (60, 6), (61, 7), (240, 7), (241, 8)]
)
def test_the_fewest_pairs_of_the_second_edition(comparisons: int, pairs: int) -> None:
    assert fewest_for(comparisons, EDITIONS[2].fewest_by_comparisons) == pairs


@pytest.mark.parametrize("edition", sorted(EDITIONS))
@pytest.mark.parametrize(("short", "verdict"), [(1, "undecided"), (0, "equivalent")])
def test_the_border_of_equivalence_is_where_it_was(edition: int, short: int, verdict: str) -> None:
    blocks = EDITIONS[edition].equivalent_from - short
    old = [1000 + 0.1 * math.sin(7 * block) for block in range(blocks)]
    new = [1000 + 0.1 * math.cos(5 * block) for block in range(blocks)]
    (result,) = judge([table(old, new)], Rule.of_edition(edition))
    assert result.verdict == verdict


@pytest.mark.parametrize(
    ("edition", "blocks", "verdict"),
    [(1, 5, "undecided"), (1, 6, "faster"), (2, 3, "undecided"), (2, 4, "faster")],
)
def test_the_border_of_a_difference_is_where_it_was(edition: int, blocks: int, verdict: str) -> None:
    old = [1000 + 0.1 * math.sin(7 * block) for block in range(blocks)]
    new = [1200 + 0.1 * math.cos(5 * block) for block in range(blocks)]
    (result,) = judge([table(old, new)], Rule.of_edition(edition))
    assert result.verdict == verdict


@pytest.mark.slow
@pytest.mark.parametrize("edition", sorted(EDITIONS))
def test_a_kept_run_has_the_verdicts_that_it_had(edition: int) -> None:
    """Six primary comparisons, which take five pairs, and exploratory ones; orders and other work enter from ten blocks on."""
    assert str(edition) in KNOWN["editions"], REMEDY
    tables = msgspec.convert(KNOWN["samples"], list[Samples])
    for blocks, expected in KNOWN["editions"][str(edition)].items():
        for found, known in zip(verdicts(tables, edition, int(blocks)), expected, strict=True):
            assert found[:2] == known[:2], blocks
            assert found[2:] == [None if value is None else pytest.approx(value, rel=1e-6) for value in known[2:]]
