"""Slices: the order of a trial, a boot's value from its slices, and where the spread comes from."""

from __future__ import annotations

import itertools
import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from kduel.benchmarks import ParseError
from kduel.benchmarks.kbench import KbenchLine, errors_of
from kduel.benchmarks.support import schedstat
from kduel.core.errors import InputError
from kduel.core.experiment import Metric, Settle, Step
from kduel.core.samples import Samples
from kduel.core.slices import ALL, REDUCERS, SliceValue, interleave, reduce_slices
from kduel.judge.verdict.allocation import Allocations, Times, allocate
from kduel.judge.verdict.comparison import compare
from kduel.judge.verdict.components import components
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import Rule
from kduel.store.collect import PreparedSteps, step_directory
from kduel.study.file import Blocks, StudyHeader, parse_study, suite_text, suites
from kduel.study.load import check_numbers
from kduel.study.steps import read_steps

CAPTURED = Path(__file__).parents[1] / "benchmarks/captured"
HIGHER = Metric("rate", "1/s", "higher")
LOWER = Metric("time", "ns", "lower")


@given(st.lists(st.integers(1, 9), min_size=1, max_size=7), st.integers(0, 2**48))
def test_every_slice_is_measured_once_and_spread_over_the_trial(pieces: list[int], seed: int) -> None:
    steps = list(range(len(pieces)))[::-1]
    order = interleave(steps, dict(enumerate(pieces)), seed)
    wanted = [(step, number) for step, k in enumerate(pieces) for number in (range(1, k + 1) if k > 1 else [0])]
    assert sorted(order) == wanted
    assert order == interleave(steps, dict(enumerate(pieces)), seed)
    for step, k in enumerate(pieces):
        own = [number for other, number in order if other == step]
        assert own == sorted(own)
        if k > 1 and k == max(pieces):
            places = [place for place, piece in enumerate(order) if piece[0] == step]
            assert max(b - a for a, b in itertools.pairwise(places)) <= 2 * len(pieces) + pieces.count(1)


def test_the_order_is_drawn_from_the_seed_and_untouched_without_slices() -> None:
    assert interleave([2, 0, 1], {0: 1, 1: 1, 2: 1}, 7) == [(2, 0), (0, 0), (1, 0)]
    orders = {tuple(interleave([0, 1, 2], {0: 4, 1: 4, 2: 1}, seed)) for seed in range(20)}
    assert len(orders) > 10


def test_the_better_half_is_the_side_that_is_better() -> None:
    values = [1.0, 2.0, 3.0, 10.0, 11.0]
    assert reduce_slices(values, HIGHER, "better-half") == 8.0
    assert reduce_slices(values, LOWER, "better-half") == 2.0
    assert reduce_slices(values, Metric("x", "", "none"), "better-half") == 5.4
    assert reduce_slices(values, HIGHER, "median") == 3.0
    assert reduce_slices(values, HIGHER, "mean") == 5.4


@pytest.mark.parametrize(("statistic", "expected"), [("max", 11), ("min", 1), ("count", 27), ("total", 27)])
def test_extremes_and_totals_stay_what_they_are(statistic: Any, expected: float) -> None:
    metric = Metric("x", "", "lower", statistic=statistic)
    assert all(reduce_slices([1.0, 2.0, 3.0, 10.0, 11.0], metric, one) == expected for one in REDUCERS)


def sliced_table(draw: np.random.Generator, parts: dict[str, float], blocks: int = 400, slices: int = 8) -> Samples:
    """Two contenders whose spread has these parts; each slice's own error is `within`, where that is given."""
    block = draw.normal(0, parts.get("blocks", 0), blocks)
    error = parts.get("within")
    found: dict[str, list[list[SliceValue]]] = {}
    for name in ("a", "b"):
        logs = block[:, None] + draw.normal(0, parts["boots"], (blocks, 1))
        logs = logs + draw.normal(0, math.hypot(parts["slices"], error or 0), (blocks, slices))
        logs[:, 0] -= 0.2  # a first slice that is always slower tells nothing of the spread
        found[name] = [[SliceValue(None, math.exp(one), error) for one in boot] for boot in logs]
    values: dict[str, list[float | None]] = {
        name: [math.fsum(one.value for one in boot) / slices for boot in boots] for name, boots in found.items()
    }
    return Samples(benchmark="x", metric=HIGHER, blocks=list(range(1, blocks + 1)), values=values, slices=found)


def test_components_tell_blocks_boots_slices_and_what_is_within_them() -> None:
    parts = {"blocks": 0.03, "boots": 0.02, "slices": 0.05, "within": 0.04}
    found = components(sliced_table(np.random.default_rng(3), parts), "b")
    assert found is not None and found.slices == 8
    assert found.blocks_pct == pytest.approx(3, rel=0.15) and found.boots_pct == pytest.approx(2, rel=0.15)
    assert found.slices_pct == pytest.approx(5, rel=0.05) and found.within_pct == pytest.approx(4)
    assert found.boot_value_pct == pytest.approx(math.sqrt(4 + (25 + 16) / 8), rel=0.1)


@pytest.mark.parametrize(
    ("parts", "advice"),
    [
        ({"boots": 0.03, "slices": 0.05}, "more-blocks"),
        ({"boots": 0.01, "slices": 0.05}, "more-slices"),
        ({"boots": 0.01, "slices": 0.01, "within": 0.05}, "longer-slices"),
    ],
)
def test_the_largest_part_says_what_helps(parts: dict[str, float], advice: str) -> None:
    found = components(sliced_table(np.random.default_rng(4), parts), "b")
    assert found is not None and found.advice == advice


def test_components_of_one_piece_know_boots_and_blocks_only() -> None:
    table = sliced_table(np.random.default_rng(5), {"blocks": 0.03, "boots": 0.02, "slices": 0.0}, slices=1)
    found = components(structs.replace(table, slices={}), "b")
    assert found is not None and found.slices_pct is None and found.slices == 1
    assert found.boots_pct == pytest.approx(2, rel=0.1) and found.blocks_pct == pytest.approx(3, rel=0.15)
    few = sliced_table(np.random.default_rng(5), {"boots": 0.02, "slices": 0.0}, blocks=2)
    assert components(few, "b") is None


OUTPUTS = sorted(CAPTURED.glob("sysbench-*/sysbench-cpu-1t-1s"))
"""Outputs of one second of sysbench, of several versions: a slice each."""


def trial_of(tmp_path: Path, outputs: list[Path]) -> Path:
    """A trial whose step `cpu` left these outputs, a slice each."""
    for number, output in enumerate(outputs, 1):
        directory = step_directory(tmp_path, 0, "cpu", number)
        shutil.copytree(output, directory)
        (directory / "exit.json").write_text(json.dumps({"status": 0, "seconds": 1.0, "started": 10.0 * number}))
    return tmp_path


def prepared(slices: int, **blocks: Any) -> PreparedSteps:
    step = Step(
        label="cpu",
        benchmark="sysbench-cpu",
        parameters={"time": len(OUTPUTS)},
        primary=["events-per-second"],
    )
    return PreparedSteps([step], Blocks(slices=slices, **blocks))


def test_a_boots_value_is_reduced_from_the_real_outputs_of_its_slices(tmp_path: Path) -> None:
    rates = sorted(float(re.findall(r"events per second: +(.*)", (one / "stdout").read_text())[0]) for one in OUTPUTS)
    assert len(rates) >= 4 and len(set(rates)) == len(rates)
    trial = trial_of(tmp_path, OUTPUTS)
    values, failed = prepared(len(OUTPUTS)).parse_trial(trial)
    better = rates[len(rates) // 2 :]
    assert not failed
    assert values[0]["events-per-second"] == pytest.approx(math.fsum(better) / len(better), rel=1e-2)
    assert values[0]["events-per-second" + ALL] == pytest.approx(math.fsum(rates) / len(rates), rel=1e-2)
    plain, _ = prepared(len(OUTPUTS), reduce="mean").parse_trial(trial)
    assert plain[0]["events-per-second"] == values[0]["events-per-second" + ALL]
    assert "events-per-second" + ALL not in plain[0]
    names = [metric.name for metric in prepared(len(OUTPUTS)).metrics(0)]
    assert set(values[0]) == set(names) and len(set(names)) == len(names)


def test_slices_and_their_times_are_kept(tmp_path: Path) -> None:
    found = prepared(len(OUTPUTS)).details(trial_of(tmp_path, OUTPUTS), 0).slices
    assert list(found) == ["events-per-second"]
    assert [one.began for one in found["events-per-second"]] == [10.0 * n for n in range(1, len(OUTPUTS) + 1)]


def test_a_missing_slice_leaves_no_value_and_is_named(tmp_path: Path) -> None:
    trial = trial_of(tmp_path, OUTPUTS)
    (step_directory(trial, 0, "cpu", 2) / "stdout").write_text("")
    with pytest.raises(ParseError, match="slice 2"):
        prepared(len(OUTPUTS)).parse(trial, 0)


@pytest.mark.parametrize(
    ("benchmark", "parameters", "slices", "lengths"),
    [
        ("sysbench-cpu", {"time": 6}, 6, [1] * 6),
        ("sysbench-cpu", {"time": 6}, 4, [2] * 3),
        ("sysbench-cpu", {"time": 1}, 8, [1]),
        ("stress-ng", {"time": 4}, 8, [1] * 4),
        ("kbench", {"operation": "fork-exit", "time": 2.0}, 8, [0.25] * 8),
    ],
)
def test_the_time_of_a_step_stays_the_same(
    benchmark: str, parameters: dict[str, Any], slices: int, lengths: list[float]
) -> None:
    pieces = PreparedSteps(
        [Step(label="x", benchmark=benchmark, parameters=parameters)], Blocks(slices=slices)
    ).pieces
    assert [piece.time for piece in pieces[0]] == lengths


@pytest.mark.parametrize("benchmark", ["sysbench-fileio", "cyclictest", "hackbench", "perf-sched-pipe"])
def test_fixed_work_and_files_refuse_to_be_cut(benchmark: str) -> None:
    assert [len(one) for one in PreparedSteps([Step(label="x", benchmark=benchmark)], Blocks(slices=8)).pieces] == [1]


@pytest.mark.parametrize("slices", [0, -1, 101])
def test_a_number_of_slices_that_cannot_be_meant_is_refused(slices: int) -> None:
    with pytest.raises(InputError, match=r"blocks\.slices"):
        check_numbers(StudyHeader(name="x"), Settle(), Blocks(slices=slices), "study.toml")


def steps(*tables: str) -> list[Step]:
    text = '[study]\nname = "x"\n' + "".join(f"[[benchmark]]\n{table}\n" for table in tables)
    return read_steps(parse_study(text, "study.toml").benchmark, "study.toml")[0]


def test_a_step_may_have_its_own_number_of_slices() -> None:
    cpu = 'use = "sysbench-cpu"\ntime = 4\n'
    found = PreparedSteps(
        steps(cpu, cpu + 'label = "piece"\nslices = 1', cpu + 'label = "two"\nslices = 2'), Blocks(slices=4)
    )
    assert [len(one) for one in found.pieces] == [4, 1, 2]


def test_a_step_that_refuses_to_be_cut_says_so_where_it_was_asked() -> None:
    with pytest.raises(InputError, match=r"benchmark\[#1\].*slices = 4"):
        steps('use = "cyclictest"\nslices = 4')
    with pytest.raises(InputError, match="slices is 0"):
        steps('use = "sysbench-cpu"\nslices = 0')


def test_no_label_is_that_of_another_steps_slice() -> None:
    cpu = 'use = "sysbench-cpu"\n'
    with pytest.raises(InputError, match=r"a\.s2"):
        steps(cpu + 'label = "a"', cpu + 'label = "a.s2"')
    assert len(steps(cpu + 'label = "a"', cpu + 'label = "b.s2"')) == 2


def test_kbench_knows_the_error_of_a_slices_value() -> None:
    draw = np.random.default_rng(6)
    lines = []
    for _ in range(400):
        samples = 1000 * draw.lognormal(0, 0.2, 100)
        middle, mean = float(np.median(samples)), float(samples.mean())
        low, high = float(samples.min()), float(samples.max())
        lines.append(KbenchLine("x", "time", "ns", 100, 0.0, middle, mean, low, high, samples.tolist()))
    found = [errors_of(line) for line in lines]
    for metric, values in (("time", [one.median for one in lines]), ("time-mean", [one.mean for one in lines])):
        truth = np.std(np.log(values))
        assert np.mean([one[metric] for one in found]) == pytest.approx(truth, rel=0.15)
    assert errors_of(structs.replace(lines[0], count=1, samples=[5.0])) == {}


def test_a_time_too_short_for_the_slices_is_said() -> None:
    found = steps(
        'use = "sysbench-cpu"\ntime = 1',
        'use = "sysbench-cpu"\ntime = 4',
        'use = "cyclictest"',
        'use = "kbench"\noperation = "fork-exit"',
        'use = "stress-ng"\nstressor = "switch"\ntime = 6',
    )
    labels = [step.label for step in found]
    assert PreparedSteps(found, Blocks(slices=4)).fewer_slices() == [f"{labels[0]} (1 of 4)", f"{labels[4]} (3 of 4)"]
    assert PreparedSteps(found, Blocks()).fewer_slices() == []


@pytest.mark.parametrize("name", suites())
def test_every_suite_can_be_cut_or_refuses(name: str) -> None:
    found = PreparedSteps(read_steps(parse_study(suite_text(name), name).benchmark, name)[0], Blocks(slices=4))
    order = found.in_order(range(len(found.steps)), 1)
    assert len(set(order)) == len(order) == sum(len(pieces) for pieces in found.pieces)
    for index, (chosen, pieces) in enumerate(zip(found.benchmarks, found.pieces, strict=True)):
        assert chosen.label(found.parameters[index]) or pieces
        assert all(chosen.script(one) for one in pieces)
        assert sum(map(chosen.seconds, pieces)) <= chosen.seconds(found.parameters[index]) + len(pieces)


def proposal(parts: dict[str, float], boot: float, piece: float) -> Allocations:
    table = structs.replace(sliced_table(np.random.default_rng(7), parts, blocks=400, slices=4), primary=True)
    rule = Rule.of_edition(2, delta_pct=3.0)
    return allocate(list(compare([table], rule)), rule, rule.alpha, Times(boot=boot, slices={"x": piece}))


def test_the_proposal_takes_more_slices_where_they_vary_and_boots_are_dear() -> None:
    few = proposal({"boots": 0.04, "slices": 0.02}, boot=2, piece=2)
    many = proposal({"boots": 0.03, "slices": 0.1}, boot=20, piece=1)
    assert few.best is not None and many.best is not None and many.now is not None
    assert few.best.slices < 4 < many.best.slices
    assert many.now.slices == 4 and many.best.seconds < many.now.seconds and many.best.blocks < many.now.blocks
    assert many.best.seconds == pytest.approx(2 * many.best.blocks * (20 + many.best.slices))
    # Kalibera and Jones: sqrt(20 / 1 * 100 / 9)
    assert many.metrics[0].best_slices in range(12, 19)


def test_a_run_like_the_proposal_is_decided() -> None:
    parts = {"boots": 0.01, "slices": 0.06}
    best = proposal(parts, boot=10, piece=1).best
    assert best is not None
    rule = Rule.of_edition(2, delta_pct=3.0, max_blocks=best.blocks)
    draw = np.random.default_rng(8)
    decided = 0
    for _ in range(100):
        table = structs.replace(sliced_table(draw, parts, blocks=best.blocks, slices=best.slices), primary=True)
        [found] = judge([table], rule)
        decided += found.verdict == "equivalent"
    assert decided >= 70


def test_without_slices_there_is_nothing_to_propose() -> None:
    rule = Rule.of_edition(2)
    table = sliced_table(np.random.default_rng(9), {"boots": 0.02, "slices": 0.0}, blocks=10, slices=1)
    whole = structs.replace(table, slices={}, primary=True)
    found = allocate(list(compare([whole], rule)), rule, rule.alpha, None)
    assert found.best is None and [one.advice for one in found.metrics] == [None]


def test_a_step_may_be_exploratory_in_an_emulator() -> None:
    [step] = steps('use = "sysbench-cpu"\nprimary = ["events-per-second"]\nemulated = "exploratory"')
    assert step.on(emulated=True).primary == [] and step.on(emulated=False).primary == ["events-per-second"]
    [plain] = steps('use = "sysbench-cpu"\nprimary = ["events-per-second"]')
    assert plain.on(emulated=True) == plain


@pytest.mark.parametrize(("version", "said"), [("15", ""), ("18", "version 18")])
def test_a_step_keeps_its_own_numbers_where_the_schedulers_cannot_be_read(
    tmp_path: Path, version: str, said: str
) -> None:
    trial = trial_of(tmp_path, OUTPUTS[:1])
    directory = step_directory(trial, 0, "cpu", 1).rename(step_directory(trial, 0, "cpu"))
    before, after = (Path(__file__).parents[1] / "benchmarks/schedstat-6.1.txt").read_text().split("---\n")
    switches = ((schedstat.OTHERS_BEFORE, "/proc/stat:ctxt 5\n"), (schedstat.OTHERS_AFTER, "/proc/stat:ctxt 9\n"))
    for name, text in ((schedstat.BEFORE, before), (schedstat.AFTER, after), (schedstat.SWITCH, "1\n"), *switches):
        (directory / name).write_text(text.replace("version 15", f"version {version}"))
    step = structs.replace(prepared(1).steps[0], schedstat=True)
    values, failed = PreparedSteps([step], Blocks()).parse_trial(trial)
    assert "events-per-second" in values[0] and values[0]["sched-switches"] == 4
    assert ("sched-schedules" in values[0]) is not bool(said)
    assert list(failed) == (["cpu (schedstat)"] if said else []) and said in "".join(failed.values())
