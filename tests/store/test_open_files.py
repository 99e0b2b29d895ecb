"""Too few open files is a fault of this host: no trial is called void, no file missing, and the limit is named."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kduel.benchmarks import ParseError, Raw, benchmark
from kduel.core.errors import HostError
from kduel.core.untrusted import exit_status
from kduel.judge.evaluate import judge_run
from kduel.store.integrity import verify
from kduel.store.manifest import files_below, write_manifest
from kduel.store.rundir import RunDir


@contextmanager
def no_more_files() -> Iterator[None]:
    """Nothing can be opened."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def step(tmp_path: Path) -> Path:
    (tmp_path / "exit.json").write_text('{"status": 0}')
    for name in ("stdout", "stderr"):
        (tmp_path / name).write_text("a line\n")
    return tmp_path


def test_a_step_that_cannot_be_read_is_not_the_guests_fault(step: Path) -> None:
    reads: list[Callable[[], object]] = [
        lambda: Raw.read(step),
        lambda: exit_status(step),
        lambda: files_below(step),
        lambda: write_manifest(step),
    ]
    for read in reads:
        with no_more_files(), pytest.raises(HostError) as raised:
            read()
        assert "Too many open files" in raised.value.message and "ulimit -n" in raised.value.remedy
    assert Raw.read(step).exit_status == 0


def test_a_parser_that_reads_more_files_is_not_at_fault_either(step: Path) -> None:
    class Another(type(benchmark("perf-stat"))):  # type: ignore[misc]
        def parse(self, raw: Raw, parameters: object) -> dict[str, float]:
            return {"x": float(len(raw.files["more"]))}

    (step / "more").write_text("x")
    raw = Raw.read(step)
    with no_more_files(), pytest.raises(HostError):
        Another().parse(raw, None)
    with pytest.raises(ParseError):
        Another().parse(raw, None)


def test_a_run_is_not_judged_by_the_files_that_could_be_opened(unpack: Callable[[str], Path]) -> None:
    run = unpack("icount")
    judge_run(run)
    for read in (judge_run, lambda path: verify(RunDir(path))):
        with no_more_files(), pytest.raises(HostError):
            read(run)
