"""The page of a run, which people open first, is one of the files whose change `kduel verify` names."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kduel.analysis.index import update
from kduel.core.errors import InputError
from kduel.core.progress import Progress
from kduel.store.rundir import INDEX, PAGE, PAGE_DIGEST

Call = Callable[..., subprocess.CompletedProcess[str]]


def test_a_changed_page_is_named(kduel: Call, write_study: Callable[..., Path], tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = kduel("run", write_study(), "--out", run)
    assert done.returncode == 0, done.stderr
    subprocess.run(["sha256sum", "--check", PAGE_DIGEST.name], cwd=run / PAGE.parent, check=True, capture_output=True)
    assert kduel("verify", run).returncode == 0
    page = (run / PAGE).read_text()
    (run / PAGE).write_text(page.replace("letters", "LETTERS", 1))
    found = kduel("verify", run)
    assert found.returncode == 1 and "report/index.html was changed" in found.stdout
    assert kduel("report", run, "--format", "html").returncode == 0
    assert kduel("verify", run).returncode == 0
    assert kduel("report", run, "--format", "html", "--output", tmp_path / "page.html").returncode == 0
    assert sorted(path.name for path in tmp_path.glob("page*")) == ["page.html"], "elsewhere the page is alone"
    (run / PAGE_DIGEST).unlink()
    assert kduel("verify", run).returncode == 0, "as a run of an earlier version, which kept none"


def test_an_index_is_not_written_through_a_link(tmp_path: Path) -> None:
    runs, victim = tmp_path / "runs", tmp_path / "victim"
    runs.mkdir()
    for there in (False, True):
        if there:
            victim.write_bytes(b"")
        (runs / INDEX).unlink(missing_ok=True)
        (runs / INDEX).symlink_to(victim)
        with pytest.raises(InputError, match="is a link"):
            update(runs, [], runs / INDEX, Progress())
        assert victim.exists() == there and (not there or victim.read_bytes() == b"")
