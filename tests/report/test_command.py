"""`kduel report` on a real import: files, links, errors."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from examples import ROOT

from kduel.core.results import SCHEMA

ENVIRONMENT = {"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin", "COLUMNS": "100"}


def kduel(*arguments: str, cwd: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kduel", *arguments],
        cwd=cwd,
        env=ENVIRONMENT | {"KDUEL_CACHE": str(cache), "HOME": str(cwd)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an import of the published study in it."""
    where = tmp_path_factory.mktemp("command")
    table = ROOT / "studies/published/generations.csv"
    done = kduel("import", str(table), "--out", "run", cwd=where, cache=where / "cache")
    assert done.returncode == 0, done.stderr
    return where


def test_text_to_standard_output(place: Path) -> None:
    done = kduel("report", "run", cwd=place, cache=place / "cache")
    assert done.returncode == 0
    assert "linux-6.6.0 differs from linux-4.19.309 in 1 of 5 primary metrics" in done.stdout
    assert "\x1b" not in done.stdout
    assert "One trial carries the conclusion" in done.stdout
    assert done.stderr == ""


def test_html_goes_to_the_run(place: Path) -> None:
    done = kduel("report", "run", "--format", "html", cwd=place, cache=place / "cache")
    assert done.stdout == "Report: run/report/index.html\n"
    made = place / "run/report/index.html"
    assert 20_000 < made.stat().st_size < 300_000
    assert stat.S_IMODE(made.stat().st_mode) == 0o644
    assert [path.name for path in made.parent.iterdir()] == ["index.html"]


def test_html_does_without_a_cache(place: Path) -> None:
    (place / "file").write_text("in the way")
    done = kduel("report", "run", "-f", "html", "-o", "page.html", cwd=place, cache=place / "file")
    assert done.returncode == 0, done.stderr
    assert (place / "page.html").stat().st_size > 20_000


def test_output_replaces_whole_or_not_at_all(place: Path) -> None:
    old = place / "out.json"
    old.write_text("old")
    done = kduel("report", "run", "-f", "json", "-o", "out.json", cwd=place, cache=place / "cache")
    assert done.returncode == 0
    assert json.loads(old.read_text())["schema"] == SCHEMA
    piped = kduel("report", "run", "-f", "json", "-o", "-", cwd=place, cache=place / "cache")
    assert json.loads(piped.stdout) == json.loads(old.read_text())


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("run", "--format", "pdf"), 2, "there is no report format 'pdf'"),
        (("nowhere",), 2, "nowhere"),
        (("run", "-f", "csv", "-o", "missing/out.csv"), 3, "cannot write missing/out.csv"),
        (("run", "--open"), 2, "--open needs a page"),
    ],
)
def test_errors_are_told(place: Path, arguments: tuple[str, ...], status: int, said: str) -> None:
    done = kduel("report", *arguments, cwd=place, cache=place / "cache")
    assert done.returncode == status
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
