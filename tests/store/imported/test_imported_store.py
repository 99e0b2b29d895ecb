"""An imported run's directory: whole or absent, the originals word for word, everything else read from them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kduel.cli.import_ import command
from kduel.cli.report import command as report
from kduel.core.errors import HostError, InputError
from kduel.judge.imported import results
from kduel.report.content.provenance import when
from kduel.store.imported import Source, bring_in, contenders, declared_keys, environments, read

HEADER = "contender,trial,benchmark,metric,unit,better,value\n"
PUBLISHED = Path(__file__).parents[3] / "studies" / "published"


def csv_file(tmp_path: Path, *lines: str, name: str = "values.csv") -> Source:
    path = tmp_path / name
    path.write_text(HEADER + "".join(f"{line}\n" for line in lines))
    return Source(path)


TWO = ("old,1,b,m,s,lower,1.5", "old,2,b,m,s,lower,1.6", "new,1,b,m,s,lower,1.4", "new,3,b,m,s,lower,1.3")


def test_the_run_holds_the_original_and_says_what_it_is(tmp_path: Path) -> None:
    source = csv_file(tmp_path, *TWO)
    bring_in([source], tmp_path / "run")
    record = json.loads((tmp_path / "run" / "import.json").read_text())
    (stored,) = record["files"]
    kept = tmp_path / "run" / stored["stored"]
    assert kept.read_bytes() == source.path.read_bytes()
    assert stored["sha256"] == hashlib.sha256(kept.read_bytes()).hexdigest()
    assert (stored["name"], stored["format"]) == ("values.csv", "csv")
    assert record["caveat"] == "imported: not interleaved, not randomised, environment unknown"
    assert record["metrics"] == [{"benchmark": "b", "metric": "m", "unit": "s", "better": "lower"}]
    assert record["kduel"] and record["imported"].endswith("+00:00")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "values.csv"]


def test_missing_trials_are_none_and_nothing_is_paired(tmp_path: Path) -> None:
    bring_in([csv_file(tmp_path, *TWO)], tmp_path / "run")
    (table,) = read(tmp_path / "run")
    assert table.blocks == [1, 2, 3]
    assert table.values == {"old": [1.5, 1.6, None], "new": [1.4, None, 1.3]}
    assert table.paired is False and table.order == {}
    assert contenders(tmp_path / "run") == ["old", "new"]


def test_the_baseline_and_the_primary_metrics_may_be_chosen(tmp_path: Path) -> None:
    lines = [line.replace("b,m,", f"{benchmark},m,") for benchmark in ("b", "c") for line in TWO]
    source = csv_file(tmp_path, *lines)
    bring_in([source], tmp_path / "run", baseline="new", primary=["c/m"], delta=2.5)
    tables = {table.key: table for table in read(tmp_path / "run")}
    assert tables["b/m"].contenders == ["new", "old"]
    assert [tables["b/m"].primary, tables["c/m"].primary] == [False, True]
    found = results(tmp_path / "run")
    assert found.study.delta == 2.5
    assert [m.role for m in found.metrics] == ["exploratory", "primary"]
    for wrong in ({"baseline": "none"}, {"primary": ["d"]}, {"delta": 0.0}):
        with pytest.raises(InputError):
            bring_in([source], tmp_path / "other", **wrong)  # type: ignore[arg-type]
        assert not (tmp_path / "other").exists()


def test_what_stands_in_the_way_is_left_alone(tmp_path: Path) -> None:
    source = csv_file(tmp_path, *TWO)
    (tmp_path / "run").mkdir()
    with pytest.raises(InputError, match="is there already"):
        bring_in([source], tmp_path / "run")
    assert not list((tmp_path / "run").iterdir())


def test_an_original_that_was_changed_is_not_read(tmp_path: Path) -> None:
    bring_in([csv_file(tmp_path, *TWO)], tmp_path / "run")
    (kept,) = (tmp_path / "run" / "imported" / "01").iterdir()
    kept.write_text(kept.read_text().replace("1.5", "1.4"))
    with pytest.raises(InputError, match="was changed after"):
        read(tmp_path / "run")
    kept.unlink()
    with pytest.raises(InputError, match="cannot read"):
        results(tmp_path / "run")


def test_import_json_cannot_lead_out_of_the_run(tmp_path: Path) -> None:
    bring_in([csv_file(tmp_path, *TWO)], tmp_path / "run")
    path = tmp_path / "run" / "import.json"
    record = json.loads(path.read_text())
    record["files"][0]["stored"] = "../values.csv"
    path.write_text(json.dumps(record))
    with pytest.raises(InputError, match="outside the run"):
        read(tmp_path / "run")


def test_conditions_become_environments(tmp_path: Path) -> None:
    conditions = tmp_path / "conditions.toml"
    conditions.write_text(
        'declared = ["release"]\n[contenders.old]\nrelease = "6.1"\n[contenders.new]\nrelease = "6.12"\n'
    )
    bring_in([csv_file(tmp_path, *TWO)], tmp_path / "run", conditions=conditions)
    assert environments(tmp_path / "run") == {"old": {"release": "6.1"}, "new": {"release": "6.12"}}
    assert declared_keys(tmp_path / "run") == ("release",)
    found = results(tmp_path / "run")
    assert [(c.name, c.release) for c in found.contenders] == [("old", "6.1"), ("new", "6.12")]
    assert [(d.group, d.key, d.declared) for d in found.differences] == [("kernel", "release", True)]


def test_a_report_says_when_imported_values_were_measured(tmp_path: Path) -> None:
    """It said that the date was not stated."""
    conditions = tmp_path / "conditions.toml"
    conditions.write_text(
        "[contenders.old.conditions]\ndate = '2025-12-27'\n[contenders.new.conditions]\ndate = 2025-12-26\n"
    )
    bring_in([csv_file(tmp_path, *TWO)], tmp_path / "run", conditions=conditions)
    assert "measured 2025-12-26 to 2025-12-27" in when(results(tmp_path / "run"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("contenders = 1", "contenders"),
        ("[contenders.stranger]\nrelease = '1'", "stranger"),
        ("[contenders.old\n", "line 1"),
        ("[contenders.old]\n[other]\n", "other"),
        ("[contenders.old]\nconditions.date = 'yesterday'", "old.conditions.date is 'yesterday'"),
        ("[contenders.new]\nconditions.date = '26.12.2025'", "new.conditions.date is '26.12.2025'"),
        ("[contenders.old]\ndate = '2025-12-26'", "contenders.old has a date"),
        ("[contenders.old]\nconditions.Date = '2025-12-26'", "contenders.old has 'Date'. Did you mean date?"),
        ("[contenders.new]\nconditions.'date ' = '2025-12-26'", "contenders.new has 'date '. Did you mean date?"),
        ("[contenders.new]\nDATE = '2025-12-26'", "contenders.new has 'DATE'. Did you mean date?"),
        ("[contenders.new]\nConditions.date = '2025-12-26'", "has 'Conditions'. Did you mean conditions?"),
        ("\ufeffdeclared = []", "begins with a byte order mark"),
        ("declared = " + 2000 * "[", "nested too deeply"),
        ("[contenders.old]\nload = 9" + 5000 * "9", "integer"),
    ],
)
def test_bad_conditions_are_errors(tmp_path: Path, text: str, said: str) -> None:
    conditions = tmp_path / "conditions.toml"
    conditions.write_text(text)
    with pytest.raises(InputError, match=said) as caught:
        bring_in([csv_file(tmp_path, *TWO)], tmp_path / "run", conditions=conditions)
    assert "conditions.toml" in caught.value.message
    assert not (tmp_path / "run").exists()


def test_the_command_imports_and_says_how_to_go_on(tmp_path: Path) -> None:
    source = csv_file(tmp_path, *TWO)
    ended = CliRunner().invoke(command, [str(source.path), "--out", str(tmp_path / "run")])
    assert ended.exit_code == 0, ended.output
    assert "4 values of 1 metrics" not in ended.output
    assert "old against new" in ended.output and f"kduel report {tmp_path / 'run'}" in ended.output


def test_the_command_takes_names(tmp_path: Path) -> None:
    fixtures = Path(__file__).parent / "fixtures"
    files = [f"{name}={fixtures / f'pyperf-2.10.0-{which}.json'}" for name, which in (("old", "a"), ("new", "b"))]
    ended = CliRunner().invoke(command, [*files, "--out", str(tmp_path / "run")])
    assert ended.exit_code == 0, ended.output
    assert contenders(tmp_path / "run") == ["old", "new"]


def test_importing_the_command_imports_nothing_heavy() -> None:
    code = "import sys, kduel.cli.import_; print(*[m for m in ('numpy', 'scipy', 'msgspec', 'rich') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.split() == []


def test_the_published_csv_survives_the_way_to_the_samples_and_back(tmp_path: Path) -> None:
    bring_in([Source(PUBLISHED / "policies.csv")], tmp_path / "run")
    lines = set()
    for table in read(tmp_path / "run"):
        for name, values in table.values.items():
            for block, value in zip(table.blocks, values, strict=True):
                lines.add(
                    (
                        name,
                        str(block),
                        table.benchmark,
                        table.metric.name,
                        table.metric.unit,
                        table.metric.better,
                        value,
                    )
                )
    original = set()
    for line in (PUBLISHED / "policies.csv").read_text().splitlines()[1:]:
        *fields, value = line.split(",")
        original.add((*fields, float(value)))
    assert lines == original and len(lines) == 810


def test_a_file_is_reported_as_its_import_is_and_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    bring_in([Source(PUBLISHED / "generations.csv")], tmp_path / "run")
    for form in ("text", "json", "csv"):
        of_file, of_run = (
            CliRunner().invoke(report, [str(path), "--format", form], catch_exceptions=False)
            for path in (PUBLISHED / "generations.csv", tmp_path / "run")
        )
        assert of_file.exit_code == 0
        if form == "json":
            assert json.loads(of_file.stdout)["metrics"] == json.loads(of_run.stdout)["metrics"]
        else:
            # Only of a run is there a path to name, which moves the ends of lines.
            assert of_file.stdout.split() == of_run.stdout.replace(str(tmp_path / "run"), "RUN").split()
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_place_that_cannot_be_written_to_is_told_with_what_helps(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="cannot write to") as caught:
        bring_in([csv_file(tmp_path, *TWO)], Path("/proc/nowhere/run"))
    assert "--out" in caught.value.remedy and "resume" not in caught.value.remedy


def test_the_page_of_a_file_needs_a_place(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run directory for the page"):
        report.main([str(PUBLISHED / "generations.csv"), "--format", "html"], standalone_mode=False)
    page = tmp_path / "page.html"
    report.main([str(PUBLISHED / "generations.csv"), "-f", "html", "-o", str(page)], standalone_mode=False)
    assert "linux-6.6.0" in page.read_text()
