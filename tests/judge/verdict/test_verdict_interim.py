"""What a runner asks after each block."""

from __future__ import annotations

import msgspec
import pytest
from verdict_tables import noisy, table

from kduel.core.samples import Samples
from kduel.judge.verdict.interim import is_finished, primary_results
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import Rule


def first(samples: Samples, blocks: int) -> Samples:
    return msgspec.structs.replace(
        samples, blocks=samples.blocks[:blocks], values={k: v[:blocks] for k, v in samples.values.items()}
    )


def test_a_run_ends_when_every_primary_metric_is_decided() -> None:
    quick, slow = noisy(1, 0.10, 0.01, 20), msgspec.structs.replace(noisy(2, 0, 0.003, 20), benchmark="io")
    rule = Rule.of_edition(2)
    ends = [blocks for blocks in range(1, 21) if is_finished([first(quick, blocks), first(slow, blocks)], rule)]
    assert ends[0] == 10, "the effect is decided at six blocks, the other is equivalent from ten on"
    assert ends == list(range(10, 21)), "decisions stand"
    early = primary_results([first(quick, 7), first(slow, 7)], rule)
    assert [one.decided for one in early] == [True, False]
    assert early[0].verdict == "faster"
    assert early[1].blocks_more == 3, "the floor of ten"
    assert (early[1].ci_low_pct or 0) < 0 < (early[1].ci_high_pct or 0)


def test_exploratory_metrics_do_not_hold_a_run_up() -> None:
    primary = noisy(1, 0.10, 0.01, 6)
    other = msgspec.structs.replace(noisy(3, 0, 0.2, 6, primary=False), benchmark="io")
    assert is_finished([primary, other], Rule.of_edition(2))
    assert [one.benchmark for one in primary_results([primary, other], Rule.of_edition(2))] == ["cpu"]


def test_without_primary_metrics_a_run_goes_to_its_end() -> None:
    assert not is_finished([noisy(1, 0.1, 0.01, 19, primary=False)], Rule.of_edition(2))
    assert is_finished([noisy(1, 0.1, 0.01, 20, primary=False)], Rule.of_edition(2))
    assert not is_finished([], Rule.of_edition(2))


def test_an_undecided_run_ends_at_its_maximum() -> None:
    samples = noisy(4, 0, 0.1, 20)
    assert not is_finished([first(samples, 19)], Rule.of_edition(2))
    assert is_finished([samples], Rule.of_edition(2))


def test_an_exact_machine_is_decided_by_one_block() -> None:
    samples = table([1000], [1001], counted=True)
    assert is_finished([samples], Rule.of_edition(2))
    assert not is_finished([table([1000], [1001])], Rule.of_edition(2))
    assert primary_results([samples], Rule.of_edition(2))[0].decided


def test_primary_results_are_those_of_judge() -> None:
    samples = [noisy(5, 0.01, 0.02, 13), msgspec.structs.replace(noisy(6, 0, 0.01, 13), benchmark="io")]
    for one, result in zip(
        primary_results(samples, Rule.of_edition(2)), judge(samples, Rule.of_edition(2)), strict=True
    ):
        names = ("verdict", "effect_pct", "ci_low_pct", "ci_high_pct", "told")
        assert [getattr(one, name) for name in names] == [getattr(result, name) for name in names]


@pytest.mark.parametrize("blocks", [0, 1, 2, 3])
def test_nothing_is_told_too_early(blocks: int) -> None:
    one = primary_results([first(noisy(7, 0.3, 0.01, 20), blocks)], Rule.of_edition(2))[0]
    assert not one.decided and one.blocks_more is None


@pytest.mark.slow
def test_estimates_of_blocks_still_needed_come_true() -> None:
    """At eight of forty blocks: where "about k more" was said, most runs are decided by then."""
    rule, kept, said = Rule.of_edition(2, max_blocks=40), 0, 0
    for seed in range(150):
        samples = noisy(seed, 0.012, 0.02, 40)
        one = primary_results([first(samples, 8)], rule)[0]
        if not one.decided and one.blocks_more is not None and 8 + one.blocks_more <= 40:
            said += 1
            kept += primary_results([first(samples, 8 + one.blocks_more)], rule)[0].decided
    assert said > 60
    assert 0.5 < kept / said < 0.95
