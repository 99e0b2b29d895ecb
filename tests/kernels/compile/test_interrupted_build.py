"""Ctrl-C keeps what a kernel build has made, and the same command continues it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kduel.core.progress import Progress, Task
from kduel.kernels.compile.from_source import count_objects

SOURCE = Path(__file__).parents[3] / "src"
RESOLVE = """
import sys
from pathlib import Path
from kduel.core.cache import Cache
from kduel.core.progress import Progress
from kduel.kernels import resolve
try:
    print(resolve(sys.argv[1], cache=Cache(), progress=Progress()).image)
except KeyboardInterrupt:
    sys.exit(130)
"""
GCC = """#!/bin/sh
case "$*" in
    *fs/read.c*) [ -e {place}/go ] || { : >{place}/waiting; sleep 600; } ;;
    *-c*) echo "$*" >>{place}/compiled ;;
esac
exec /usr/bin/gcc "$@"
"""


class Described(Progress, Task):
    """Keeps the texts of its one task."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    @contextmanager
    def task(self, text: str, total: float | None = None) -> Iterator[Task]:
        yield self

    def describe(self, text: str) -> None:
        self.texts.append(text)


@pytest.mark.slow
def test_an_interrupted_build_is_continued(trees: dict[str, Path], tmp_path: Path, need: Callable[..., str]) -> None:
    need("gcc")
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "gcc").write_text(GCC.replace("{place}", str(tmp_path)))
    (bin_ / "gcc").chmod(0o755)
    environment = os.environ | {
        "PATH": f"{bin_}:{os.environ['PATH']}", "PYTHONPATH": str(SOURCE), "KDUEL_CACHE": str(tmp_path / "cache"),
    }  # fmt: skip
    command = [sys.executable, "-P", "-c", RESOLVE, f"source:{trees['old']},config=tinyconfig"]
    first = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "waiting").exists():
        assert first.poll() is None, first.stderr and first.stderr.read()
        time.sleep(0.1)
    # What is younger is built again.
    time.sleep(3)
    first.send_signal(signal.SIGINT)
    assert first.wait(timeout=600) == 130
    before = (tmp_path / "compiled").read_text()
    assert "kernel/sched.c" in before
    (kept,) = (tmp_path / "cache/stopped-builds").iterdir()
    assert (kept / "kernel/sched.o").exists() and not (kept / "fs/read.o").exists()
    (tmp_path / "go").touch()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).exists()
    assert (tmp_path / "compiled").read_text().count("kernel/sched.c") == 1, "it is not compiled again"
    assert not any((tmp_path / "cache/stopped-builds").iterdir())


@pytest.mark.slow
def test_objects_and_log_are_shown(tmp_path: Path) -> None:
    log, task = tmp_path / "log", Described()
    log.write_text("make[1]: Entering\n  CC      a.o\n  AS      b.o\n  CC [M]  c.o\n  GEN     d\nCC e\n")
    with count_objects(log, "building", task):
        deadline = time.monotonic() + 60
        while not task.texts and time.monotonic() < deadline:
            time.sleep(0.05)
    assert task.texts[0] == f"building: 3 objects; log: {log}"
