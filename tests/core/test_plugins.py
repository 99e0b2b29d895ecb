"""One benchmark, one kernel source, one machine and one report format, each from outside the package."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.mark.slow
def test_all_four_kinds_work_from_outside(kduel, write_study, tmp_path: Path):
    run = tmp_path / "run"
    done = kduel("run", write_study(), "--out", run)
    assert done.returncode == 0, done.stderr
    assert "Nothing was booted." in done.stderr
    results = json.loads(kduel("report", run, "--format", "json").stdout)
    values = {m["benchmark"]: m["values"] for m in results["metrics"]}
    assert values["letters-hello"] == {"outside-old": [5, 5, 5], "outside-new": [5, 5, 5]}
    assert values["letters-longer"] == {"outside-old": [6, 6, 6], "outside-new": [6, 6, 6]}
    assert kduel("report", run, "--format", "shout").stdout.split() == ["UNDECIDED", "UNDECIDED"]


def test_they_are_listed(kduel):
    assert "outside-letters" in kduel("list", "benchmarks").stdout
    assert "process" in kduel("list", "machines").stdout
    assert "shout" in kduel("list", "formats").stdout
    names = [entry["name"] for entry in json.loads(kduel("list", "sources", "--format", "json").stdout)]
    assert "outside" in names


def test_a_plugin_that_does_not_load_is_named(kduel, environment, tmp_path: Path):
    (tmp_path / "site" / "outside.py").write_text("raise RuntimeError('broken inside')")
    done = kduel("list", "benchmarks")
    assert done.returncode == 3
    assert "outside:BENCHMARK" in done.stderr
    assert "broken inside" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_machine_whose_check_is_never_called_is_named(kduel, tmp_path: Path):
    code = (tmp_path / "site/outside.py").read_text()
    head, own, rest = code.partition("    def prepare(")
    (tmp_path / "site/outside.py").write_text(
        f"{head}    def check_commands(self, settings, commands): ...\n\n{own}{rest}"
    )
    done = kduel("list", "machines")
    assert done.returncode == 3
    assert "Process.check_commands is never called: it is check_needs" in " ".join(done.stderr.split())


def test_an_object_that_is_no_plug_in_is_named(kduel, tmp_path: Path):
    info = tmp_path / "site/odd-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[kduel.report]\nodd = json:loads\n")
    done = kduel("list", "formats")
    assert done.returncode == 3
    assert "'odd' (json:loads) has no name" in done.stderr


def test_two_plugins_of_one_name_are_refused(kduel, tmp_path: Path):
    site = tmp_path / "site"
    info = site / "twin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: twin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[kduel.report]\ntwin = twin:REPORT\n")
    (site / "twin.py").write_text("import outside\nREPORT = outside.Shout()\n")
    done = kduel("list", "formats")
    assert done.returncode == 3
    assert "two plug-ins are called 'shout'" in done.stderr


@pytest.mark.parametrize("folder", ["benchmarks", "fleets", "kernels", "machines", "report", "store/imported"])
def test_a_folder_of_plug_ins_shows_plug_ins_only(folder: str) -> None:
    modules = (Path(__file__).parents[2] / "src/kduel" / folder).glob("*.py")
    assert not [m.name for m in modules if m.name != "__init__.py" and "\nPLUGIN" not in m.read_text("utf-8")]
