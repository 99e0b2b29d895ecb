"""`kduel report` on a real import: files, links, errors."""

from __future__ import annotations

import json
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from examples import ROOT
from forked import ForkedKduel

from kduel.core.results import SCHEMA

Kduel = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("command")


@pytest.fixture(scope="module")
def kduel(forked_kduel: ForkedKduel, place: Path) -> Kduel:
    """Runs `kduel ARGUMENTS...` in a directory with an import of the published study in it."""

    def call(*arguments: str, cache: Path = place / "cache") -> subprocess.CompletedProcess[str]:
        environment = forked_kduel.environment | {"KDUEL_CACHE": str(cache), "HOME": str(place), "COLUMNS": "100"}
        return forked_kduel(arguments, cwd=place, environment=environment)

    done = call("import", str(ROOT / "studies/published/generations.csv"), "--out", "run")
    assert done.returncode == 0, done.stderr
    return call


def test_text_to_standard_output(kduel: Kduel) -> None:
    done = kduel("report", "run")
    assert done.returncode == 0
    assert "linux-6.6.0 differs from linux-4.19.309 in 1 of 5 primary metrics" in done.stdout
    assert "\x1b" not in done.stdout
    assert "One trial carries the conclusion" in done.stdout
    assert done.stderr == ""


def test_html_goes_to_the_run(kduel: Kduel, place: Path) -> None:
    done = kduel("report", "run", "--format", "html")
    assert done.stdout == "Report: run/report/index.html\n"
    made = place / "run/report/index.html"
    assert 20_000 < made.stat().st_size < 300_000
    assert stat.S_IMODE(made.stat().st_mode) == 0o644
    assert sorted(path.name for path in made.parent.iterdir()) == ["index.html", "index.html.sha256"]


def test_html_does_without_a_cache(kduel: Kduel, place: Path) -> None:
    (place / "file").write_text("in the way")
    done = kduel("report", "run", "-f", "html", "-o", "page.html", cache=place / "file")
    assert done.returncode == 0, done.stderr
    assert (place / "page.html").stat().st_size > 20_000


def test_output_replaces_whole_or_not_at_all(kduel: Kduel, place: Path) -> None:
    old = place / "out.json"
    old.write_text("old")
    done = kduel("report", "run", "-f", "json", "-o", "out.json")
    assert done.returncode == 0
    assert json.loads(old.read_text())["schema"] == SCHEMA
    piped = kduel("report", "run", "-f", "json", "-o", "-")
    assert json.loads(piped.stdout) == json.loads(old.read_text())


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("run", "--format", "svg"), 2, "Did you mean badge? There are:"),
        (("run", "--format", "md"), 2, "Did you mean markdown? There are:"),
        (("run", "--format", "pdf"), 2, "there is no report format 'pdf'"),
        (("nowhere",), 2, "nowhere"),
        (("run", "-f", "csv", "-o", "missing/out.csv"), 2, "missing/out.csv cannot be written: there is no missing"),
        (("run", "--open"), 2, "--open needs a page"),
    ],
)
def test_errors_are_told(kduel: Kduel, arguments: tuple[str, ...], status: int, said: str) -> None:
    done = kduel("report", *arguments)
    assert done.returncode == status
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
