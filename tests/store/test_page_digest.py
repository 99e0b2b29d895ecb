"""The page of a run, which people open first, is one of the files whose change `kduel verify` names."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from kduel.analysis.index import update
from kduel.core.errors import InputError
from kduel.core.progress import Progress
from kduel.store.integrity import verify
from kduel.store.run_lock import NAME, own_holder
from kduel.store.rundir import INDEX, PAGE, PAGE_DIGEST, RunDir
from kduel.store.whole_files import whole_directory

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
    found = kduel("verify", run)
    assert found.returncode == 3 and "report/index.html was not compared" in found.stdout
    assert "no raw file changed afterwards" in found.stdout


@pytest.mark.parametrize(
    ("data", "changed"),
    [
        (b"", False),
        (bytes(100), False),
        (b"PID", False),
        (b"#!/bin/sh\n", True),
        (b"\xff\x80", True),
        (b" " * 5000 + b"PID", True),
    ],
)
def test_a_lock_holds_nothing_else_than_who_had_it(unpack: Callable[[str], Path], data: bytes, changed: bool) -> None:
    run = unpack("icount")
    (run / NAME).write_bytes(data.replace(b"PID", msgspec.json.encode(own_holder())))
    found = verify(RunDir.open(run)).changes
    assert [".held was changed" in one for one in found] == [True] * changed


@pytest.mark.parametrize("name", [INDEX, "other.sqlite"])
def test_an_index_is_not_written_through_a_link(tmp_path: Path, name: str) -> None:
    runs, victim = tmp_path / "runs", tmp_path / "victim"
    runs.mkdir()
    for there in (False, True):
        if there:
            victim.write_bytes(b"")
        (runs / name).unlink(missing_ok=True)
        (runs / name).symlink_to(victim)
        with pytest.raises(InputError, match="is a link"):
            update(runs, [], runs / name, Progress())
        assert victim.exists() == there and (not there or victim.read_bytes() == b"")


def test_the_name_of_a_whole_directory_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory above is synced after the rename, or a power cut takes the name away again."""
    synced: list[tuple[Path, bool]] = []
    fsync = os.fsync

    def note(handle: int) -> None:
        synced.append((Path(f"/proc/self/fd/{handle}").readlink(), (tmp_path / "run").exists()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", note)
    with whole_directory(tmp_path / "run") as fresh:
        (fresh / "file").write_text("x")
    assert synced[-1] == (tmp_path, True)
    # And what is in it before it, or the name is there without its files.
    assert {path.name for path, _ in synced[:-1]} == {"file", fresh.name} and not any(
        there for _, there in synced[:-1]
    )
