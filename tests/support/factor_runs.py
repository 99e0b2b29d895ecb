"""Runs of studies with factors, written as a runner leaves them, with values that a function gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from kduel.core.experiment import MachineRecord, Void
from kduel.store.collect import step_directory
from kduel.store.documents import KernelRecord, Lock, TrialRecord
from kduel.store.rundir import RunDir
from kduel.study.file import parse_study
from kduel.study.load import assemble
from kduel.study.plan import make_plan

HEAD = """
[study]
name = "factors"
delta = 2.0
[settle]
mode = "fixed"
seconds = 0
"""
KERNELS = """
[[factor]]
name = "kernel"
levels = ["installed:old", "installed:new"]
"""
THP = """
[[factor]]
name = "thp"
levels = { never = { cmdline = "transparent_hugepage=never" }, always = { cmdline = "transparent_hugepage=always" } }
"""
SIZE = """
[[factor]]
name = "size"
levels = { 1 = { command = "job 1" }, 2 = { command = "job 2" }, 4 = { command = "job 4" } }
"""
JOB = """
[[benchmark]]
use = "command"
label = "job"
primary = ["time"]
metrics = [{ name = "time", unit = "s", better = "lower", regex = "^time ([0-9.]+)$" }]
"""
COMMAND = 'command = "job"\n'
Value = Callable[[dict[str, str], np.random.Generator], float | None]
"""From the levels of a cell: the value, or None for a trial that is void."""
Files = Callable[[dict[str, str], np.random.Generator], dict[str, str]]
"""From the levels of a cell: files by their names."""
ENVIRONMENT = '{"cpu_model": "a CPU"}'


def make_factor_run(
    path: Path, study: str, value: Value, *, blocks: int = 12, seed: int = 1, files: Files | None = None, environment: str = ENVIRONMENT
) -> Path:  # fmt: skip
    """A finished run of so many fixed blocks; `files` are further ones of each step."""
    read = assemble(parse_study(study, "made.toml"), study, "made.toml", fixed_blocks=blocks)
    lock = Lock(
        kduel="0.1.0",
        seed=seed,
        origin="made.toml",
        study=read.about,
        blocks=read.blocks,
        settle=read.settle,
        machine=MachineRecord(kind="ssh", settings={"place": "rack"}, facts={"place": "rack", "cpu": "a CPU"}),
        contenders=read.contenders,
        kernels=[KernelRecord(spec=one.kernel, release=one.kernel, architecture="x86_64") for one in read.contenders],
        steps=read.steps,
        design=read.design,
        edition=2,
    )
    assert read.design is not None
    run = RunDir.create(path, study, lock, make_plan(read, seed))
    draw = np.random.default_rng(seed)
    for trial in make_plan(read, seed):
        staged = run.stage()
        void = False
        for index, step in enumerate(read.steps):
            place = read.design.steps.get(step.label)
            found = value(read.design.cells[trial.contender] | (place.levels if place else {}), draw)
            void |= found is None
            directory = step_directory(staged, index, step.label)
            directory.mkdir()
            (directory / "stdout").write_text(f"time {found or 0:.9f}\n")
            (directory / "stderr").write_text("")
            (directory / "exit.json").write_text('{"status": 0, "seconds": 1.0}')
            for name, text in files(read.design.cells[trial.contender], draw).items() if files else ():
                (directory / name).write_text(text)
        (staged / "environment.json").write_text(environment)
        record = TrialRecord(
            id=trial.id,
            block=trial.block,
            position=trial.position,
            contender=trial.contender,
            status="void" if void else "ok",
            void=Void(code="hang") if void else None,
            started=f"2026-01-01T00:{trial.position // 60 % 60:02d}:{trial.position % 60:02d}.000+00:00",
            seconds=30.0,
            boot=trial.boot,
            steps=trial.steps,
        )
        run.keep(staged, record)
    return path


def with_interaction(levels: dict[str, str], draw: np.random.Generator) -> float:
    """10 s; the new kernel takes 8 % longer, but only without huge pages."""
    slower = levels.get("kernel") == "installed-new" and levels.get("thp") == "never"
    return 10 * math.exp(0.08 * slower + 0.01 * draw.standard_normal())
