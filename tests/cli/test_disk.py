"""Disks that are full and caches that cannot be used: said in a paragraph, and nothing is lost."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system takes root")
def test_a_full_disk_is_told_and_the_run_goes_on_when_there_is_room(kduel, write_study, tmp_path: Path):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "small", disk], check=True)
    try:
        run = disk / "run"
        study = write_study(blocks="fixed = 12")
        done = kduel("run", study, "--out", run)
        assert done.returncode == 3, done.stderr
        assert "No space left on device" in done.stderr
        assert "kduel resume" in done.stderr
        assert "Traceback" not in done.stderr
        kept = sorted(p.name for p in (run / "trials").iterdir() if not p.name.startswith("."))
        assert 0 < len(kept) < 24
        assert all((run / "trials" / name / "trial.json").stat().st_size for name in kept)
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        assert kduel("resume", run).returncode == 0
        assert len([p for p in (run / "trials").iterdir() if not p.name.startswith(".")]) == 24
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a directory read-only takes root")
def test_a_finished_run_that_cannot_be_written_is_shown(kduel, write_study, tmp_path: Path):
    run = tmp_path / "run"
    study = write_study(blocks="fixed = 2")
    done = kduel("run", study, "--out", run)
    assert done.returncode == 0, done.stderr
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    subprocess.run(["mount", "--bind", run, run], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", run], check=True)
        again = kduel("resume", run)
        assert again.returncode == 0, again.stderr
        assert again.stdout == done.stdout and "outside-new" in again.stdout
        assert f"{run} is complete and cannot be written" in " ".join(again.stderr.split())
        assert kduel("run", study, "--out", run).returncode == 0
    finally:
        subprocess.run(["umount", run], check=True)
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before


@pytest.mark.parametrize(
    "arguments", [("list", "kernels", "--offline"), ("run", "debian:6.1", "debian:6.12", "--offline")]
)
def test_an_unusable_cache_is_told(kduel, environment, tmp_path: Path, arguments):
    (tmp_path / "file").write_text("no directory")
    environment["KDUEL_CACHE"] = str(tmp_path / "file" / "cache")
    done = kduel(*arguments)
    assert done.returncode == 3, done.stderr
    assert str(tmp_path / "file" / "cache") in done.stderr
    assert "KDUEL_CACHE" in done.stderr
    assert "Traceback" not in done.stderr
