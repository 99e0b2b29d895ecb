"""A standard output that is closed, full or cut short: one message, exit status 3, and never a part as if it were all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kduel.cli.execute import explain_interruption

CLOSED = "kduel: standard output is closed\n"
Start = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def start(environment: dict[str, str], tmp_path: Path) -> Start:
    """start(WORDS, closed=DESCRIPTORS): `kduel WORDS` with these descriptors closed."""

    def call(
        words: list[object], closed: tuple[int, ...] = (1,), **options: object
    ) -> subprocess.CompletedProcess[str]:
        def close() -> None:
            for number in closed:
                os.close(number)

        return subprocess.run(
            [sys.executable, "-m", "kduel", *map(str, words)],
            env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True, timeout=300, check=False,
            preexec_fn=close, **options,
        )  # fmt: skip

    return call


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["--help"], ["--version"], ["report", "--help"], ["report", "RUN"], ["report", "RUN", "-f", "json"],
        ["verify", "RUN"], ["status", "RUN"], ["diff", "RUN", "COPY"], ["list", "benchmarks"],
        ["doctor"], ["plan", "--simulate", "--runs", "200"], ["query", "--index", "INDEX", "runs"],
        ["import", "results.txt"], ["--completion", "bash"],
    ],
)  # fmt: skip
def test_a_closed_standard_output_is_told(
    start: Start, unpack: Callable[[str], Path], tmp_path: Path, words: list[str]
):
    run = unpack("process")
    copy = shutil.copytree(run, tmp_path / "copy")
    done = start([{"RUN": run, "COPY": copy}.get(word, word) for word in words])
    assert "Traceback" not in done.stderr, done.stderr
    if words[0] in ("query", "import"):
        assert done.returncode == 2, "what they are given is not there"
        return
    assert done.returncode == 3, done.stderr
    assert done.stderr.count(CLOSED) == 1, done.stderr


@pytest.mark.slow
def test_nothing_is_wrong_where_nothing_is_to_be_printed(start: Start, unpack: Callable[[str], Path], tmp_path: Path):
    done = start(["report", unpack("process"), "-f", "json", "-o", tmp_path / "r.json"])
    assert (tmp_path / "r.json").stat().st_size > 1000
    assert "standard output is closed" in done.stderr, "the line that names the file"
    done = start(["verify", unpack("process"), "-f", "json", "-o", tmp_path / "v.json"])
    # 3: an older version wrote its results.json, or it has none, so that not all was compared.
    assert done.returncode == 3 and (tmp_path / "v.json").exists(), done.stderr
    assert start(["report", "nowhere"]).returncode == 2


def test_a_file_that_is_opened_does_not_become_the_standard_output(start: Start, tmp_path: Path):
    done = start(["init", "study.toml"], closed=(0, 1))
    assert "Traceback" not in done.stderr, done.stderr
    assert b"standard output" not in b"".join(path.read_bytes() for path in tmp_path.glob("*.toml"))


@pytest.mark.slow
def test_a_run_whose_standard_output_is_closed_is_kept_with_its_report(
    start: Start, write_study: Callable[..., Path], tmp_path: Path
):
    done = start(["run", write_study(), "--out", tmp_path / "run", "--quiet"])
    assert done.returncode == 3 and CLOSED in done.stderr, done.stderr
    assert (tmp_path / "run/results.json").exists() and (tmp_path / "run/report/index.html").exists()


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_output_that_does_not_fit_is_no_success(
    start: Start, environment: dict[str, str], tmp_path: Path, unbuffered: str
):
    # A file that may have 100 bytes: the kernel writes these, and returns their number, before it refuses the rest.
    environment |= {"PYTHONUNBUFFERED": unbuffered, "PYTHONDONTWRITEBYTECODE": "1"}
    limited = ["import resource, os, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))"]
    limited.append("os.execv(sys.executable, [sys.executable, '-m', 'kduel', 'report', '--help'])")
    with (tmp_path / "out").open("wb") as stream:
        done = subprocess.run(
            [sys.executable, "-c", "; ".join(limited)],
            env=environment, cwd=tmp_path, stdout=stream, stderr=subprocess.PIPE, text=True, timeout=300, check=False,
        )  # fmt: skip
    assert (tmp_path / "out").stat().st_size == 100
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith("kduel: cannot write to standard output: File too large\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_standard_output_is_named(environment: dict[str, str], unbuffered: str):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kduel", "--version"], env=environment | {"PYTHONUNBUFFERED": unbuffered},
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=300, check=False,
        )  # fmt: skip
    assert done.returncode == 3
    assert done.stderr.startswith("kduel: cannot write to standard output: No space left on device\n")
    assert "kduel resume" not in done.stderr and done.stderr.count("\n") == 2


def test_a_reader_that_ends_early_is_no_error(environment: dict[str, str]):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "kduel", "--help"],
        env=environment,
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_interruption_before_there_is_a_run_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(KeyboardInterrupt), explain_interruption(tmp_path / "run"):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == "kduel: interrupted; nothing is measured yet. Go on with the same command.\n"
