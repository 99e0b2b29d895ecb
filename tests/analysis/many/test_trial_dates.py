"""The time at which a run's own trials began, in whatever form a received run states it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from made_runs import make_run

from kduel.analysis.campaigns.history import history
from kduel.analysis.index import run_query, update
from kduel.analysis.indexed import indexed_history
from kduel.cli.query import command as query_command
from kduel.core.progress import Progress
from kduel.core.results import Results
from kduel.judge.evaluate import judge_run
from kduel.report import report_format
from kduel.report.content.provenance import when
from kduel.report.site.content import pages
from kduel.store.manifest import write_manifest
from kduel.store.merged import merge
from kduel.store.rundir import INDEX


def with_starts(run: Path, change: Callable[[str], str]) -> Path:
    """The run with other starts of its trials, and manifests of these."""
    for trial in (run / "trials").iterdir():
        path = trial / "trial.json"
        record = msgspec.json.decode(path.read_bytes())
        record["started"] = change(record["started"])
        path.write_bytes(msgspec.json.encode(record))
        write_manifest(trial)
    return run


def in_zone(hours: int) -> Callable[[str], str]:
    """The same time, as local time of a zone."""
    offset = timedelta(hours=hours)
    return lambda text: (datetime.fromisoformat(text) + offset).isoformat()[:-6] + f"{hours:+03d}:00"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Runs of which the first one's local date is the last, and one without a date."""
    place = tmp_path / "runs"
    with_starts(make_run(place / "b-first", blocks=4, most=4, seed=1, day=3), in_zone(14))
    make_run(place / "a-second", blocks=4, most=4, seed=2, day=3)
    with_starts(place / "a-second", lambda text: text.replace("T00:", "T01:"))
    with_starts(make_run(place / "none", blocks=4, most=4, seed=3, day=9), lambda _: "tomorrow")
    return place


@pytest.fixture
def index(place: Path) -> Path:
    return update(place, sorted(place.iterdir()), place / INDEX, Progress()).path


def test_an_index_has_them_in_utc(index: Path) -> None:
    assert run_query(index, "SELECT path, started, measured FROM run ORDER BY started").rows == [
        ["none", None, None],
        ["b-first", *["2026-01-04T00:00:00+00:00"] * 2],
        ["a-second", *["2026-01-04T01:00:00+00:00"] * 2],
    ]
    latest = run_query(index, "latest")
    assert {row[latest.columns.index("path")] for row in latest.rows} == {"a-second"}
    page = str({found.title: found for found in pages(index, {})}["3 runs"].sections[-1])
    assert page.index("a-second") < page.index("b-first") < page.index("none")


def test_both_forms_of_a_history_show_the_same_points(place: Path, index: Path) -> None:
    found, known = history([place]), indexed_history(index)
    for lines in (found.lines, known.lines):
        assert [[Path(point.run).name for point in line.points] for line in lines] == [["b-first", "a-second"]] * 2
        assert {line.points[0].when for line in lines} == {"2026-01-04T00:00:00+00:00"}
    form = "2026-01-31 or 2026-01-31T10:00:00+02:00"
    assert found.skipped == {str(place / "none"): f"its date, 'tomorrow', is not of the form {form}"}
    assert known.skipped == {"none": "its date is unknown"}


def test_a_series_has_no_row_of_a_run_that_it_leaves_out(place: Path, index: Path) -> None:
    done = CliRunner().invoke(query_command, [str(place), "--series", "job/time"])
    assert "left out: none (its date is unknown)" in done.stderr
    assert [row[1] for row in csv.reader(io.StringIO(done.stdout))] == ["run", "b-first", "a-second"]


def test_parts_are_merged_in_the_order_of_time(place: Path, tmp_path: Path) -> None:
    with_starts(make_run(place / "empty", blocks=4, most=4, seed=4, day=1), lambda _: "")
    out = tmp_path / "merged"
    parts = merge(sorted(place.iterdir()), out).parts
    assert [part.name for part in parts] == ["b-first", "a-second", "empty", "none"], "unknown starts come last"
    starts = [part.started for part in judge_run(out).study.parts]
    assert starts[:2] == ["2026-01-04T00:00:00+00:00", "2026-01-04T01:00:00+00:00"]


def test_reports_name_the_day_in_utc(place: Path, tmp_path: Path) -> None:
    results = judge_run(with_starts(make_run(tmp_path / "west", blocks=4, most=4, day=3), in_zone(-2)))
    assert when(results).startswith("Measured 2026-01-04 by ")
    assert sorted(starts(results)) == ["2026-01-04T00:01:00+00:00"]
    assert starts(judge_run(place / "none")) == []


def starts(results: Results) -> list[str]:
    """Those that the report for KCIDB states."""
    tests = msgspec.json.decode(report_format("kcidb").render(results))["tests"]
    return [test["start_time"] for test in tests if "start_time" in test]
