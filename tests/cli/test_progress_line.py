"""What a person without a terminal reads between blocks."""

from __future__ import annotations

import pytest
from msgspec import structs

from kduel.cli.live import HostLoad
from kduel.cli.live_trials import INDENT, plain_lines, standing_line, trial_line
from kduel.cli.terminal import Terminal
from kduel.core.experiment import Void
from kduel.core.host import HostStep
from kduel.core.metric_results import MetricResult
from kduel.run.watch import TrialDone
from kduel.store.documents import TrialRecord


def metric(
    name: str = "m", low: float | None = -1.0, high: float | None = 2.0, decided: bool = False
) -> MetricResult:
    return MetricResult(
        benchmark="b", metric=name, unit="1/s", better="higher", role="primary", baseline="old", contender="new", n=6,
        baseline_mean=100, baseline_sd=1, mean=100.5, sd=1, effect_pct=0.5, ci_low_pct=low, ci_high_pct=high,
        verdict="faster" if decided else "undecided", blocks_more=None if decided else 4,
    )  # fmt: skip


def line(*metrics: MetricResult, arms: int = 2) -> str:
    record = TrialRecord(id="1", block=1, position=1, contender="new", status="ok")
    progress = TrialDone(
        done=12,
        planned=40,
        record=record,
        block_done=True,
        voids=[],
        mean_seconds=30,
        metrics=list(metrics),
        hopeless=[],
    )
    return standing_line(progress, arms)


def test_interval_and_what_is_left():
    assert line(metric()) == "b/m −1.00 to +2.00 % (~4 more blocks); about 4 min left"
    assert line(metric(decided=True)) == "b/m −1.00 to +2.00 % (faster)"


def test_a_wide_interval_is_shown_and_one_without_bounds_is_none():
    assert "−100 to over +10,000 %" in line(metric(low=-100.0, high=5e144))
    assert "−95 to +2,680 %" in line(metric(low=-95.0, high=2680.0)), "as the report shows it"
    assert "no interval yet" in line(metric(low=None, high=None))


def test_metrics_without_an_interval_are_counted_once():
    none = [metric(f"m{n}", low=None, high=None) for n in range(5)]
    said = line(*none, metric("known"), arms=3)
    assert said.count("no interval yet") == 1 and "no interval yet for 5 metrics" in said
    assert "b/known of new −1.00" in said and "b/m1" not in said


def test_among_several_contenders_it_names_them():
    assert "b/m of new −1.00" in line(metric(), arms=3)


def test_effects_of_a_pair_are_named_where_they_share_a_metric():
    effect = structs.replace(metric(), contender="new / old at threads=2")
    assert "b/m of new / old at threads=2 −1.00" in line(metric(), effect)


def test_many_metrics_are_counted():
    said = line(*(metric(f"m{n}", decided=n == 60) for n in range(63)))
    assert "b/m6 " in said and "b/m7 " not in said
    assert "and 56 more, 1 of them decided" in said


def test_a_piped_line_has_a_hundred_columns_at_most_and_all_its_words() -> None:
    """With all its metrics it had more than 300."""
    said = INDENT + line(*(metric(f"a-rather-long-name-{n}", decided=n == 9) for n in range(9)))
    lines = plain_lines(said)
    assert len(said) > 300 and max(map(len, lines)) <= 100 and all(one.startswith(INDENT) for one in lines)
    assert " ".join(" ".join(lines).split()) == " ".join(said.split())
    assert "and 1 more, 1 of them" not in line(*(metric(f"m{n}", decided=True) for n in range(8)))


def test_notes_have_a_hundred_columns_at_most_where_nothing_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    """A note on futility had more than 400."""
    told = "the spread is too large for a verdict; " * 11 + "kept in /a/path/" + "long" * 30
    Terminal().warn(told)
    Terminal().info(told)
    lines = capsys.readouterr().err.splitlines()
    assert sorted(map(len, lines))[-3] <= 100, "but for a word that is longer"
    assert " ".join(lines) == f"note: {told} {told}"


def test_a_command_within_a_note_is_not_broken(capsys: pytest.CaptureFixture[str]) -> None:
    command = "`kduel resume 'a run of a kernel that was built here' --machine qemu:accel=tcg`"
    told = f"the machine is out of service after three rounds of this run; {command} continues it, and no ` is odd"
    Terminal().warn(told)
    lines = capsys.readouterr().err.splitlines()
    assert command in lines[1] and max(map(len, lines)) <= 100
    assert " ".join(lines) == f"note: {told}"


def test_a_void_trial_has_the_line_that_says_what_happened():
    message = (
        "The guest panicked:\n    [1.04] Kernel panic - not syncing: VFS: Unable to mount root fs\n    [1.05] CPU: 0"
    )
    record = TrialRecord(
        id="1", block=1, position=1, contender="new", status="void", void=Void(code="panic", message=message)
    )
    progress = TrialDone(
        done=1, planned=2, record=record, block_done=False, voids=[], mean_seconds=3, metrics=[], hopeless=[]
    )
    assert trial_line(progress).endswith(
        "panic: The guest panicked: [1.04] Kernel panic - not syncing: VFS: Unable to mount root fs"
    )


def test_what_a_void_trial_had_is_in_its_line():
    """The line ended with a colon."""
    assert (
        Void("oops", "The guest had a kernel oops:\n\n BUG: at 0\nmore").brief
        == "oops: The guest had a kernel oops: BUG: at 0"
    )
    assert Void("hang", "It hung.\nmore").brief == "hang: It hung."


def test_a_trial_says_why_it_was_slow():
    """A trial of 407 s on a host with a load of 30 was told as `ok`, and no more."""
    waited = HostStep(seconds=10, vcpu_run_s=2.0, vcpu_wait_s=6.0)
    record = TrialRecord(id="1", block=1, position=1, contender="new", status="ok", host={"b": waited})
    done = TrialDone(
        done=1, planned=2, record=record, block_done=False, voids=[], mean_seconds=1, metrics=[], hopeless=[]
    )
    crowded = trial_line(done, HostLoad(load=1e6, waiting_pct=90.0))
    assert "ok  the guest waited 75 % of its time for a CPU  host load 1000000 on " in crowded
    assert "load" not in trial_line(done, HostLoad(load=0.5, waiting_pct=0.0))
    assert "load" not in trial_line(done, HostLoad(load=None, waiting_pct=None))
    quiet = structs.replace(record, host={"b": structs.replace(waited, vcpu_wait_s=0.02)})
    assert trial_line(structs.replace(done, record=quiet)).endswith("ok")
    elsewhere = structs.replace(done, record=structs.replace(record, host={}, member="n1"))
    assert "load" not in trial_line(elsewhere, HostLoad(load=1e6, waiting_pct=None)), "it is this host's load"
