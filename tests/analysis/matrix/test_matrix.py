"""Matrices: their shape, the growth fitted, the pairs compared, and advice that only verdicts carry."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kduel.analysis.matrix import Matrix, advise, shape
from kduel.analysis.matrix.grid import GridPoint, pairs, places
from kduel.analysis.matrix.growth import growth
from kduel.analysis.tradeoffs.duels import duels
from kduel.core.experiment import RESOLUTION, MachineRecord
from kduel.core.host import OTHER_WORK
from kduel.core.metric_results import ConditionResult, MetricResult
from kduel.core.results import ContenderResult, Results, StudyResult, TrialResult
from kduel.core.samples import StepResult
from kduel.judge.imported import results as imported_results
from kduel.judge.verdict.judge import judge
from kduel.report.content.matrixtext import advice_lines
from kduel.report.page.tradeoffs import tradeoffs_part
from kduel.store.imported.support.names import step_of

PUBLISHED = Path(__file__).parents[3] / "studies/published/policies.csv"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Results:
    from click.testing import CliRunner

    from kduel.cli.import_ import command

    run = tmp_path_factory.mktemp("published") / "run"
    done = CliRunner().invoke(command, [str(PUBLISHED), "--out", str(run)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return imported_results(run)


def test_the_published_study_is_27_cells(published: Results) -> None:
    matrix = shape(published)
    assert matrix is not None
    assert {family: [place.count for place in members] for family, members in matrix.families.items()} == {
        family: [10, 100, 1000] for family in ("cpu", "io", "mixed")
    }
    assert len(matrix.cells) == 27
    assert all(cell.n in (5, 6, 4) for cell in matrix.cells)


def test_the_published_claims(published: Results) -> None:
    matrix = shape(published)
    assert matrix is not None

    def cell(contender: str, label: str) -> MetricResult:
        (found,) = [
            j.result
            for j in matrix.judged
            if j.pair.contender == contender and j.place.label == label and j.result.metric == "wall"
        ]
        return found

    large = cell("SCHED_OTHER", "io-large")
    assert large.verdict == "faster"
    assert large.effect_pct == pytest.approx(-25.8, abs=0.05)
    assert cell("SCHED_OTHER", "cpu-large").verdict == "undecided", "over all comparisons together"
    assert cell("SCHED_OTHER", "cpu-large").effect_pct == pytest.approx(8.0, abs=0.5)
    assert cell("SCHED_OTHER", "mixed-small").verdict == "undecided", "it is not quicker, as the study claims"
    # "increasing near exponentially": it is linear.
    (found,) = [g for g in matrix.growth if (g.family, g.contender, g.metric) == ("cpu", "SCHED_OTHER", "wall")]
    assert found.low < 1 < found.high
    assert "linear growth is not excluded" in found.told
    assert "10^9 times" in found.told


def test_families_are_labels_that_differ_in_one_number() -> None:
    found = named(["kload-cpu-10", "kload-cpu-100", "kload-io-10", "hackbench", "cyclictest-2t", "kload-io-100"])
    assert [(place.family, place.count) for place in found] == [
        ("kload-cpu", 10), ("kload-cpu", 100), ("kload-io", 10), ("kload-io", 100)
    ]  # fmt: skip
    found = named(["kload-cpu-10-20000i", "kload-cpu-100-20000i", "sysbench-cpu-1t", "sysbench-cpu-2t"])
    assert [(place.family, place.count) for place in found] == [
        ("kload-cpu-20000i", 10), ("kload-cpu-20000i", 100), ("sysbench-cpu", 1), ("sysbench-cpu", 2)
    ]  # fmt: skip
    assert named(["a", "b-1", "c-x"]) == []


def named(labels: list[str]) -> list[GridPoint]:
    """The places of imported benchmarks, of which only the labels are known."""
    return places([step_of(label) for label in labels])


def test_a_runs_own_families_come_from_the_parameters() -> None:
    def step(label: str, benchmark: str = "kload", **parameters: object) -> StepResult:
        return StepResult(label=label, benchmark=benchmark, parameters=parameters)

    steps = [
        step("few", kind="cpu", processes=10, pinned=False),
        step("many", kind="cpu", processes=100, pinned=False),
        step("pinned-1", kind="cpu", processes=1000, pinned=True),
        step("pinned-2", "other", kind="cpu", processes=100, pinned=True),
        step("small-cpu", "sysbench-cpu", threads=1, time=10),
        step("large-cpu", "sysbench-cpu", threads=2, time=10),
    ]
    assert [(place.label, place.family, place.count, place.parameter) for place in places(steps)] == [
        ("few", "kload", 10, "processes"), ("many", "kload", 100, "processes"),
        ("small-cpu", "cpu", 1, "threads"), ("large-cpu", "cpu", 2, "threads"),
    ]  # fmt: skip


@given(st.lists(st.text("ab1290-", min_size=1, max_size=12), unique=True, max_size=12))
def test_a_label_has_one_place_at_most(labels: list[str]) -> None:
    found = named(labels)
    assert len({place.label for place in found}) == len(found)
    for family in {place.family for place in found}:
        assert len([place for place in found if place.family == family]) >= 2


def members(*counts: int) -> list[GridPoint]:
    return [GridPoint(f"x-{count}", "x", count) for count in counts]


@given(st.floats(-0.5, 3), st.floats(0.001, 1000), st.integers(3, 12))
def test_a_power_law_is_found_exactly(power: float, scale: float, blocks: int) -> None:
    values = {f"x-{n}": [scale * n**power] * blocks for n in (10, 100, 1000)}
    found = growth(members(10, 100, 1000), "c", "wall", values)
    assert found is not None
    assert found.exponent == pytest.approx(power, abs=1e-9)
    assert found.low == pytest.approx(found.high, abs=1e-6)


def test_the_exponents_interval_covers_as_it_says() -> None:
    draw = random.Random(7)
    covered = 0
    for _ in range(400):
        values = {f"x-{n}": [0.01 * n**1.2 * math.exp(draw.gauss(0, 0.1)) for _ in range(6)] for n in (10, 100, 1000)}
        found = growth(members(10, 100, 1000), "c", "wall", values)
        assert found is not None
        covered += found.low <= 1.2 <= found.high
    assert 365 <= covered <= 394  # 95 % of 400 is 380


@pytest.mark.parametrize(
    ("power", "told"),
    [(1.003, "a linear growth is not excluded"), (1.01, "faster than linear"), (0.5, "slower than")],
)
def test_what_is_linear_by_the_digits_shown_is_called_linear(power: float, told: str) -> None:
    values = {f"x-{n}": [2.0 * n**power] * 5 for n in (10, 100, 1000)}
    found = growth(members(10, 100, 1000), "c", "wall", values)
    assert found is not None and told in found.told


def test_an_exponential_is_told_as_one() -> None:
    draw = random.Random(8)
    values = {f"x-{n}": [math.exp(0.01 * n + draw.gauss(0, 0.02)) for _ in range(6)] for n in (10, 100, 1000)}
    found = growth(members(10, 100, 1000), "c", "wall", values, times=True)
    assert found is not None
    assert "steepens" in found.told and "an exponential fits too" in found.told


def test_a_counted_growth_needs_one_block_and_claims_no_chance() -> None:
    values = {"x-10": [0.1], "x-100": [1.0], "x-1000": [20.0]}
    assert growth(members(10, 100, 1000), "c", "wall", values) is None, "one block gives no interval"
    found = growth(members(10, 100, 1000), "c", "wall", values, varies=False)
    assert found is not None
    assert found.steps == pytest.approx([1, math.log10(20)])
    assert "counted, not estimated): n^1.000 from 10 to 100, n^1.301 from 100 to 1000" in found.told
    assert "not excluded" not in found.told


def test_no_growth_without_positive_values_or_blocks() -> None:
    assert growth(members(10, 100), "c", "user", {"x-10": [0.0] * 5, "x-100": [1.0] * 5}) is None
    assert growth(members(10, 100), "c", "user", {"x-10": [1.0, 2.0], "x-100": [1.0, 2.0]}) is None
    assert growth(members(10, 100), "c", "user", {"x-10": [1.0, None, 1, 1], "x-100": [1.0, 2, None, 1]}) is None


def crossed(
    seed: int = 3, blocks: int = 6, carry_over: bool = False, machines: Sequence[str] = (), covariate: bool = False
) -> Results:
    """Two kernels x three policies x two counts; the newer kernel is 20 % quicker, fifo 30 % quicker, nothing else. Machines take
    turns at blocks."""
    machine_of = {block: machines[block % len(machines)] for block in range(1, blocks + 1)} if machines else {}
    draw = random.Random(seed)
    contenders = [
        ContenderResult(name=f"{kernel} {policy}", kernel=kernel, policy=policy)
        for kernel in ("debian:6.1", "debian:6.12")
        for policy in ("other", "rr:50", "fifo:50")
    ]
    trials, values = [], {}
    shuffled = random.Random(seed + 1)
    for block in range(1, blocks + 1):
        for position, contender in enumerate(shuffled.sample(contenders, len(contenders))):
            trials.append(
                TrialResult(
                    id=f"{block}-{position}",
                    block=block,
                    position=len(trials),
                    contender=contender.name,
                    status="ok",
                    machine=machine_of.get(block, ""),
                    other_work_before=draw.random() if covariate else None,
                )
            )
            for count in (10, 1000):
                factor = (0.8 if contender.kernel == "debian:6.12" else 1) * (
                    0.7 if "fifo" in contender.policy else 1
                )
                values.setdefault(f"kload-cpu-{count}", {}).setdefault(contender.name, []).append(
                    count * 0.01 * factor * math.exp(draw.gauss(0, 0.01))
                )
    from kduel.core.experiment import Metric
    from kduel.core.samples import Samples, StepResult, steps_of
    from kduel.judge.verdict.rule import Rule

    tables = [
        Samples(
            benchmark=label,
            metric=Metric("wall", "s", "lower", aspect="scheduling"),
            step=StepResult(
                label=label, benchmark="kload", parameters={"kind": "cpu", "processes": int(label.split("-")[-1])}
            ),
            blocks=list(range(1, blocks + 1)),
            values={c.name: values[label][c.name] for c in contenders},
            order={c.name: [t.position for t in trials if t.contender == c.name] for c in contenders},
            machines=list(machine_of.values()),
            covariates={
                OTHER_WORK: {
                    c.name: [t.other_work_before for t in trials if t.contender == c.name] for c in contenders
                }
            },
        )
        for label in values
    ]
    covariates = [OTHER_WORK] if covariate else []
    rule = Rule.fixed_blocks(blocks, edition=2, carry_over=carry_over, covariates=tuple(covariates))
    return Results(
        study=StudyResult(fixed=blocks, edition=2, carry_over=carry_over, covariates=covariates),
        machine=MachineRecord(),
        contenders=contenders,
        trials=trials,
        metrics=judge(tables, rule),
        steps=steps_of(tables),
        blocks=list(range(1, blocks + 1)),
    )


def test_each_contender_is_compared_with_those_that_differ_in_one_thing() -> None:
    found = pairs(crossed())
    assert {(pair.reference, pair.contender, pair.factor) for pair in found} == {
        ("debian:6.1 other", "debian:6.12 other", "kernel"),
        ("debian:6.1 rr:50", "debian:6.12 rr:50", "kernel"),
        ("debian:6.1 fifo:50", "debian:6.12 fifo:50", "kernel"),
        ("debian:6.1 other", "debian:6.1 rr:50", "policy"),
        ("debian:6.1 other", "debian:6.1 fifo:50", "policy"),
        ("debian:6.12 other", "debian:6.12 rr:50", "policy"),
        ("debian:6.12 other", "debian:6.12 fifo:50", "policy"),
    }
    assert {pair.within for pair in found if pair.factor == "policy"} == {"debian:6.1", "debian:6.12"}


def test_what_is_compared_in_the_same_surroundings_stands_together() -> None:
    found = pairs(crossed())
    assert [(pair.factor, pair.within) for pair in found] == [
        *(("kernel", policy) for policy in ("other", "rr:50", "fifo:50")),
        *[("policy", "debian:6.1")] * 2,
        *[("policy", "debian:6.12")] * 2,
    ]


def test_a_page_of_a_matrix_begins_with_it() -> None:
    from kduel.report import report_format

    page = report_format("html").render(crossed())
    assert page.index('<section id="matrix">') < page.index('<section id="verdicts"')
    assert "scheduler&#39;s counters" in page or "scheduler's counters" in page, "a family by themselves"
    assert "over the whole matrix" not in page
    results = crossed()
    other = [metric for metric in results.metrics if metric.benchmark == "kload-cpu-10"]
    for metric in other:
        metric.benchmark = "hackbench"
    twice = crossed().metrics
    results.metrics = [*twice, *other]
    page = report_format("html").render(results)
    assert page.index('<section id="matrix">') > page.index('<section id="verdicts"')
    assert page.count('<section id="matrix">') == 1


def test_the_terminals_report_of_a_matrix_is_its_tables() -> None:
    from kduel.report import report_format

    results = crossed()
    text = report_format("text").render(results)
    assert "compared" in text and "rr:50 against other, debian:6.12" in text
    verdicts = text.split("Notes")[0].split("What can")[0]
    assert not re.search("^kload-cpu-10/wall", verdicts, re.MULTILINE), "no list of all verdicts before it"
    for metric in results.metrics[:5]:
        metric.benchmark = "hackbench"
    assert "hackbench/wall" in report_format("text").render(results), (
        "but where there is more than the matrix, there is"
    )


def test_sysctls_are_a_factor_too() -> None:
    results = crossed()
    results.contenders = [
        ContenderResult(name="a", kernel="k"),
        ContenderResult(name="b", kernel="l"),
        ContenderResult(name="c", kernel="l", facts={"sysctl": {"debug.sched.base_slice_ns": 6}}),
    ]
    assert [(pair.reference, pair.contender, pair.factor) for pair in pairs(results)] == [
        ("a", "b", "kernel"),
        ("b", "c", "sysctl"),
    ]


def test_sysctls_that_all_have_are_no_part_of_a_columns_name() -> None:
    results = crossed()
    both = {"kernel.sched_autogroup_enabled": 0}
    results.contenders = [
        ContenderResult(name="a", kernel="k", facts={"sysctl": both}),
        ContenderResult(name="b", kernel="l", facts={"sysctl": both}),
        ContenderResult(name="c", kernel="l", facts={"sysctl": both | {"debug.sched.base_slice_ns": 6}}),
    ]
    assert [(pair.factor, pair.levels, pair.within) for pair in pairs(results)] == [
        ("kernel", ("k", "l"), "default sysctl"),
        ("sysctl", ("default", "debug.sched.base_slice_ns=6"), "l"),
    ]


def test_every_cell_has_its_verdict_against_the_right_reference() -> None:
    matrix = shape(crossed())
    assert isinstance(matrix, Matrix)
    assert len(matrix.judged) == 7 * 2
    for judged in matrix.judged:
        if judged.pair.factor == "kernel":
            assert judged.result.verdict == "faster"
            assert judged.result.effect_pct == pytest.approx(-20, abs=3)
        elif "fifo" in judged.pair.contender:
            assert judged.result.effect_pct == pytest.approx(-30, abs=3)
        else:
            assert judged.result.verdict in ("undecided", "equivalent")
            assert abs(judged.result.effect_pct or 0) < 3


@pytest.mark.parametrize(
    "study",
    [{"carry_over": True}, {"carry_over": True, "machines": ("a", "b")}, {"covariate": True}],
    ids=["the trial before", "on two machines", "other work"],
)
def test_what_enters_the_interval_is_the_same_as_in_the_run_whichever_pair_is_compared(study: dict[str, Any]) -> None:
    results = crossed(blocks=20, **study)
    own = {(one.benchmark, one.baseline, one.contender): one.effect_pct for one in results.metrics}
    matrix = shape(results)
    assert matrix is not None
    found = {
        key: one.result.effect_pct
        for one in matrix.judged
        if (key := (one.place.label, one.pair.reference, one.pair.contender)) in own
    }
    assert len(found) == 6
    assert found == pytest.approx({key: own[key] for key in found}, rel=1e-9)


def test_each_pair_is_judged_by_the_machines_of_its_blocks() -> None:
    results = crossed(blocks=8, machines=["a", "b"])
    matrix = shape(results)
    assert matrix is not None
    other = duels(results, [("kload-cpu-10", "wall")])[0].results["debian:6.1 rr:50", "debian:6.12 rr:50"]
    for result in (*(one.result for one in matrix.judged), other):
        assert result.machines is not None
        assert {(one.machine, one.n) for one in result.machines.effects} == {("a", 4), ("b", 4)}


def test_a_run_without_families_is_no_matrix() -> None:
    results = crossed()
    results.metrics = [metric for metric in results.metrics if metric.benchmark == "kload-cpu-10"]
    assert shape(results) is None


def test_advice_rests_on_verdicts_only() -> None:
    results = crossed()
    advice = advise(results)
    assert {one.use for one in advice} == {"throughput"}
    by_contender = {one.contender: one for one in advice}
    fifo = by_contender["debian:6.1 fifo:50"]
    assert "is better than debian:6.1 other" in fifo.told
    assert {(s.benchmark, s.metric) for s in fifo.better} == {("kload-cpu-10", "wall"), ("kload-cpu-1000", "wall")}
    assert "nothing is decided" in by_contender["debian:6.1 rr:50"].told
    for metric in results.metrics:
        metric.verdict = "undecided"
    assert all("nothing is decided" in one.told and not one.better for one in advise(results))
    results.metrics[0].verdict, results.metrics[1].verdict = "faster", "faster"
    results.metrics[0].below_delta = results.metrics[1].below_delta = True
    assert all("nothing is decided" in one.told for one in advise(results)), "too small to matter is no advice"


def test_advice_counts_what_does_not_stand_out() -> None:
    results = crossed()
    mine = [metric for metric in results.metrics if metric.contender == "debian:6.12 other"]
    assert len(mine) == 2
    mine[0].verdict, mine[1].verdict = "slower", "slower"
    mine[1].below_delta = True
    (said,) = [one.told for one in advise(results) if one.contender == "debian:6.12 other"]
    assert "is worse" in said and said.endswith("(no difference that matters in 1 more).")
    mine[1].verdict = "undecided"
    mine[1].below_delta = False
    (said,) = [one.told for one in advise(results) if one.contender == "debian:6.12 other"]
    assert said.endswith("(1 more undecided).")
    mine[0].scale, mine[0].effect_pct, mine[0].effect, mine[0].baseline_mean = "exact", None, 4999.0, 9.7
    (said,) = [one.told for one in advise(results) if one.contender == "debian:6.12 other"]
    assert "wall 520 times (" in said
    mine[0].below_delta = True
    mine[1].verdict = "equivalent"
    (one,) = [one for one in advise(results) if one.contender == "debian:6.12 other"]
    assert "make no difference that matters" in one.told
    assert {support.verdict for support in one.same} == {"equivalent"}, "and so its links' signs say"


def test_a_difference_too_small_to_matter_has_no_colour() -> None:
    from kduel.report import report_format
    from kduel.report.page.matrix import heat_cells

    results = crossed()
    results.machine = MachineRecord(exact=True)
    results.study.delta = 50.0
    cells = heat_cells(shape(results) or pytest.fail("no matrix"))
    assert {cell.tone for cell in cells} == {"same", "undecided"}
    assert "≈ −20 %" in {cell.said for cell in cells}
    results.study.delta = 1.0
    cells = heat_cells(shape(results) or pytest.fail("no matrix"))
    assert "better" in {cell.tone for cell in cells}
    text = report_format("matrix").render(results)
    assert "≈ shown to be less than the 1 % that matter" in text and "▲ −20" in text


def test_exact_cpus_have_a_matrix_where_all_trials_of_a_contender_are_void() -> None:
    """It crashed; and what the clock does not resolve was a difference."""
    results = crossed(blocks=1)
    results.machine = MachineRecord(exact=True, facts={RESOLUTION: 5_000_000})
    void = "debian:6.1 rr:50"
    for metric in results.metrics:
        metric.unit, metric.resolution = "ms", 5.0
        metric.values[void] = [None]
        if metric.contender != void:
            shift = 4.0 if metric.contender == "debian:6.12 other" else 100.0
            metric.conditions = [
                ConditionResult(name=f"c{at}", block=1, baseline=at, contender=at + shift)
                for at in (10.0, 20.0, 30.0)
            ]
    matrix = shape(results)
    assert matrix is not None
    judged = {(j.pair.reference, j.pair.contender): j.result for j in matrix.judged}
    assert {one.verdict for names, one in judged.items() if void in names} == {"undecided"}
    assert judged["debian:6.1 other", "debian:6.12 other"].verdict == "equal"


def test_every_use_speaks_of_metrics_that_there_are() -> None:
    """A renamed metric must not silence an advice."""
    from kduel.analysis.matrix.advice import USES
    from kduel.benchmarks import benchmark
    from kduel.core.plugins import plugins

    found = set()
    for name in plugins("benchmarks"):
        chosen = benchmark(name)
        for table in ({}, {"load": "sysbench-cpu"}, {"hogs": 4}):
            try:
                typed = chosen.read_parameters(table)
            except Exception:  # noqa: BLE001 - it has no such parameter, or needs one
                continue
            found |= {(metric.aspect, metric.statistic) for metric in chosen.metrics(typed)}
    for wanted in USES.values():
        for aspect, statistics in wanted.items():
            assert aspect in {known for known, _ in found}, aspect
            assert {(aspect, statistic) for statistic in statistics} <= found, aspect


def test_the_plots_hold_what_they_show(published: Results) -> None:
    from kduel.report.page.matrix import matrix_part
    from kduel.report.plots import matrix as matrix_plots

    matrix, part = shape(published), matrix_part(published)
    assert matrix is not None and part is not None
    for family in part.families:
        assert [count for count, _ in family.times] == [count for count, _ in family.switches] == [10, 100, 1000]
    first = str(part.families[0].times[0][1])
    assert first.count('class="piece') == 3 * 3 and first.count('class="spread"') == 3
    wall, user, system = re.findall(r'y="[^"]*" width="([0-9.]+)%" height="[^"]*" class="piece', first)[:3]
    means = matrix.cells[0].means
    assert float(wall) / (float(user) + float(system)) == pytest.approx(
        means["wall"] / (means["user"] + means["system"]), rel=0.01
    )
    matrix.cells[0].sds["wall"] = 99.0
    assert matrix_plots.time_rows(matrix, "cpu")[0]["low"] == 0
    assert part.headlines[0] == "SCHED_OTHER: undecided in 6 of 9 cells, faster in 3"
    assert "io 100 (io-medium)" in [row for row, _ in part.rows], "the answer has the benchmark's name"
    assert {cell.said for cell in part.heat} >= {"−26 % better", "−27 % better", "? +8.3 %"}


def test_the_plain_text_says_cells_verdicts_growth_and_how_sure(published: Results) -> None:
    from kduel.report import report_format

    text = report_format("matrix").render(published)
    assert "SCHED_OTHER  0.272 ± 0.077  2.66 ± 0.19  27.92 ± 0.58" in text
    assert re.search(r"SCHED_OTHER against SCHED_RR +\? −3\d % +▲ −2[67][.\d]* % +▲ −2[56][.\d]* %", text)
    assert "a linear growth is not excluded" in text
    assert "cpu: involuntary + voluntary switches" in text
    assert "cpu: user + system, s" in text
    # The means of the column CPU in the study's appendix: 309 to 331, 367 to 371, 363 to 365 for RR.
    assert re.search(r"^cpu: cpu, % +10 +100 +1000\n─+\nSCHED_RR +321 +367\.4 +364\b", text, re.MULTILINE)
    assert "false discovery" not in text, "these are the run's own verdicts"
    results = crossed()
    assert "false discovery rate of Benjamini and Hochberg over 14 verdicts" in report_format("matrix").render(
        results
    )
    results.metrics = [metric for metric in results.metrics if metric.benchmark == "kload-cpu-10"]
    assert "This run is no matrix" in report_format("matrix").render(results)


def test_what_is_not_decided_is_one_line() -> None:
    """Five laptops' campaigns against a sixth had ten lines, each saying that nothing is decided."""
    results = crossed()
    for metric in results.metrics:
        metric.verdict = "undecided"
    (line,) = advice_lines(advise(results))
    assert line.startswith("Nothing is decided against ") and " for debian:6.1 rr:50 (throughput), " in line
    part = tradeoffs_part(results)
    assert part and not part.advice and part.undecided == [line], "nor has the page one for each"
