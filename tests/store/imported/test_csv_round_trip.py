"""What `--format csv` writes, `kduel import` reads, and finds what the report says, of every kind of run."""

from __future__ import annotations

import csv
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from examples import ALL
from made_runs import make_run

from kduel.core.errors import InputError
from kduel.core.metric_results import ConditionResult
from kduel.core.results import Results
from kduel.judge.evaluate import judge_run
from kduel.report import report_format
from kduel.store.imported import Source, bring_in

HEADER = "contender,trial,benchmark,metric,unit,better,value,kind,aspect,condition\n"


def text_of(results: Results) -> str:
    """The run as CSV."""
    return report_format("csv").render(results)


def brought_in(text: str, place: Path) -> Results:
    """The results of an import of that text."""
    place.mkdir()
    (place / "values.csv").write_text(text)
    bring_in([Source(place / "values.csv")], place / "run")
    return judge_run(place / "run")


def counts(results: Results) -> dict[tuple[str, ...], tuple[object, ...]]:
    """All that a report says of what was counted."""
    return {
        (m.benchmark, m.metric, m.contender): (
            m.word, m.effect, m.ci_low, m.ci_high, m.effect_pct, m.ci_low_pct, m.ci_high_pct, m.baseline_mean, m.mean,
            # An only condition has no name in older runs, and is none.
            [one for one in m.conditions if one.name], m.aspect,
        )
        for m in results.metrics
        if m.scale == "exact"
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["process", "icount", "qemu", "local", "build", "board"])
def test_export_and_import_are_inverse(
    output: object, unpack: Callable[[str], Path], tmp_path: Path, kind: str
) -> None:
    results = judge_run(unpack(kind))
    text = text_of(results)
    again = brought_in(text, tmp_path / "again")
    assert text_of(again) == text
    assert counts(again) == counts(results)


def test_the_roles_of_metrics_come_back(tmp_path: Path) -> None:
    results = ALL["simulated"]()
    roles = {(m.benchmark, m.metric): m.role for m in results.metrics}
    assert set(roles.values()) == {"primary", "exploratory"}
    again = brought_in(text_of(results), tmp_path / "again")
    assert {(m.benchmark, m.metric): m.role for m in again.metrics} == roles


def test_a_metric_has_one_role(tmp_path: Path) -> None:
    rows = "a,1,b,m,s,lower,1,primary\nb,1,b,m,s,lower,2,exploratory\n"
    with pytest.raises(InputError, match="has the role 'exploratory', but 'primary' at"):
        brought_in("contender,trial,benchmark,metric,unit,better,value,role\n" + rows, tmp_path / "two")
    with pytest.raises(InputError, match="the role is 'main'"):
        brought_in(
            "contender,trial,benchmark,metric,unit,better,value,role\n" + rows.replace("primary", "main"),
            tmp_path / "b",
        )


@pytest.mark.parametrize("example", ["published", "simulated", "three", "broken", "exact"])
def test_nothing_is_lost_of_any_results(example: str, tmp_path: Path) -> None:
    text = text_of(ALL[example]())
    assert text_of(brought_in(text, tmp_path / "again")) == text


def conditioned(tmp_path: Path) -> Results:
    """Two blocks of counts under three conditions, whose medians of arms are of different conditions."""
    out = StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        (
            arm,
            block,
            "pipe",
            "instructions",
            "instructions",
            "lower",
            value + block,
            "exact",
            "path-length",
            condition,
        )
        for arm, values in (("old", (100, 200, 300)), ("new", (290, 110, 205)))
        for block in (1, 2)
        for condition, value in zip(("plain", "after exec, x3", "b"), values, strict=True)
    )
    return brought_in(HEADER + out.getvalue(), tmp_path / "first")


def test_counts_under_conditions_come_back_with_their_verdict(tmp_path: Path) -> None:
    results = conditioned(tmp_path)
    (metric,) = results.metrics
    assert metric.word == "depends" and len(metric.conditions) == 6
    assert metric.conditions[0] == ConditionResult(name="plain", block=1, baseline=101, contender=291)
    assert metric.mean is not None and metric.baseline_mean is not None
    assert metric.mean - metric.baseline_mean == metric.effect, (
        "of conditions, not of arms: their medians are 201.5 and 206.5"
    )
    text = text_of(results)
    lines = list(csv.DictReader(StringIO(text)))
    assert len(lines) == 12 and all(line["condition"] and line["kind"] == "exact" for line in lines)
    again = brought_in(text, tmp_path / "again")
    assert counts(again) == counts(results) and text_of(again) == text


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("a,1,b,m,count,lower,1,count,,c", "kind exact"),
        ("a,1,b,m,count,lower,1,,,c", "kind exact"),
        ("a,1,b,m,count,lower,1,exact,,c\na,1,b,m,count,lower,2,exact,,c", "second value"),
        ("a,1,b,m,count,lower,1,exact,,c\na,1,b,m,count,lower,2,exact,,", "second value"),
        ("a,1,b,m,count,lower,1,exact,,\na,1,b,m,count,lower,2,exact,,c", "second value"),
        ("a,1,b,m,count,lower,1,exact,,c\na,2,b,m,count,lower,2,count,,", "kind"),
    ],
)
def test_conditions_that_contradict_are_errors(row: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        brought_in(f"{HEADER}{row}\n", tmp_path / "bad")
    assert said in f"{caught.value.message} {caught.value.remedy}"


@pytest.mark.parametrize("sign", [";", "\t"])
def test_columns_may_be_separated_by_semicolons_or_tabs(sign: str, tmp_path: Path) -> None:
    first = conditioned(tmp_path)
    out = StringIO()
    csv.writer(out, delimiter=sign, lineterminator="\n").writerows(csv.reader(StringIO(text_of(first))))
    assert text_of(brought_in(f"\n{out.getvalue()}", tmp_path / "again")) == text_of(first)


def test_a_comma_in_a_number_is_the_decimal_one_where_semicolons_separate(tmp_path: Path) -> None:
    rows = f"{HEADER}a,1,b,m,s,lower,1.5,time,,\nb,1,b,m,s,lower,2.5,time,,\n"
    again = brought_in(rows.replace(",", ";").replace(".", ","), tmp_path / "again")
    assert text_of(again) == text_of(brought_in(rows, tmp_path / "plain"))
    with pytest.raises(InputError, match="line 2: the value is '1,5', not a number"):
        brought_in(rows.replace("1.5", '"1,5"'), tmp_path / "bad")


def test_a_time_that_never_varied_is_not_exported_as_an_exact_count(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", sd_pct=0.0)
    (metric,) = judge_run(run).metrics
    assert (metric.scale, metric.verdict) == ("exact", "undecided")
    (again,) = brought_in(text_of(judge_run(run)), tmp_path / "again").metrics
    assert again.verdict == "undecided"


STUDIES = Path(__file__).parents[3] / "docs" / "studies"


@pytest.mark.parametrize(("name", "resolution"), [("generations", 20e-6), ("policies", 40e-6)])
def test_what_exact_cpus_scheduled_under_one_condition_stays_without_verdict(
    name: str, resolution: float, tmp_path: Path
) -> None:
    text = (STUDIES / f"{name}.csv").read_text()
    results = brought_in(text, tmp_path / "first")
    assert results.machine.resolution == pytest.approx(resolution)
    assert {m.word for m in results.metrics} <= {"undecided", "equal"}, "one condition may differ by chance"
    again = brought_in(text_of(results), tmp_path / "again")
    assert text_of(results) == text_of(again) and counts(again) == counts(results)


@pytest.mark.parametrize(
    "row", ["scheduled,", "scheduled,0", "scheduled,x", "exact,20000", "scheduled,9999999999999999999999"]
)
def test_what_is_scheduled_and_nothing_else_has_a_resolution(row: str, tmp_path: Path) -> None:
    head = "contender,trial,benchmark,metric,unit,better,value,kind,resolution_ns\n"
    with pytest.raises(InputError, match="resolution_ns"):
        brought_in(f"{head}a,1,b,m,s,lower,1,{row}\nb,1,b,m,s,lower,2,{row}\n", tmp_path / "bad")
