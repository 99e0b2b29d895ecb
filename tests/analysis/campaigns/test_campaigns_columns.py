"""Campaigns of many trials: judged unpaired over runs, in blocks within one; what differs decides what is said."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from kduel.analysis.campaigns.attribution import attribute
from kduel.analysis.campaigns.columns import columns_of
from kduel.analysis.campaigns.compare import Campaigns, campaigns
from kduel.analysis.campaigns.history import history
from kduel.cli.query import history as history_command
from kduel.core.errors import InputError
from kduel.core.validation import in_utc, moment
from kduel.report.campaigns.history import picture
from kduel.report.campaigns.wording import changed_section
from kduel.store.imported import Source, bring_in

HEADER = "contender,trial,benchmark,metric,unit,better,value\n"


def made(
    tmp_path: Path, name: str, mean: float, *, conditions: str | None, count: int = 12, unit: str = "events/s"
) -> str:
    """An import of two contenders, `one` with that mean and `other`, a tenth above it."""
    rng = np.random.default_rng(len(name) + int(mean))
    rows = [
        f"{contender},{trial},bench,rate,{unit},higher,{mean * factor * (1 + 0.01 * rng.standard_normal()):.4f}\n"
        for contender, factor in (("one", 1.0), ("other", 1.1))
        for trial in range(1, count + 1)
    ]
    source = tmp_path / f"{name}.csv"
    source.write_text(HEADER + "".join(rows))
    known = None
    if conditions is not None:
        known = tmp_path / f"{name}.toml"
        known.write_text("".join(f"[contenders.{who}]\n{conditions}\n" for who in ("one", "other")))
    bring_in([Source(source)], tmp_path / name, conditions=known)
    return str(tmp_path / name)


OLD = 'release = "6.1.0"\nconditions = { date = "2026-01-01", governor = "performance" }'


def pair_of(found: Campaigns) -> tuple[str | None, str, str]:
    (pair,) = found.between
    return pair.attribution.cause, pair.attribution.told, pair.changes[0].verdict


def test_a_shift_with_one_thing_different_is_put_down_to_it(tmp_path: Path) -> None:
    runs = [
        made(tmp_path, "old", 1000, conditions=OLD),
        made(tmp_path, "new", 1100, conditions=OLD.replace("6.1.0", "6.12.0").replace("01-01", "02-01")),
    ]
    cause, told, verdict = pair_of(campaigns([f"{run}:one" for run in runs]))
    assert (cause, verdict) == ("kernel", "faster")
    assert "not measured in turn" in told


def test_a_shift_with_two_things_different_is_put_down_to_nothing(tmp_path: Path) -> None:
    changed = OLD.replace("6.1.0", "6.12.0").replace('"performance"', '"powersave"')
    runs = [made(tmp_path, "old", 1000, conditions=OLD), made(tmp_path, "new", 1100, conditions=changed)]
    cause, told, verdict = pair_of(campaigns([f"{run}:one" for run in runs]))
    assert (cause, verdict) == (None, "faster")
    assert "2 things differ (kernel, conditions.governor)" in told


def test_what_one_side_does_not_state_may_differ(tmp_path: Path) -> None:
    changed = OLD.replace("6.1.0", "6.12.0").replace(', governor = "performance"', "")
    runs = [made(tmp_path, "old", 1000, conditions=OLD), made(tmp_path, "new", 1100, conditions=changed)]
    cause, told, _ = pair_of(campaigns([f"{run}:one" for run in runs]))
    assert cause is None and "conditions.governor is stated for one of them only" in told


def test_nothing_known_is_nothing_attributed(tmp_path: Path) -> None:
    runs = [made(tmp_path, "old", 1000, conditions=OLD), made(tmp_path, "new", 1100, conditions=None)]
    cause, told, _ = pair_of(campaigns([f"{run}:one" for run in runs]))
    assert cause is None and told.startswith("Nothing is known of where new") and " was measured: " in told
    runs = [made(tmp_path, name, 1000, conditions=None) for name in ("first", "second")]
    _, told, _ = pair_of(campaigns([f"{run}:one" for run in runs]))
    assert " and second" in told and " were measured: " in told


@pytest.mark.parametrize("together", [True, False])
def test_a_benchmark_that_was_called_otherwise_is_a_thing_that_differs(tmp_path: Path, together: bool) -> None:
    text = (Path(__file__).parents[2] / "store/imported/fixtures/fio-3.33-a.json").read_text()
    (tmp_path / "a.json").write_text(text)
    (tmp_path / "b.json").write_text(text.replace('"iodepth" : "1"', '"iodepth" : "32"'))
    known = tmp_path / "known.toml"
    known.write_text(
        "".join(
            f'[contenders.{name}]\nrelease = "{release}"\nconditions = {{ place = "desk" }}\n'
            for name, release in (("old", "6.1.0"), ("new", "6.12.0"))
        )
    )
    old, new = tmp_path / "a.json", tmp_path / "b.json"
    for run, files in {"one": (old, new), "first": (old, old), "second": (new, new)}.items():
        given = [Source(path, name) for path, name in zip(files, ("old", "new"), strict=True)]
        bring_in(given, tmp_path / run, conditions=known)
    pairs = ("one:old", "one:new") if together else ("first:old", "second:new")
    found = campaigns([str(tmp_path / pair) for pair in pairs])
    (pair,) = found.between
    assert pair.attribution.cause is None and "Only one" not in pair.attribution.told
    differing = [one for one in found.confounds if one.group == "benchmarks"]
    assert differing and [*differing[0].values.values()] == ["iodepth=1", "iodepth=32"]
    alike = campaigns([str(tmp_path / "first:old"), str(tmp_path / "first:new")])
    assert alike.between[0].attribution.cause == "kernel"


def test_metrics_of_other_units_are_not_compared(tmp_path: Path) -> None:
    runs = [
        made(tmp_path, "old", 1000, conditions=OLD),
        made(tmp_path, "new", 1100, conditions=OLD, unit="kevents/s"),
    ]
    found = campaigns([f"{run}:one" for run in runs])
    assert found.rows == [] and "unit" in found.left_out["bench/rate"]
    assert changed_section(found).lead == "Nothing is compared: no metric was measured alike in two of these."


def test_contenders_of_one_import_are_in_one_run(tmp_path: Path) -> None:
    first = changed_section(campaigns([made(tmp_path, "old", 1000, conditions=OLD)]))
    assert first.lead.startswith("With other against one, bench does ")
    assert first.sure == [], "within a run the run's own rule holds"


def test_a_cause_that_can_be_named_for_one_pair_is_not_denied(tmp_path: Path) -> None:
    newer = OLD.replace("6.1.0", "6.12.0")
    runs = [
        made(tmp_path, name, mean, conditions=known)
        for name, mean, known in (
            ("old", 1000, OLD), ("new", 1100, newer), ("last", 1200, OLD.replace("performance", "powersave"))
        )
    ]  # fmt: skip
    found = campaigns([f"{run}:one" for run in runs], which="previous")
    assert [pair.attribution.cause for pair in found.between] == ["kernel", None]
    said = " ".join(changed_section(found).sure)
    assert "In 1 of 2 pairs no cause can be named" in said and "No cause" not in said


def test_a_maximum_comes_after_what_many_samples_decide(tmp_path: Path) -> None:
    runs = [made(tmp_path, name, mean, conditions=OLD) for name, mean in (("old", 1000), ("new", 1100))]
    found = campaigns([f"{run}:one" for run in runs])
    (pair,) = found.between
    (mean,) = pair.changes
    assert changed_section(found).lead.startswith("With one in run 2 against run 1, bench does ")
    for effect in (1.0, 90.0):
        pair.changes = [structs.replace(mean, metric="worst", statistic="max", effect_pct=effect), mean]
        lead = changed_section(found).lead
        assert lead.startswith("With one in run 2 against run 1, bench/rate does ") and "; bench/worst " in lead


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["{run}:nobody"], "no contender 'nobody'"), (["{run}:one"], "only one column"), (["{run}", "{run}"], "twice")],
)
def test_bad_columns_are_refused(tmp_path: Path, arguments: list[str], says: str) -> None:
    run = made(tmp_path, "old", 1000, conditions=OLD)
    with pytest.raises(InputError, match=says):
        campaigns([argument.format(run=run) for argument in arguments])


@pytest.mark.slow
def test_history_finds_the_run_where_the_level_changed(tmp_path: Path) -> None:
    from click.testing import CliRunner

    for number in range(12):
        dated = OLD.replace("01-01", f"01-{number + 1:02d}")
        changed = dated.replace("6.1.0", "6.12.0") if number >= 7 else dated
        made(tmp_path, f"run-{number:02d}", 1000 if number < 7 else 900, conditions=changed)
    found = history([tmp_path], contender="one")
    (line,) = found.lines
    assert [step.index for step in line.steps] == [7]
    assert line.points[7].when == "2026-01-08"
    assert "Only one known property differs: kernel" in line.told[0]
    assert len(picture(found)["vconcat"]) == 1
    for form, mark in (("text", "Changed by −"), ("html", "<svg"), ("json", '"steps"')):
        done = CliRunner().invoke(history_command, [str(tmp_path), "--contender", "one", "-f", form])
        assert done.exit_code == 0 and mark in done.output
    plot = tmp_path / "history.svg"
    done = CliRunner().invoke(history_command, [str(tmp_path), "--contender", "one", "--plot", str(plot)])
    assert done.exit_code == 0 and plot.read_text().startswith("<svg")


def test_history_orders_runs_of_one_day_by_their_number(tmp_path: Path) -> None:
    for number in range(1, 13):
        made(tmp_path, f"run-{number}", 1000 if number < 7 else 900, conditions=OLD)
    (line,) = history([tmp_path], contender="one").lines
    assert [Path(point.run).name for point in line.points] == [f"run-{number}" for number in range(1, 13)]
    assert [step.index for step in line.steps] == [6]


def test_a_short_history_finds_a_large_change(tmp_path: Path) -> None:
    for number in range(1, 7):
        made(
            tmp_path,
            f"run-{number}",
            1000 if number < 4 else 900,
            conditions=OLD.replace("01-01", f"01-{number:02d}"),
        )
    (line,) = history([tmp_path], contender="one").lines
    assert [step.index for step in line.steps] == [3]


def test_a_date_that_cannot_be_read_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "kduel.store.imported.support.store.check_dates", lambda *_: None
    )  # An older version imported it.
    made(tmp_path, "old", 1000, conditions=OLD.replace("2026-01-01", "last spring"))
    assert history([tmp_path]).skipped == {
        str(tmp_path / "old"): "its date, 'last spring', is not of the form 2026-01-31 or 2026-01-31T10:00:00+02:00"
    }


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("2026-01-02T09:00:00Z", "2026-01-02T10:00:00Z"),
        ("2026-01-02T10:30:00+02:00", "2026-01-02T09:00:00Z"),
        ("2026-01-02", "2026-01-02T00:00:01Z"),
    ],
)
def test_time_stamps_are_compared_as_times(earlier: str, later: str) -> None:
    assert "" < (in_utc(earlier) or "") < (in_utc(later) or "")


@pytest.mark.parametrize(
    ("when", "told"),
    [
        ("2026-01-31", "2026-01-31"),
        ("2026-01-31 10:00", "2026-01-31T10:00:00+00:00"),
        ("2026-01-31t10:00:00z", "2026-01-31T10:00:00+00:00"),
        ("2026-01-31T10:00:00.25+0530", "2026-01-31T04:30:00.250000+00:00"),
        ("2026-01-31 10:00:00-02", "2026-01-31T12:00:00+00:00"),
    ],
)
def test_a_date_is_read_in_the_forms_of_the_documentation(when: str, told: str) -> None:
    assert in_utc(when) == told


@pytest.mark.parametrize(
    "when",
    [
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:00:00-14:00",
        "10:00:00",
        "last spring",
        "2026-01-31+02:00",
        "2026-01-31x10:00:00",
        "2026-01-3110:00",
        "2026-W05",
        "2026-W05-6",
        "2026-031",
        "20260131",
        "2026-01",
        "2026",
        "2026-02-30",
        "2026-01-31T10",
        "2026-01-31T10:00:00,5",
        "2026-01-31T10:00:00+02:00:01",
        "2026-01-31T10:00:00\n",
        "\u0662026-01-31",
        "",
    ],
)
def test_what_has_no_time_in_utc_is_no_date(when: str) -> None:
    assert in_utc(when) is moment(when) is None


@pytest.mark.slow
def test_runs_measured_here_are_compared_in_blocks(
    kduel: Callable[..., subprocess.CompletedProcess[str]], write_study: Callable[..., Path], tmp_path: Path
) -> None:
    """A real run of the runner with a machine that boots nothing."""

    def output(*arguments: object) -> str:
        done = kduel(*arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    study = write_study(blocks="fixed = 2")
    for name in ("first", "second"):
        output("run", study, "--out", name)
    inside = output("diff", "first", "--full")
    assert "measured by KDuel" in inside and "not measured in turn" not in inside
    across = output("diff", "first:outside-old", "second:outside-old", "--full")
    assert "Nothing that is known differs between them. They were not measured in turn" in " ".join(across.split())
    assert "first outside-old" in across
    assert "2 runs" in output("query", "--history", ".")


@pytest.mark.parametrize(("cpus", "differing"), [(2, []), (4, ["machine.settings.cpus"])])
def test_a_default_that_one_study_states_is_no_difference(
    unpack: Callable[[str], Path], tmp_path: Path, cpus: int, differing: list[str]
) -> None:
    one = unpack("qemu")
    other = shutil.copytree(one, tmp_path / "other")
    lock = json.loads((other / "lock.json").read_text())
    lock["machine"]["settings"]["cpus"] = cpus
    (other / "lock.json").write_text(json.dumps(lock))
    assert attribute(columns_of(one)[0], columns_of(other)[0]).things == differing
