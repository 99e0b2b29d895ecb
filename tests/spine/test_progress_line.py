"""What a person is told between blocks."""

from __future__ import annotations

from kduel.cli.execute import told_standing
from kduel.judge.verdict.interim import Standing
from kduel.run.runner import TrialDone
from kduel.store.rundir import TrialRecord


def standing(
    metric: str = "m", low: float | None = -1.0, high: float | None = 2.0, decided: bool = False
) -> Standing:
    return Standing(
        benchmark="b", metric=metric, contender="new", n=6, scale="ratio", effect=0.5, low=low, high=high,
        verdict="faster" if decided else "undecided", decided=decided, blocks_more=0 if decided else 4, told="",
    )  # fmt: skip


def line(*standings: Standing, arms: int = 2) -> str:
    record = TrialRecord(id="1", block=1, position=1, contender="new", status="ok")
    progress = TrialDone(
        done=12, planned=40, record=record, block_done=True, mean_seconds=30, standings=list(standings)
    )
    return told_standing(progress, arms)


def test_interval_and_what_is_left():
    assert line(standing()) == "b/m -1.00 to +2.00 % (~4 more blocks); about 4 min left"
    assert line(standing(decided=True)) == "b/m -1.00 to +2.00 % (faster)"


def test_an_interval_without_bound_is_none():
    assert "no interval yet" in line(standing(low=-100.0, high=5e144))
    assert "no interval yet" in line(standing(low=None, high=None))


def test_among_several_contenders_it_says_whose():
    assert "b/m of new -1.00" in line(standing(), arms=3)


def test_many_metrics_are_counted():
    said = line(*(standing(f"m{n}", decided=n == 60) for n in range(63)))
    assert "b/m6 " in said and "b/m7 " not in said
    assert "and 56 more, 1 of them decided" in said
