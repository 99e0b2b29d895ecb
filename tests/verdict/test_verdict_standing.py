"""What a runner asks after each block."""

from __future__ import annotations

import msgspec
import pytest
from verdict_tables import noisy, table

from kduel.core.samples import Samples
from kduel.judge.verdict.interim import finished, standing
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import Rule


def first(samples: Samples, blocks: int) -> Samples:
    return msgspec.structs.replace(
        samples, blocks=samples.blocks[:blocks], values={k: v[:blocks] for k, v in samples.values.items()}
    )


def test_a_run_ends_when_every_primary_metric_is_decided() -> None:
    quick, slow = noisy(1, 0.10, 0.01, 20), msgspec.structs.replace(noisy(2, 0, 0.003, 20), benchmark="io")
    rule = Rule()
    ends = [blocks for blocks in range(1, 21) if finished([first(quick, blocks), first(slow, blocks)], rule)]
    assert ends[0] == 10, "the effect is decided at six blocks, the other is equivalent from ten on"
    assert ends == list(range(10, 21)), "decisions stand"
    early = standing([first(quick, 7), first(slow, 7)], rule)
    assert [one.decided for one in early] == [True, False]
    assert early[0].verdict == "faster" and early[0].blocks_more == 0
    assert early[1].blocks_more == 3, "the floor of ten"
    assert early[1].low is not None and early[1].low < 0 < (early[1].high or 0)


def test_exploratory_metrics_do_not_hold_a_run_up() -> None:
    primary = noisy(1, 0.10, 0.01, 6)
    other = msgspec.structs.replace(noisy(3, 0, 0.2, 6, primary=False), benchmark="io")
    assert finished([primary, other], Rule())
    assert [one.benchmark for one in standing([primary, other], Rule())] == ["cpu"]


def test_without_primary_metrics_a_run_goes_to_its_end() -> None:
    assert not finished([noisy(1, 0.1, 0.01, 19, primary=False)], Rule())
    assert finished([noisy(1, 0.1, 0.01, 20, primary=False)], Rule())
    assert not finished([], Rule())


def test_an_undecided_run_ends_at_its_maximum() -> None:
    samples = noisy(4, 0, 0.1, 20)
    assert not finished([first(samples, 19)], Rule())
    assert finished([samples], Rule())


def test_an_exact_machine_is_decided_by_one_block() -> None:
    samples = table([1000], [1001])
    assert finished([samples], Rule(), exact=True)
    assert not finished([samples], Rule())
    assert standing([samples], Rule(), exact=True)[0].decided


def test_standing_says_what_judge_says() -> None:
    samples = [noisy(5, 0.01, 0.02, 13), msgspec.structs.replace(noisy(6, 0, 0.01, 13), benchmark="io")]
    for one, result in zip(standing(samples, Rule()), judge(samples, Rule()), strict=True):
        assert (one.verdict, one.effect, one.low, one.high, one.told) == (
            result.verdict,
            result.effect_pct,
            result.ci_low_pct,
            result.ci_high_pct,
            result.told,
        )


@pytest.mark.parametrize("blocks", [0, 1, 2, 3])
def test_nothing_is_told_too_early(blocks: int) -> None:
    one = standing([first(noisy(7, 0.3, 0.01, 20), blocks)], Rule())[0]
    assert not one.decided and one.blocks_more is None


def test_estimates_of_blocks_still_needed_come_true() -> None:
    """At eight of forty blocks: where "about k more" was said, most runs are decided by then."""
    rule, kept, said = Rule(max_blocks=40), 0, 0
    for seed in range(150):
        samples = noisy(seed, 0.012, 0.02, 40)
        one = standing([first(samples, 8)], rule)[0]
        if not one.decided and one.blocks_more is not None and 8 + one.blocks_more <= 40:
            said += 1
            kept += standing([first(samples, 8 + one.blocks_more)], rule)[0].decided
    assert said > 60
    assert 0.5 < kept / said < 0.95
