"""Effects of factors: planted ones are found, absent ones are not, and each report states them."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from factor_cells import simulate_cells
from factor_runs import COMMAND, HEAD, JOB, KERNELS, SIZE, THP, make_factor_run, with_interaction
from msgspec import structs

from kduel.cli import kduel, main
from kduel.core.experiment import Factor, Metric, StepCell
from kduel.core.metric_results import EffectResult
from kduel.core.samples import Samples
from kduel.judge.evaluate import judge_run
from kduel.judge.factors import effects, gating
from kduel.judge.factors.headline import sentence_of
from kduel.judge.verdict.judge import judge, judge_primary
from kduel.judge.verdict.rule import Rule
from kduel.report.content.factors import effect_matrix, factor_groups
from kduel.report.text import render_text


def effect(found: list[EffectResult], name: str) -> EffectResult:
    return next(one for one in found if one.name == name)


@pytest.mark.slow
def test_an_interaction_is_found_and_told(tmp_path: Path) -> None:
    results = judge_run(make_factor_run(tmp_path / "run", HEAD + KERNELS + THP + SIZE + JOB, with_interaction))
    crossed = effect(results.effects, "kernel × thp").result
    assert crossed.verdict == "lower" and crossed.unit == "ratio"
    assert crossed.effect_pct == pytest.approx(100 * math.expm1(-0.08), abs=1)
    assert effect(results.effects, "kernel: installed-new at thp=never").result.verdict == "slower"
    assert effect(results.effects, "kernel: installed-new at thp=always").result.verdict == "equivalent"
    assert effect(results.effects, "kernel × size: 2").result.verdict == "equivalent"
    assert "only at thp=never" in results.headlines[0].text
    short = judge_run(
        make_factor_run(tmp_path / "short", HEAD + KERNELS + THP + SIZE + JOB, with_interaction, blocks=3)
    )
    assert "undecided: too few trials for a verdict on installed-new against installed-old" in short.headlines[0].text
    assert results.gating == [one.result for one in results.effects]
    assert all(metric.role == "exploratory" for metric in results.metrics)
    # With the average and the interaction open, what holds at a level is said all the same.
    simple = [one for one in results.effects if one.kind == "simple" or one.factors != ["kernel"]]
    group = [
        structs.replace(one, result=structs.replace(one.result, verdict="undecided"))
        if one.kind == "interaction"
        else one
        for one in simple
    ]
    average = effect(results.effects, "kernel: installed-new")
    main_effect = structs.replace(average, result=structs.replace(average.result, verdict="undecided"))
    said = sentence_of(main_effect, [main_effect, *group], Rule.of_edition(2))
    assert said.startswith("undecided on average; installed-new is slower at thp=never ("), said
    assert said.count("slower") == 1 and "), size=" in said and "thp=always" not in said, said


@pytest.mark.slow
@pytest.mark.parametrize("fixed", [12, None])
def test_plan_and_report_state_the_same_number_of_blocks(tmp_path: Path, fixed: int | None) -> None:
    """A run with one analysis takes fewer blocks than one that is analysed on the way."""

    def noisy(_: dict[str, str], draw: np.random.Generator) -> float:
        return 10 * math.exp(0.012 * draw.normal())

    run = make_factor_run(tmp_path / "run", HEAD + KERNELS + THP + JOB + COMMAND, noisy)
    lock = json.loads((run / "lock.json").read_text())
    lock["blocks"] |= {"fixed": fixed, "max": 12}
    (run / "lock.json").write_text(json.dumps(lock))
    reported = [one.result.blocks_more for one in judge_run(run).effects]
    done = CliRunner().invoke(kduel, ["plan", str(run), "--format", "json"], catch_exceptions=False)
    planned = [cost["seen_effect"] for cost in json.loads(done.stdout)["costs"]]
    assert any(reported)
    assert planned == [None if more is None else 12 + more for more in reported]


def test_a_block_with_a_void_cell_counts_only_for_effects_without_that_cell(tmp_path: Path) -> None:
    calls = itertools.count()

    def value(levels: dict[str, str], draw: np.random.Generator) -> float | None:
        return None if next(calls) in (5, 17, 30) else with_interaction(levels, draw)

    results = judge_run(make_factor_run(tmp_path / "run", HEAD + KERNELS + THP + JOB + COMMAND, value))
    assert effect(results.effects, "kernel × thp").result.n == 9
    at_levels = [one.result.n for one in results.effects if one.kind == "simple"]
    assert sum(at_levels) == 21  # each of the three trials is missing in one of both


@pytest.mark.slow
def test_a_fraction_names_the_effects_that_it_cannot_tell_apart(tmp_path: Path) -> None:
    third = (
        '[[factor]]\nname = "audit"\nlevels = { on = {}, off = { cmdline = "audit=0" } }\n[design]\nfraction = 2\n'
    )
    results = judge_run(
        make_factor_run(tmp_path / "run", HEAD + KERNELS + THP + third + JOB + COMMAND, with_interaction)
    )
    assert len(results.contenders) == 4
    assert effect(results.effects, "kernel: installed-new").aliases == ["thp × audit"]
    assert "kernel × thp" in effect(results.effects, "audit: off").aliases


@pytest.mark.slow
def test_values_that_are_zero_are_compared_by_differences(tmp_path: Path) -> None:
    def value(levels: dict[str, str], draw: np.random.Generator) -> float:
        return float(draw.integers(0, 3) + 50 * (levels == {"kernel": "installed-new", "thp": "always"}))

    results = judge_run(make_factor_run(tmp_path / "run", HEAD + KERNELS + THP + JOB + COMMAND, value))
    crossed = effect(results.effects, "kernel × thp").result
    assert (crossed.scale, crossed.verdict, crossed.unit) == ("difference", "higher", "s")
    assert crossed.effect == pytest.approx(50, abs=3)


@pytest.mark.slow
def test_conclusions_name_the_metric_whose_effects_they_are(tmp_path: Path) -> None:
    study = HEAD + KERNELS + THP + JOB + COMMAND + (JOB + COMMAND).replace('label = "job"', 'label = "other"')
    text = render_text(judge_run(make_factor_run(tmp_path / "run", study, with_interaction)), width=100, colour=False)
    assert "What can be concluded of job/time" in text
    assert "What can be concluded of other/time" in text


@pytest.mark.slow
def test_a_mean_over_a_factor_that_it_depends_on_is_called_one(tmp_path: Path) -> None:
    """+10 % without huge pages and -10 % with them are equivalent on average, which says nothing of either."""

    def value(levels: dict[str, str], draw: np.random.Generator) -> float:
        size = {"never": 0.1, "always": -0.1}[levels["thp"]] if levels["kernel"] == "installed-new" else 0.0
        return math.exp(size + 0.01 * draw.standard_normal())

    study = HEAD + KERNELS + THP + JOB + COMMAND
    text = render_text(judge_run(make_factor_run(tmp_path / "run", study, value)), width=200, colour=False)
    assert "Equivalent within ±2 %: kernel: installed-new on average over thp" in text
    assert "Kernels: (installed-old, thp=never), (installed-old, thp=always): installed:old;" in text
    without = render_text(
        judge_run(make_factor_run(tmp_path / "two", study, lambda _, draw: math.exp(0.01 * draw.standard_normal()))),
        width=200,
        colour=False,
    )
    assert "on average over" not in without


@pytest.mark.slow
@pytest.mark.parametrize(
    "form", ["text", "markdown", "html", "json", "csv", "junit", "kcidb", "latex", "mail", "summary", "badge"]
)
def test_every_format_shows_effects(tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_factor_run(tmp_path / "run", HEAD + KERNELS + THP + JOB + COMMAND, with_interaction)
    with pytest.raises(SystemExit) as ended:
        main(["report", str(run), "-f", form, *(["-o", str(tmp_path / "out")] if form == "html" else [])])
    assert not ended.value.code
    text = (tmp_path / "out").read_text() if form == "html" else capsys.readouterr().out
    assert ("thp" if form != "badge" else "slower") in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("levels", "noise", "blocks"),
    [((2, 2), "normal", 12), ((2, 2), "skewed", 12), ((2, 2), "unequal", 12), ((3, 2, 2), "voids", 20)],
)
def test_absent_interactions_are_seldom_found(levels: tuple[int, ...], noise: str, blocks: int) -> None:
    """Family-wise; perf/factors_calibration.py has the long simulation."""
    runs, wrong = 60, 0
    for seed in range(runs):
        table, design = simulate_cells(levels, {}, noise, blocks, seed)
        found = judge_primary(gating([table], design), Rule.fixed_blocks(blocks, edition=2))
        wrong += any(one.verdict in ("faster", "slower", "higher", "lower") for one in found)
    assert wrong / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


@pytest.mark.slow
def test_planted_interactions_are_found() -> None:
    hits = 0
    for seed in range(60):
        table, design = simulate_cells((2, 2), {(1, 1): 0.04}, "normal", 12, seed)
        found = judge_primary(gating([table], design), Rule.fixed_blocks(12, edition=2))
        hits += any(one.verdict == "higher" and one.unit == "ratio" for one in found)
    assert hits >= 54


def test_levels_on_a_scale_are_ranked_and_the_matrix_has_each_pair_once(tmp_path: Path) -> None:
    third = KERNELS.replace('"installed:new"', '"installed:new", "installed:third"')

    def value(levels: dict[str, str], draw: np.random.Generator) -> float:
        size, name = int(levels["size"]), levels["kernel"]
        slower = {"installed-new": 0.1 if size == 1 else -0.1, "installed-third": 0.2}.get(name, 0.0)
        return size * math.exp(slower + 0.01 * draw.standard_normal())

    results = judge_run(make_factor_run(tmp_path / "run", HEAD + third + SIZE + JOB, value, blocks=6))
    group = factor_groups(results)[0]
    ranked = [line for line in group.told if line.startswith("ranking")]
    order = [[word.split()[0] for word in line.split(": ")[1].split("; ")] for line in ranked]
    assert order == [
        ["installed-old", "installed-new", "installed-third"],
        ["installed-new", "installed-old", "installed-third"],
        ["installed-new", "installed-old", "installed-third"],
    ]
    assert "cross between size 1" in group.told[0]
    assert [[len(cell) for cell in row.cells] for row in effect_matrix(group.effects)] == [[2], [4, 2]]


def test_each_factor_on_a_scale_has_its_own_crossing(tmp_path: Path) -> None:
    depth = '[[factor]]\nname = "depth"\nlevels = { 1 = { cmdline = "depth=1" }, 2 = { cmdline = "depth=2" } }\n'

    def value(levels: dict[str, str], draw: np.random.Generator) -> float:
        slower = {"1": -0.1, "2": 0.2, "4": 0.2}[levels["size"]] if levels["kernel"] == "installed-new" else 0.0
        return math.exp(slower + 0.002 * draw.standard_normal())

    study = HEAD + KERNELS + SIZE + depth + JOB
    told = factor_groups(judge_run(make_factor_run(tmp_path / "run", study, value, blocks=6)))[0].told
    assert any("cross between size 1" in line for line in told)
    assert any("slower at every depth measured (1, 2), on average over size" in line for line in told)


def test_steps_whose_metric_is_described_by_the_level_are_one_family() -> None:
    """cyclictest says under which load a wake-up was late."""
    cells, design = simulate_cells((2,), {}, "normal", 12, 1)
    place = {load: StepCell(family="s", levels={"load": load}) for load in ("idle", "disk")}
    design = structs.replace(design, factors=[*design.factors, Factor(name="load", levels=list(place))], steps=place)
    tables = [
        structs.replace(cells, benchmark=load, metric=structs.replace(cells.metric, about=f"under {load}"))
        for load in place
    ]
    assert [one.name for one in effects(tables, design)][:3] == ["a: 1", "load: disk", "a × load"]


@pytest.mark.parametrize("size", [0.05, -0.05])
def test_a_cell_beyond_the_histogram_forbids_what_would_rest_on_its_absence(size: float) -> None:
    """In one of twelve blocks, of the cell 1-1, which is among the higher or the lower ones."""
    planted = {(1, 0): size, (1, 1): 2 * size}
    table, design = simulate_cells((2, 2), planted, "normal", 12, 1)
    table = structs.replace(
        table,
        metric=structs.replace(table.metric, better="lower"),
        values={**table.values, "1-1": [None, *table.values["1-1"][1:]]},
    )
    rule = Rule.fixed_blocks(12, edition=2)

    def verdicts(beyond: dict[str, list[int]]) -> dict[str, str]:
        asked = effects([structs.replace(table, beyond=beyond)], design)
        judged = judge_primary([one.table for one in asked], rule)
        return {one.name: result.verdict for one, result in zip(asked, judged, strict=True)}

    missing, beyond = verdicts({}), verdicts({"1-1": [1]})
    assert missing["a: 1"] == ("slower" if size > 0 else "faster")
    assert beyond["a: 1"] == ("slower" if size > 0 else "undecided")
    assert missing["a × b"] == ("higher" if size > 0 else "lower")
    assert beyond["a × b"] == ("higher" if size > 0 else "undecided")
    # Without the cell itself nothing changes.
    assert beyond["a: 1 at b=0"] == missing["a: 1 at b=0"] != "undecided"


def counted_effects(cells: dict[str, list[float]], unit: str = "instructions") -> dict[str, EffectResult]:
    """The effects of two factors on a count; by cell (`1-0`), the counts under each condition."""
    _, design = simulate_cells((2, 2), {}, "normal", 12, 1)
    table = Samples(
        benchmark="clone",
        metric=Metric(unit, unit, "lower", statistic="median"),
        primary=True,
        counted=True,
        blocks=[1],
        values={name: [float(np.median(counts))] for name, counts in cells.items()},
        order={name: [place] for place, name in enumerate(cells)},
        conditions={
            name: [{f"c{number}": count for number, count in enumerate(counts)}] for name, counts in cells.items()
        },
    )
    asked = effects([table], design)
    judged = judge([one.table for one in asked], Rule.fixed_blocks(1, edition=2))
    return {one.name: one.result(result) for one, result in zip(asked, judged, strict=True)}


def test_effects_of_counts_are_over_all_conditions() -> None:
    """The medians alone show an interaction of +200 that turns under one condition."""
    found = counted_effects(
        {
            "0-0": [1000, 1100, 1050],
            "1-0": [2000, 2100, 2090],
            "0-1": [1000, 1100, 1050],
            "1-1": [2200, 1900, 2290],
        }
    )
    crossed, simple = found["a × b"].result, found["a: 1 at b=1"].result
    assert [one.difference for one in crossed.conditions] == [200, -200, 200]
    assert (crossed.verdict, crossed.ci_low, crossed.ci_high, crossed.effect) == ("undecided", -200, 200, 200)
    assert (simple.verdict, simple.ci_low, simple.ci_high) == ("more", 800, 1240)
    main_effect = found["a: 1"].result
    assert (main_effect.ci_low, main_effect.ci_high) == (900, 1140)


@pytest.mark.parametrize(("more", "small"), [(3, True), (300, False)])
def test_delta_holds_for_an_interaction_of_counts(more: float, small: bool) -> None:
    found = counted_effects({"0-0": [3000], "1-0": [3400], "0-1": [2950], "1-1": [3350 + more]})
    crossed = found["a × b"].result
    assert (crossed.verdict, crossed.effect, crossed.below_delta) == ("different", more, small)
    assert (crossed.baseline_mean, crossed.mean) == (3350, 3350 + more)
    assert crossed.effect_pct == pytest.approx(100 * more / 3350)
    assert (crossed.baseline, crossed.contender) == ("a=1 at b=1 if effects added", "a=1 at b=1")


@pytest.mark.parametrize(
    ("cells", "unit", "said"),
    [
        (
            (3000, 3400, 2950, 3350),
            "instructions",
            "a=1 takes more instructions than a=0 (+400 (+13.4 %)), whatever b is",
        ),
        (
            (3400, 3000, 3350, 2953),
            "instructions",
            "a=1 takes fewer instructions than a=0 (−398 (−11.8 %)), the same within ±2 % whatever b is",
        ),
        ((30, 40, 30, 40), "lines", "a=1 shares more cache lines than a=0 (+10 (+33.3 %)), whatever b is"),
    ],
)
def test_a_headline_on_counts_says_what_is_counted_and_how_equal_the_levels_are(
    cells: tuple[float, ...], unit: str, said: str
) -> None:
    names = ("0-0", "1-0", "0-1", "1-1")
    found = counted_effects({name: [count] for name, count in zip(names, cells, strict=True)}, unit)
    assert sentence_of(found["a: 1"], list(found.values()), Rule.of_edition(2, delta_pct=2)) == said
