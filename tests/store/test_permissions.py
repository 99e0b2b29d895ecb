"""A file that this user may not read is neither changed nor damaged, and what is in the way of a report is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Start = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def start(environment: dict[str, str], need: Callable[..., str]) -> Start:
    """`kduel WORDS` as a user whom permissions bind: root, too, without its capabilities."""
    drop = [need("setpriv"), "--bounding-set", "-dac_override,-dac_read_search"] if os.geteuid() == 0 else []

    def call(*words: object, code: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*drop, sys.executable, *(["-c", code] if code else ["-m", "kduel"]), *map(str, words)],
            env=environment, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    return call


@pytest.fixture
def run(unpack: Callable[[str], Path]) -> Path:
    return unpack("icount")


NAMES = ["lock.json", "plan.jsonl", "study.toml", "trial.json", "manifest.sha256", "environment.json", "console.log"]
BOTH_FORMS = """
import sys
from click.testing import CliRunner
from kduel.cli.verify import command
text, form = [CliRunner().invoke(command, [sys.argv[1], "-f", form]) for form in ("text", "json")]
sys.stdout.write(text.output)
sys.stderr.write(form.output)
sys.exit(text.exit_code)
"""
"""Text and JSON of `kduel verify` from one process, as most of its second is the start."""


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_may_not_be_read_is_told_as_that(start: Start, run: Path, name: str):
    path = next(found for found in [run / name, *sorted((run / "trials").glob(f"*/{name}"))] if found.exists())
    path.chmod(0)
    done = start(run, code=BOTH_FORMS)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "no change found in what could be read" in done.stdout and "1 file cannot be read:" in done.stdout
    assert name in done.stdout and "permi" in done.stdout.lower()
    assert json.loads(done.stderr)["changes"] == []
    if name != "study.toml":
        told = start("report", run)
        assert told.returncode == 2, told.stdout + told.stderr
        assert "Permission denied" in told.stderr and "permission to read" in told.stderr
        assert "copy of the run" not in told.stderr


@pytest.mark.slow
def test_a_step_that_may_not_be_entered_is_not_missing(start: Start, run: Path):
    step = next(path for path in sorted((run / "trials").glob("*/*")) if path.is_dir())
    step.chmod(0)
    done = start("verify", run)
    step.chmod(0o755)
    assert done.returncode == 3 and "missing" not in done.stdout, done.stdout


@pytest.mark.slow
def test_what_is_in_the_way_of_the_page_is_named(start: Start, run: Path):
    (run / "report").write_text("no directory")
    done = start("report", run, "-f", "html")
    assert done.returncode == 3
    assert f"cannot write the page: {run / 'report'} is no directory" in done.stderr, done.stderr
    assert "resume" not in done.stderr and "Move it away" in done.stderr


@pytest.mark.slow
def test_a_page_that_may_not_be_written_resumes_nothing(start: Start, run: Path):
    run.chmod(0o555)
    done = start("report", run, "-f", "html")
    run.chmod(0o755)
    assert done.returncode == 3 and "Permission denied" in done.stderr
    assert "resume" not in done.stderr and "--output" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["closed/vmlinuz", "tree:closed/tree"])
def test_a_kernel_in_a_directory_that_may_not_be_entered_is_no_full_disk(start: Start, tmp_path: Path, kernel: str):
    closed = tmp_path / "closed"
    (closed / "tree").mkdir(parents=True)
    (closed / "vmlinuz").touch()
    closed.chmod(0)
    path = kernel.replace("closed", str(closed))
    done = start("run", "debian:6.1", path, "--dry-run", "--out", tmp_path / "run")
    assert done.returncode == 3 and str(closed) in done.stderr
    assert "permissions" in done.stderr and "space" not in done.stderr
