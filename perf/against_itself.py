"""One kernel under two names: what several measurements here run, beside what other work, and how it spreads."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from kduel.core.samples import Samples
from kduel.study.contenders import contender_tables

BURST = 45.0
"""Seconds of other work, and of pauses between, unless said."""


def with_contenders(text: str, kernel: str) -> str:
    """A study's text with the kernel under two names."""
    return text + contender_tables([kernel, kernel], numbered=True)


def run(text: str, path: Path, seconds: float | None = None, seed: int = 1) -> int:
    """Run a study in `path`, its file beside it, or go on with it; the exit status of `kduel run`, which is interrupted after
    so many seconds."""
    study = path.with_suffix(".toml")
    study.write_text(text)
    options = ["--quiet", "--out", str(path), "--seed", str(seed)]
    command = [sys.executable, "-P", "-m", "kduel", "run", str(study), *options]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1] / "src")}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as process:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.terminate()
            return process.wait()


def pairs(table: Samples) -> list[tuple[float, float]]:
    """The values of complete blocks."""
    both = zip(*table.values.values(), strict=True)
    return [(before, after) for before, after in both if before is not None and after is not None]


def spread(table: Samples) -> float:
    """Standard deviation of the logarithm of the ratio within a block; NaN with fewer than three pairs."""
    logs = [math.log(after / before) for before, after in pairs(table)]
    return float(np.std(logs, ddof=1)) if len(logs) > 2 else math.nan


@contextmanager
def load(kind: str, spells: tuple[float, float] | None = None) -> Iterator[None]:
    """Other work, `idle`, `busy` or in `bursts`: in sessions of its own, as another user's program has one. `spells` are the mean
    seconds with and without it, drawn from exponential distributions; else bursts and pauses last BURST each."""
    stop = threading.Event()
    running: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        command = [sys.executable, "-I", "-c", "while True: pass"]
        running.extend(subprocess.Popen(command, start_new_session=True) for _ in range(os.cpu_count() or 1))

    def end() -> None:
        for process in running:
            process.kill()
            process.wait()
        running.clear()

    def bursts() -> None:
        draw = random.Random(1)
        while not stop.is_set():
            start()
            stop.wait(draw.expovariate(1 / spells[0]) if spells else BURST)
            end()
            stop.wait(draw.expovariate(1 / spells[1]) if spells else BURST)

    thread = threading.Thread(target=bursts) if kind == "bursts" else None
    if thread:
        thread.start()
    elif kind == "busy":
        start()
    try:
        yield
    finally:
        stop.set()
        if thread:
            thread.join()
        end()
