"""Contenders of one run beside each other: judged by the run's own rule, as its report judges them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from made_runs import make_run

from kduel.analysis.campaigns import within
from kduel.analysis.campaigns.claims import Claim, judge_claims
from kduel.analysis.campaigns.columns import Column, columns, series
from kduel.analysis.campaigns.compare import ColumnChange, campaigns, compare
from kduel.cli import kduel
from kduel.core.errors import InputError
from kduel.core.experiment import RESOLUTION, Metric
from kduel.core.samples import Samples
from kduel.judge.evaluate import judge_run, rule_of
from kduel.judge.verdict.judge import judge
from kduel.report.campaigns import page, wording
from kduel.store.rundir import RunDir


@pytest.fixture
def run(unpack: Callable[[str], Path]) -> Path:
    """A run of two contenders, two blocks and an exact machine."""
    return unpack("icount")


def figures(metrics: list) -> dict:  # type: ignore[type-arg]
    return {
        (m.benchmark, m.metric, m.baseline, m.contender): (m.verdict, m.role, m.effect, m.ci_low_pct, m.ci_high_pct)
        for m in metrics
    }


def test_what_the_run_compares_is_judged_as_in_its_report(run: Path) -> None:
    (pair,) = campaigns([str(run)]).between
    assert figures(pair.changes) == figures(judge_run(run).metrics)
    assert {m.scale for m in pair.changes} == {"exact"}, (
        "a deterministic machine's counts are no estimates here either"
    )


def noisy(names: list[str], seed: int) -> list[Samples]:
    """Two primary metrics and an exploratory one over 14 blocks; contenders differ by 2 %."""
    rng = np.random.default_rng(seed)
    blocks = list(range(1, 15))
    places = [rng.permutation(len(names)) + len(names) * index for index in range(len(blocks))]
    return [
        Samples(
            benchmark="bench",
            metric=Metric(name=name, unit="events/s", better="higher"),
            primary=name != "other",
            blocks=blocks,
            values={
                contender: (1000 * 1.02**number * np.exp(0.01 * rng.normal(size=len(blocks)))).tolist()
                for number, contender in enumerate(names)
            },
            order={contender: [int(place[number]) for place in places] for number, contender in enumerate(names)},
        )
        for name in ("rate", "more", "other")
    ]


@pytest.fixture
def simulated(run: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], list[Samples]]:
    """Gives the run so many contenders, with made-up values in place of its own."""

    def make(names: list[str]) -> list[Samples]:
        lock = RunDir.open(run).lock()
        contenders = [msgspec.structs.replace(lock.contenders[0], name=name) for name in names]
        changed = msgspec.to_builtins(lock) | {
            "contenders": msgspec.to_builtins(contenders),
            "kernels": [msgspec.to_builtins(lock.kernels[0])] * len(names),
        }
        changed["machine"]["exact"] = False
        (run / "lock.json").write_bytes(msgspec.json.encode(changed))
        shutil.rmtree(run / "trials")
        (run / "trials").mkdir()
        tables = noisy(names, seed=4)
        for module in ("kduel.analysis.campaigns.within", "kduel.analysis.campaigns.columns"):
            monkeypatch.setattr(f"{module}.collect", lambda _: tables)
        return tables

    return make


def test_looks_primaries_and_the_split_of_alpha_are_the_runs(
    run: Path, simulated: Callable[[list[str]], list[Samples]]
) -> None:
    """A fixed single look after sequential stopping gave 6.7 % of false alarms, not 5 %."""
    tables = simulated(["a", "b", "c"])
    rule = rule_of(RunDir.open(run).lock())
    found = campaigns([str(run)], which="first").between
    assert figures([m for pair in found for m in pair.changes]) == figures(
        sorted(judge(tables, rule), key=lambda m: m.contender)
    )


def test_comparisons_that_the_run_does_not_make_share_its_alpha(
    run: Path, simulated: Callable[[list[str]], list[Samples]]
) -> None:
    tables = simulated(["a", "b", "c", "d", "e"])
    rule = rule_of(RunDir.open(run).lock())
    pairs = campaigns([str(run)], which="all").between
    (between,) = [pair for pair in pairs if (pair.before, pair.after) == ("d", "e")]
    # Six of the ten pairs are without the baseline, and the run's alpha is for four comparisons.
    strict = msgspec.structs.replace(rule, alpha=rule.alpha * 4 / 6)
    expected = [
        m for m in judge([within.with_baseline(table, "d") for table in tables], strict) if m.contender == "e"
    ]
    assert figures(between.changes) == figures(expected)


def test_exact_counts_of_two_runs_on_one_machine_need_no_repetition(run: Path, tmp_path: Path) -> None:
    """`kduel diff OLD NEW` of two exact runs: it called every difference undecided, as each was measured once."""
    again = shutil.copytree(run, tmp_path / "again")
    names = [contender.name for contender in RunDir.open(run).lock().contenders]
    inside = {(m.benchmark, m.metric): (m.verdict, m.effect) for m in judge_run(run).metrics}

    def pair(old: str, new: str) -> ColumnChange:
        (found,) = campaigns([f"{run}:{old}", f"{again}:{new}"]).between
        return found

    same = pair(names[0], names[0])
    assert same.exact and {m.verdict for m in same.changes} == {"equal"}
    other = pair(names[0], names[1])
    assert {(m.benchmark, m.metric): (m.verdict, m.effect) for m in other.changes} == inside
    assert not [w for m in other.changes for w in m.warnings if w.code == "single-trial"]
    text = wording.page_of(campaigns([f"{run}:{names[0]}", f"{again}:{names[1]}"]), [])
    said = str(text)
    assert wording.OVER_CONDITIONS in said
    assert "no verdict" not in said and "n = 1 in every column" not in said and "faster" not in said


def test_a_claim_about_exact_counts_needs_no_repetition(run: Path, tmp_path: Path) -> None:
    again = shutil.copytree(run, tmp_path / "again")
    old, new = (contender.name for contender in RunDir.open(run).lock().contenders)
    key = "/".join(next((m.benchmark, m.metric) for m in judge_run(run).metrics if m.verdict == "fewer"))

    def standings(after: str) -> list[str]:
        found = columns([f"{run}:{old}", f"{again}:{after}"])
        names = {"before": found[0].name, "after": found[1].name, "metric": key, "says": "it"}
        claims = [Claim(**names, side="lower"), Claim(**names, side="higher"), Claim(**names, same=True)]
        return [judged.standing for judged in judge_claims(claims, found)]

    assert standings(new) == ["supported", "contradicted", "contradicted"]
    assert standings(old) == ["contradicted", "contradicted", "supported"], "the same count is no change"


def test_exact_counts_of_two_machines_are_not_compared_as_such(run: Path, tmp_path: Path) -> None:
    again = shutil.copytree(run, tmp_path / "again")
    lock = json.loads((again / "lock.json").read_text())
    lock["machine"]["facts"]["qemu"] = "10.0.13"
    (again / "lock.json").write_text(json.dumps(lock))
    name = RunDir.open(run).lock().contenders[0].name
    (pair,) = campaigns([f"{run}:{name}", f"{again}:{name}"]).between
    assert not pair.exact and "equal" not in {m.verdict for m in pair.changes}


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("seed", "another seed"),
        ("steps", "other operations"),
        ("parameters", "other parameters of operations"),
        ("qemu", "another machine or QEMU"),
    ],
)
def test_exact_counts_under_other_conditions_are_not_compared_as_such(run: Path, key: str, said: str) -> None:
    """With another seed `kduel diff` called a kernel more and fewer than itself: the conditions are drawn by the seed."""
    column, _ = columns([str(run)])
    assert column.exact["seed"] == RunDir.open(run).lock().seed and column.exact["steps"]
    other = msgspec.structs.replace(column, run=run / "other", name="other", exact=column.exact | {key: ["other"]})
    found = compare([column, other])
    (pair,) = found.between
    assert not pair.exact and not {m.verdict for m in pair.changes} & {"fewer", "more", "faster", "slower", "equal"}
    assert said in str(wording.page_of(found, []))


def with_parameters(run: Path, **parameters: object) -> Path:
    """The run, measured with these parameters besides."""
    lock = json.loads((run / "lock.json").read_text())
    for step in lock["steps"]:
        step["parameters"] |= parameters
    (run / "lock.json").write_text(json.dumps(lock))
    return run


@pytest.mark.slow
def test_runs_with_other_parameters_are_compared_within_and_undecided_across(run: Path, tmp_path: Path) -> None:
    """After a run with `--single` nothing at all was compared, and the reason was JSON."""
    again = with_parameters(shutil.copytree(run, tmp_path / "again"), conditions=0)
    inside = figures(judge_run(run).metrics)
    found = campaigns([str(run), str(again)], which="all")
    for pair in found.between:
        same = pair.before.split()[0] == pair.after.split()[0]
        assert len(pair.changes) == (len(inside) if same else 0)
        assert set(pair.unlike.values()) == (
            set() if same else {"counted under conditions in the first, once in the second"}
        )
        assert same or len(pair.unlike) == len(found.rows)
    assert not found.left_out
    text = page.text(wording.page_of(found))
    assert "counted under conditions in the first, once in the second" in " ".join(text.split()) and "{" not in text
    assert all(row.reliability.endswith("with other parameters in some columns") for row in found.rows)


def test_a_parameter_is_named_with_both_values(run: Path, tmp_path: Path) -> None:
    again = with_parameters(shutil.copytree(run, tmp_path / "again"), cpu=1)
    name = RunDir.open(run).lock().contenders[0].name
    (pair,) = campaigns([f"{run}:{name}", f"{again}:{name}"]).between
    assert set(pair.unlike.values()) == {"cpu is not set in the first, 1 in the second"}


def test_a_benchmark_that_differs_under_one_label_is_a_difference(run: Path, tmp_path: Path) -> None:
    """It said that nothing known differs, and below that nothing was measured alike."""
    again = with_parameters(shutil.copytree(run, tmp_path / "again"), cpu=1)
    name = RunDir.open(run).lock().contenders[0].name
    labels = [step.label for step in RunDir.open(run).lock().steps]
    found = campaigns([f"{run}:{name}", f"{again}:{name}"])
    assert [(one.group, one.key, [*one.values.values()]) for one in found.confounds] == [
        ("benchmarks", label, ["cpu not set", "cpu=1"]) for label in labels
    ]
    text = page.text(wording.page_of(found))
    assert f"benchmarks: {labels[0]}" in text and "Nothing that is known" not in text
    assert found.between[0].attribution.things == [f"benchmarks.{label}" for label in labels]
    # What only one of them measured is no difference of the other.
    lock = json.loads((again / "lock.json").read_text())
    for number, step in enumerate(lock["steps"]):
        step["label"] = f"other-{number}"
    (again / "lock.json").write_text(json.dumps(lock))
    assert campaigns([f"{run}:{name}", f"{again}:{name}"]).confounds == []


def test_a_difference_too_small_to_matter_is_called_so(run: Path) -> None:
    """The run's own report says it, too."""
    small = [m for m in campaigns([str(run)], delta=90.0).between[0].changes if m.below_delta]
    assert small
    said = page.text(wording.page_of(campaigns([str(run)], delta=90.0)))
    assert said.count("too small to matter") == len(small) > 0


def test_what_changed_comes_first_and_the_largest_of_it(run: Path) -> None:
    """The text began with 300 lines about what else differs."""
    found = campaigns([str(run)])
    first = wording.page_of(found).sections[0]
    shown = [
        m for m in found.between[0].changes if m.claimed and m.verdict in ("more", "fewer") and not m.below_delta
    ]
    assert shown and first.heading == "" and first.table is not None
    largest = max(shown, key=lambda m: abs(m.effect_pct or 0.0))
    assert first.table.rows[0][0] == f"{largest.benchmark}/{largest.metric}"
    assert len(first.table.rows) == min(wording.MOST_CHANGES, len(shown))
    assert first.sentences[-1].startswith(f"{len(shown)} of {len([m for m in found.between[0].changes if m.n])} ")
    assert [section.heading for section in wording.page_of(found, brief=True).sections] == [""]
    nothing = wording.page_of(campaigns([str(run)], delta=99.0)).sections[0]
    assert nothing.table is None and not nothing.sentences and not nothing.step
    assert re.fullmatch(r"No change that matters is shown in \d+ comparisons: none undecided\.", nothing.lead)


def test_what_changed_names_kernels_and_says_what_is_not_attributable_once(tmp_path: Path) -> None:
    """Readers had to look up what A to D are, and read four times that nothing is attributable."""
    runs = [str(make_run(tmp_path / f"month{month}", 5 * month, day=30 * month)) for month in (1, 2)]
    shown = wording.page_of(campaigns(runs))
    first = shown.sections[0]
    assert shown.title == "old, new in 2 runs"
    assert first.lead.startswith("With new in run 2 (2026-03-02) against run 1 (2026-01-31), job takes "), (
        "one kernel in two runs, not two in one"
    )
    assert " longer (+" in first.lead, "with its interval"
    legend, counted = first.sentences
    assert re.findall(r"un (\d): (month\d) \((\d{4}-\d\d-\d\d)\)", legend)[1][:2] == ("2", "month2")
    assert re.match(r"1 of \d comparisons shows a change that matters; ", counted)
    assert " ".join(first.sure).count("95 %") == 1 and first.step.endswith(" measure run 2 again:")
    assert first.sure[0].startswith("How sure: ") and "Next: " in page.markdown_page(shown)
    assert re.search(r"old did not change between the runs, [+−]?[\d.]+ % \(−?.* %\): no drift", first.sure[1])
    assert first.command == f"kduel run {runs[1]}/study.toml --out again"
    lines = page.text(shown).splitlines()
    assert lines[2].startswith("With new") and f"  {first.command}" in lines, "at the top, and to be pasted"
    assert first.table is not None and first.table.head[1:3] == ["from", "to"]
    assert [row[1:3] for row in first.table.rows] == [["new in run 1", "new in run 2"]]
    heads = [section.table.head for section in shown.sections if section.table and section.table.head[-1] == "n"]
    assert heads == [["metric", "old in run 1", "new in run 1", "old in run 2", "new in run 2", "n"]], "no letters"
    assert "<code>kduel run " in page.html(shown), "what is to be pasted is set as such"
    alike = [str(make_run(tmp_path / f"year{year}/run", day=30 * year)) for year in (1, 2)]
    assert wording.page_of(campaigns(alike)).title == "old, new in 2 runs", "directories of one name are two runs"


@pytest.mark.parametrize(
    ("verdict", "said"), [("slower", "old changed as well"), ("undecided", "Whether old changed"), ("", "drifted")]
)
def test_a_change_is_set_beside_that_of_the_other_kernel(verdict: str, said: str, tmp_path: Path) -> None:
    """What is the machine's is seen in the baseline too; without one nothing tells."""
    found = campaigns([str(make_run(tmp_path / f"month{month}", 5 * month, day=30 * month)) for month in (1, 2)])
    for pair in found.between:
        if pair.before.endswith("old") and pair.after.endswith("old"):
            for one in pair.changes:
                one.verdict, one.n = verdict or one.verdict, one.n if verdict else 0
    assert said in wording.page_of(found).sections[0].sure[1]


def test_what_is_piped_is_short_and_the_rest_is_on_request(run: Path) -> None:
    """It printed 370 lines, of up to 110 columns."""
    brief, full = (CliRunner().invoke(kduel, ["diff", str(run), *more]).output for more in ([], ["--full"]))
    assert brief.splitlines()[2].startswith("With ") and brief.rstrip().endswith("--full")
    assert len(brief.splitlines()) < 30 < len(full.splitlines()) and "Results" in full
    assert max(map(len, [*brief.splitlines(), *full.splitlines()])) <= 100
    told = page.html(wording.page_of(campaigns([str(run)])))
    before, folded = told.split("<details>", 1)
    assert '<p class="answer">With ' in before and "Results" in folded and "Results" not in before
    assert (
        told.count("<details>")
        == told.count("</details>")
        == len(wording.page_of(campaigns([str(run)])).sections) - 1
    )


def test_a_run_that_is_given_twice_is_named(run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"^{run} is given twice"):
        columns([str(run), str(run)])
    name = RunDir.open(run).lock().contenders[1].name
    with pytest.raises(InputError, match=f"^the contender {name} of {run} is given twice"):
        columns([str(run), f"{run}:{name}"])
    again = shutil.copytree(run, tmp_path / "other" / run.name)
    names = [column.name for column in columns([str(run), str(again)])]
    assert len(set(names)) == 4 and names[0].startswith(str(run))


def imported_run(tmp_path: Path, counts: tuple[int, int], *, delta: float = 1.0, factor: float = 2.0) -> Path:
    from kduel.store.imported import Source, bring_in

    rows = [
        f"{arm},{trial},b,{metric},ns,lower,{level * (1 + trial / 1000)}"
        for metric in ("m", "further")
        for arm, level, count in (("old", 100, counts[0]), ("new", 100 * factor, counts[1]))
        for trial in range(1, count + 1)
    ]
    source = tmp_path / "values.csv"
    source.write_text("\n".join(["contender,trial,benchmark,metric,unit,better,value", *rows, ""]))
    bring_in([Source(source)], tmp_path / "import", delta=delta, primary=["m"])
    return tmp_path / "import"


@pytest.mark.parametrize("counts", [(4, 4), (5, 5), (20, 4), (20, 13), (12, 12)])
@pytest.mark.parametrize(("delta", "factor"), [(1.0, 2.0), (5.0, 1.03)])
def test_two_contenders_of_an_import_get_the_verdicts_of_its_report(
    tmp_path: Path, counts: tuple[int, int], delta: float, factor: float
) -> None:
    from kduel.judge.evaluate import judge_run

    run = imported_run(tmp_path, counts, delta=delta, factor=factor)
    (pair,) = campaigns([str(run)]).between
    report = judge_run(run)
    assert [(m.metric, m.verdict, m.role, m.told) for m in pair.changes] == [
        (m.metric, m.verdict, m.role, m.told) for m in report.metrics
    ]
    assert [[w.code for w in m.warnings] for m in pair.changes] == [
        [w.code for w in m.warnings] for m in report.metrics
    ]
    if counts == (20, 4):
        assert "4 trials of new, and" in pair.changes[0].told
        assert any("4 trials of new are too few" in w.message for w in pair.changes[0].warnings)


def test_four_values_of_two_imports_are_too_few_as_in_each_report(tmp_path: Path) -> None:
    runs = []
    for name, factor in (("first", 1.0), ("second", 2.0)):
        (tmp_path / name).mkdir()
        runs.append(imported_run(tmp_path / name, (4, 4), factor=factor))
    (pair,) = campaigns([f"{run}:new" for run in runs]).between
    assert {m.verdict for m in pair.changes} == {"undecided"}
    assert all("takes 5" in m.told for m in pair.changes)


def test_void_trials_are_not_called_valid(tmp_path: Path) -> None:
    make_run(tmp_path / "a", 3)
    make_run(tmp_path / "b", 3, day=5, seed=2, void=(2, 5, 8))
    found = campaigns([str(tmp_path / "a"), str(tmp_path / "b")])
    pairs = {(pair.before, pair.after): pair.changes[0].warnings for pair in found.between}
    assert [one.code for one in pairs["a old", "a new"]] == []
    within_b = pairs["b old", "b new"]
    assert "crashes" in [one.code for one in within_b] and "missing-by-arm" not in [one.code for one in within_b]
    assert "crashes" in [one.code for one in pairs["a old", "b new"]]
    assert not [one.message for warnings in pairs.values() for one in warnings if "valid trials" in one.message]


def test_pairs_that_are_not_compared_are_named_with_the_remedy(tmp_path: Path) -> None:
    """`kduel diff OLD NEW` compared the two new kernels of two runs with everything but each other, and did not say so."""
    runs = [str(make_run(tmp_path / name, seed=number)) for number, name in enumerate("ab", 1)]
    found = campaigns(runs)
    assert ("a new", "b new") in {(pair.before, pair.after) for pair in found.between}
    said = page.text(wording.page_of(campaigns(runs, which="previous")))
    pairs = (("old", 1, "old", 2), ("old", 1, "new", 2), ("new", 1, "new", 2))
    named = ", ".join(f"{one} in run {first} with {other} in run {second}" for one, first, other, second in pairs)
    assert f"- {named}: --against all compares every pair" in " ".join(said.split())
    assert "Not compared" not in page.text(wording.page_of(campaigns(runs, which="all")))


def test_a_column_named_by_its_own_name_is_listed_once(tmp_path: Path) -> None:
    one = wording.columns_section(campaigns([str(make_run(tmp_path / "a"))]))
    assert one.table and one.table.head[0] == "column" and one.table.rows[0][0] != one.table.rows[0][1]


def test_columns_without_a_common_metric_have_no_empty_section(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, seed=number) for number, name in enumerate("ab", 1)]
    lock = json.loads((runs[1] / "lock.json").read_text())
    lock["steps"][0]["label"] = "another"
    (runs[1] / "lock.json").write_text(json.dumps(lock))
    shown = wording.page_of(campaigns([f"{run}:new" for run in runs])).sections
    assert [one.heading for one in shown if one.heading == "Results" or " to " in one.heading] == []
    assert "- job/time: one column has it, or none" in page.text(
        wording.page_of(campaigns([f"{run}:new" for run in runs]))
    )


def test_two_runs_of_exact_cpus_are_judged_by_their_primary_metrics_and_clocks(run: Path) -> None:
    """All metrics shared alpha, so that no number of conditions called a difference; and what a trial resolved was lost."""

    def column(name: str, shift: float, resolution: float) -> Column:
        tables = [
            Samples(
                benchmark="wakeup", metric=Metric(f"m{at}", "us", "lower"), primary=not at, counted=True, blocks=[1],
                scheduled=True, resolution=resolution, values={"a": [20.0 + shift]},
                conditions={"a": [{f"c{one}": one + shift for one in range(100, 140, 10)}]},
            )
            for at in range(30)
        ]  # fmt: skip
        first, _ = columns([str(run)])
        exact = first.exact | {RESOLUTION: 40_000}
        return msgspec.structs.replace(first, run=run / name, name=name, exact=exact, series=series(tables, "a", {}))

    def called(resolution: float) -> list[tuple[str, str]]:
        (pair,) = compare([column("old", 0.0, 40.0), column("new", 100.0, resolution)]).between
        return [(one.role, one.verdict) for one in pair.changes]

    assert called(40.0) == [("primary", "slower")] + [("exploratory", "slower")] * 29
    assert {verdict for _, verdict in called(150.0)} == {"equal"}, "one of the two resolves no more"
