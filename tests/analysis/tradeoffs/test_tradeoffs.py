"""Trade-offs: a star only where verdicts carry it, the Pareto view, thread scaling; and how text and page say them."""

from __future__ import annotations

import csv
import math
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kduel.analysis.matrix.scaling import scaling
from kduel.analysis.tradeoffs import aspects, front
from kduel.analysis.tradeoffs.duels import duels
from kduel.core.experiment import MachineRecord, Metric
from kduel.core.metric_results import FindingResult
from kduel.core.results import ContenderResult, Results, StudyResult, TrialResult
from kduel.core.samples import Samples, StepResult, steps_of
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import Rule
from kduel.report import report_format
from kduel.report.page.tradeoffs import tradeoffs_part
from kduel.report.text import render_text

METRICS: dict[str, tuple[Metric, float]] = {
    "sysbench-cpu-1t": (Metric("events-per-second", "events/s", "higher", aspect="throughput"), 1000.0),
    "sysbench-memory-write-1t": (Metric("throughput", "MiB/s", "higher", aspect="memory-bandwidth"), 8000.0),
    "cyclictest-idle-1t": (Metric("latency-p99", "us", "lower", statistic="p99", aspect="realtime-latency"), 60.0),
    "power": (Metric("load-power", "W", "lower", aspect="power"), 18.0),
    "boot-time": (Metric("total", "s", "lower", aspect="boot-time"), 20.0),
    "system": (Metric("modules", "count", "none", aspect="modules"), 240.0),
}


def made(
    changes: Mapping[str, Mapping[str, float]],
    *,
    blocks: int = 12,
    noise: float = 0.3,
    seed: int = 1,
    void: Mapping[str, Sequence[int]] | None = None,
    waiting: Mapping[str, Sequence[int]] | None = None,
) -> Results:
    """A judged run: by contender and benchmark the change in per cent, the first contender being the baseline. `void` and
    `waiting`: blocks in which a contender has a void trial, or none yet."""
    void, waiting = void or {}, waiting or {}
    draw = random.Random(seed)
    names = list(changes)
    numbers = list(range(1, blocks + 1))
    shuffled = random.Random(seed + 1)
    trials = [
        TrialResult(id=f"{b}-{name}", block=b, position=(b - 1) * len(names) + i, contender=name, status="ok")
        for b in numbers
        for i, name in enumerate(shuffled.sample(names, len(names)))
        if b not in waiting.get(name, ())
    ]
    position = {(trial.block, trial.contender): trial.position for trial in trials}
    tables = []
    for label, (metric, level) in METRICS.items():
        values: dict[str, list[float | None]] = {
            name: [
                level * (1 + changes[name].get(label, 0) / 100) * math.exp(draw.gauss(0, noise / 100))
                for _ in numbers
            ]
            for name in names
        }
        order: dict[str, list[int | None]] = {name: [position.get((b, name)) for b in numbers] for name in names}
        for name in names:
            for b in (*void.get(name, ()), *waiting.get(name, ())):
                values[name][b - 1] = None
        tables.append(
            Samples(
                benchmark=label, metric=metric, primary=label != "system", blocks=numbers, values=values, order=order
            )
        )
    return Results(
        study=StudyResult(name="trade", fixed=blocks, edition=2),
        machine=MachineRecord(kind="ssh"),
        contenders=[ContenderResult(name=name, kernel=f"installed:{name}") for name in names],
        trials=trials,
        metrics=judge(tables, Rule.fixed_blocks(blocks, edition=2)),
        blocks=numbers,
    )  # fmt: skip


THREE = {
    "stock": {},
    "tuned": {"sysbench-cpu-1t": 5, "cyclictest-idle-1t": -20, "power": 8},
    "worse": {"sysbench-cpu-1t": -4, "cyclictest-idle-1t": 0, "power": 8},
}


@pytest.fixture(scope="module")
def three() -> Results:
    return made(THREE)


def test_the_best_is_marked_where_every_verdict_carries_it(three: Results) -> None:
    rows = {row.name: row for row in aspects(three)}
    assert list(rows) == [
        "CPU throughput", "memory bandwidth", "latency, 99 %", "boot time", "power under load", "modules loaded"
    ]  # fmt: skip
    assert rows["CPU throughput"].standing == {"stock": "", "tuned": "best", "worse": ""}
    assert rows["latency, 99 %"].standing["tuned"] == "best"
    assert rows["power under load"].standing == {"stock": "best", "tuned": "", "worse": ""}
    assert set(rows["memory bandwidth"].standing.values()) == {""}
    assert rows["memory bandwidth"].told == "no difference that matters"
    assert rows["modules loaded"].told == "neither way is better"
    assert rows["CPU throughput"].means["tuned"] == pytest.approx(1050, rel=0.01)


def test_two_that_do_not_differ_share_the_star() -> None:
    rows = {row.name: row for row in aspects(made({"a": {}, "b": {"power": -10}, "c": {"power": -10}}))}
    assert rows["power under load"].standing == {"a": "", "b": "shared", "c": "shared"}


def test_the_largest_mean_alone_is_no_star() -> None:
    """Noise as wide as the differences: one of the means is the largest, and nothing is marked."""
    rows = aspects(made({"a": {}, "b": {"power": -1}, "c": {"power": 1}}, blocks=6, noise=5))
    assert all(set(row.standing.values()) == {""} for row in rows)
    assert {row.told for row in rows} <= {
        "not decided",
        "neither way is better",
        "not decided between all that could be best",
    }


def test_better_than_the_baseline_alone_is_no_star() -> None:
    """b and c both beat the baseline, and which of them is the better one nobody knows: no mark for either."""
    found = made({"a": {}, "b": {"power": -30}, "c": {"power": -31.5}}, blocks=6, noise=3, seed=4)
    row = next(row for row in aspects(found) if row.name == "power under load")
    assert [m.verdict for m in found.metrics if m.metric == "load-power"] == ["faster", "faster"]
    assert row.standing == {"a": "", "b": "", "c": ""} and "not decided" in row.told


def test_the_table_shows_the_values_that_the_verdict_rests_on() -> None:
    """Void trials, and a last block that has not ended: what one contender alone has there entered no verdict."""
    found = made({"a": {}, "b": {}}, noise=5, void={"a": [2], "b": [5, 6]}, waiting={"b": [12]})
    verdicts = {(metric.benchmark, metric.metric): metric for metric in found.metrics}
    for row in aspects(found):
        verdict = verdicts[row.benchmark, row.metric]
        assert verdict.n == 8
        assert row.means == {"a": pytest.approx(verdict.baseline_mean), "b": pytest.approx(verdict.mean)}
        assert row.sds == {"a": pytest.approx(verdict.baseline_sd), "b": pytest.approx(verdict.sd)}


def test_of_three_a_value_counts_that_enters_any_verdict() -> None:
    found = made({"a": {}, "b": {}, "c": {}}, noise=5, void={"a": [1, 2], "b": [1, 3]}, waiting={"a": [12]})
    row = aspects(found)[0]
    values = found.metrics[0].values | found.metrics[1].values
    assert row.means["a"] == pytest.approx(sum(map(float, filter(None, values["a"][2:11]))) / 9)
    alone, unfinished = 0, 11
    kept = [value for n, value in enumerate(values["c"]) if n not in (alone, unfinished)]
    assert row.means["c"] == pytest.approx(sum(map(float, filter(None, kept))) / 10)
    counts = {pair: verdict.n for pair, verdict in duels(found, [(row.benchmark, row.metric)])[0].results.items()}
    assert counts == {("a", "b"): 8, ("a", "c"): 9, ("b", "c"): 9}, (
        "the last block counts for none before it has ended"
    )


def test_imported_values_belong_to_no_pairs() -> None:
    found = made({"a": {}, "b": {}}, noise=5, void={"a": [2], "b": [5, 6]})
    found.study.imported, found.trials = True, []
    values = [value for value in found.metrics[0].values["a"] if value is not None]
    assert aspects(found)[0].means["a"] == pytest.approx(sum(values) / 11)


def test_a_metric_that_measures_the_harness_is_no_aspect(three: Results) -> None:
    found = made(THREE)
    for metric in found.metrics:
        if metric.metric == "events-per-second":
            metric.warnings = [FindingResult(code="fixed-by-harness", message="")]
    assert "CPU throughput" not in {row.name for row in aspects(found)}


def test_the_front(three: Results) -> None:
    view = front(three)
    assert view is not None
    assert [(scale.axis, scale.benchmark) for scale in view.scales] == [
        ("throughput", "sysbench-cpu-1t"), ("latency", "cyclictest-idle-1t"), ("power", "power")
    ]  # fmt: skip
    assert set(view.beaten) == {"worse"} and view.unbeaten == ["stock", "tuned"]
    assert set(view.beaten["worse"]) == {"stock", "tuned"}
    assert "worse is beaten by stock and tuned" in view.statements[0]
    assert view.scales[0].places["tuned"].effect == pytest.approx(5, abs=0.5)


def test_a_primary_metric_stands_for_an_axis_before_an_exploratory_one() -> None:
    found = made(THREE)
    for metric in found.metrics:
        if metric.benchmark == "sysbench-cpu-1t":
            metric.role = "exploratory"
        elif metric.benchmark == "sysbench-memory-write-1t":
            # The last of the axis' aspects: by their order the other one would stand for it.
            metric.aspect = "scheduling"
    view = front(found)
    assert view is not None and view.scales[0].benchmark == "sysbench-memory-write-1t"


def test_nobody_is_beaten_without_verdicts() -> None:
    view = front(made({"a": {}, "b": {"power": 2}}, blocks=6, noise=8))
    assert view is not None and view.beaten == {} and view.undecided
    assert "Verdicts are missing" in view.statements[-1]


def test_nobody_is_beaten_while_one_scale_is_undecided() -> None:
    found = made(THREE)
    for metric in found.metrics:
        if (metric.benchmark, metric.contender) == ("cyclictest-idle-1t", "worse"):
            metric.verdict = "undecided"
    view = front(found)
    assert view is not None
    assert view.beaten == {"worse": ["tuned"]} and view.undecided, "against stock a verdict is missing"


def test_one_that_beats_all_is_named() -> None:
    view = front(made({"a": {}, "b": {"power": -10, "sysbench-cpu-1t": 5, "cyclictest-idle-1t": -9}}))
    assert view is not None and view.statements[-1].startswith("b beats every other")


def published(name: str, place: Path) -> Results:
    """A published table, imported as a user would."""
    from click.testing import CliRunner

    from kduel.cli.import_ import command
    from kduel.judge.imported import results

    path = Path(__file__).parents[3] / "studies/published" / name
    done = CliRunner().invoke(command, [str(path), "--out", str(place / name)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return results(place / name)


def test_the_published_tables_carry_no_star(tmp_path: Path) -> None:
    """Each was measured once: the published "best" of every aspect is a number, and no verdict."""
    rows = aspects(published("desktop.csv", tmp_path))
    names = {row.name for row in rows}
    assert {"CPU throughput", "memory bandwidth", "file I/O", "switching and waking", "boot time"} <= names
    assert all(set(row.standing.values()) == {""} for row in rows)
    assert front(published("desktop-power.csv", tmp_path)) is None


def test_the_text_says_it(three: Results) -> None:
    text = render_text(three, width=100, colour=False)
    lines = text.splitlines()
    start = lines.index("Trade-offs")
    row = next(line for line in lines[start:] if line.startswith("CPU throughput, events/s"))
    assert row.count("★") == 1
    assert "worse is beaten by stock and tuned" in " ".join(text.split())
    assert "For power, tuned is worse than stock" in " ".join(text.split())
    narrow = render_text(three, width=60, colour=False)
    assert all(len(line) <= 60 for line in narrow.splitlines())
    assert narrow.count("★") == text.count("★")


def test_a_plain_duel_is_not_told_twice() -> None:
    found = made({"a": {}, "b": {"sysbench-cpu-1t": 5}})
    found.metrics = [metric for metric in found.metrics if metric.benchmark != "power"]
    assert "Trade-offs" not in render_text(found, width=100, colour=False)


@pytest.mark.slow
def test_every_sentence_links_to_its_verdicts(three: Results) -> None:
    page = report_format("html").render(three)
    section = page[page.index('<section id="tradeoffs">') : page.index('<section id="values">')]
    part = tradeoffs_part(three)
    assert part is not None and part.pictures
    for one in part.advice:
        supports = [*one.better, *one.worse, *one.same]
        for support in supports:
            number = next(
                n
                for n, key in enumerate(dict.fromkeys((m.benchmark, m.metric) for m in three.metrics))
                if key == (support.benchmark, support.metric)
            )
            assert f'href="#metric-{number}"' in section
            assert f'id="metric-{number}"' in page
    assert section.count("★") >= 4


def test_scaling_by_threads() -> None:
    """Six cores that count fully, eight that count less, six more threads that bring next to nothing: the published form."""
    draw = random.Random(5)
    totals = {6: 6839.0, 14: 12908.0, 20: 13036.0}
    found = made({"a": {}, "b": {}})
    metric = Metric("events-per-second", "events/s", "higher", aspect="throughput")
    tables = [
        Samples(
            benchmark=f"sysbench-cpu-{threads}t",
            metric=metric,
            step=StepResult(
                label=f"sysbench-cpu-{threads}t", benchmark="sysbench-cpu", parameters={"threads": threads}
            ),
            blocks=found.blocks,
            values={name: [total * math.exp(draw.gauss(0, 0.0002)) for _ in found.blocks] for name in ("a", "b")},
        )
        for threads, total in totals.items()
    ]
    found.metrics, found.steps = judge(tables, Rule.fixed_blocks(12, edition=2)), steps_of(tables)
    first, _ = scaling(found)
    assert first.benchmark == "sysbench-cpu" and first.contender == "a"
    assert [step.threads for step in first.steps] == [6, 14, 20]
    assert [round(step.per_thread) for step in first.steps] == [1140, 922, 652]
    assert [round(step.efficiency) for step in first.steps] == [100, 81, 57]
    last = first.steps[-1]
    assert last.low is not None and last.high is not None and last.low < last.efficiency < last.high < last.low + 1
    assert first.told == "20 threads did 1.0 % more in all than 14"
    text = render_text(found, width=100, colour=False)
    assert "Threads" in text.splitlines() and f"{last.efficiency:.1f} % ({last.low:.1f} to {last.high:.1f} %)" in text
    page = report_format("html").render(found)
    assert "sysbench-cpu by threads" in page and "20 threads did 1.0 % more" in page


def test_the_published_scaling_recomputes() -> None:
    """The published per-thread figures and efficiencies, from the totals that it prints."""
    with (Path(__file__).parents[3] / "studies/published/desktop-smt.csv").open(newline="") as stream:
        totals = {int(row["contender"].split("-")[0]): float(row["value"]) for row in csv.DictReader(stream)}
    values: dict[str, Any] = {"a": {}, "b": {}}
    found = made(values, blocks=2)
    metric = Metric("events-per-second", "events/s", "higher", aspect="throughput")
    tables = [
        Samples(
            benchmark=f"sysbench-cpu-{n}t",
            metric=metric,
            step=StepResult(label=f"sysbench-cpu-{n}t", benchmark="sysbench-cpu", parameters={"threads": n}),
            blocks=[1],
            values={"a": [t], "b": [t]},
        )
        for n, t in totals.items()
    ]
    found.metrics, found.steps, found.blocks = judge(tables, Rule.fixed_blocks(2, edition=2)), steps_of(tables), [1]
    steps = scaling(found)[0].steps
    assert [(s.threads, round(s.per_thread), round(s.efficiency)) for s in steps] == [
        (6, 1140, 100), (14, 922, 81), (20, 652, 57)
    ]  # fmt: skip
    assert all(step.low is None for step in steps), "one trial has no interval"


@pytest.mark.slow
def test_the_picture_shows_everyone_in_each_panel(three: Results, tmp_path: Path, need: Callable[..., str]) -> None:
    from browser import PROGRAMS, Browser

    page = tmp_path / "index.html"
    page.write_text(report_format("html").render(three), "utf-8")
    with Browser(need(*PROGRAMS)) as browser:
        browser.open(page)
        shown = "[...document.querySelectorAll('#tradeoffs .picture')].map(p => p.querySelectorAll('.mark-symbol path').length)"
        assert browser.evaluate(shown) == [3, 3, 3]
        assert browser.problems == []
        # What is better stands to the right and above, whichever way the numbers go.
        power = "[...document.querySelectorAll('#tradeoffs .picture')[2].querySelectorAll('.mark-symbol path')]"
        boxes = browser.evaluate(f"{power}.map(p => [p.getBoundingClientRect().x, p.getBoundingClientRect().y])")
    (stock_x, stock_y), (tuned_x, tuned_y), _ = boxes
    assert tuned_x > stock_x and tuned_y > stock_y, "lower latency is to the right, more power below"


def test_a_difference_too_small_to_matter_beats_nobody() -> None:
    """It is real, and it is the same for a choice: no star for it, and nobody beaten by it."""
    results = made({"stock": {}, "tuned": {"sysbench-cpu-1t": 0.4, "power": 0.4}}, noise=0.05, blocks=8)
    small = {m.benchmark for m in results.metrics if m.below_delta}
    assert {"sysbench-cpu-1t", "power"} <= small
    for key in (("sysbench-cpu-1t", "events-per-second"), ("power", "load-power")):
        (found,) = duels(results, [key])
        assert (found.relation("stock", "tuned"), found.relation("tuned", "stock")) == ("same", "same")
    view = front(results)
    assert view is not None and not view.beaten


def test_what_the_harness_sets_for_one_contender_is_compared_for_none() -> None:
    results = made(THREE)
    key = ("power", "load-power")
    assert len(duels(results, [key])) == 1
    one = next(m for m in results.metrics if (m.benchmark, m.metric) == key)
    one.warnings.append(FindingResult(code="fixed-by-harness", message="it is"))
    assert one.by_harness and duels(results, [key]) == []
