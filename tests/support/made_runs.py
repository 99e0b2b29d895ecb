"""Small runs with known effects, written as a runner leaves them: directories with plan, lock, raw files, manifests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kduel.core.experiment import Contender, MachineRecord, Settle, Step, Void
from kduel.core.turns import Turns
from kduel.store.documents import HostRecord, KernelRecord, Lock, TrialRecord, study_of
from kduel.store.rundir import RunDir
from kduel.study.file import Blocks, StudyHeader
from kduel.study.plan import make_plan

READING = {"name": "time", "unit": "s", "better": "lower", "regex": "^time ([0-9.]+)$"}
STEP = Step(label="job", benchmark="command", parameters={"command": "job", "metrics": [READING]}, primary=["time"])


def make_run(
    path: Path,
    effect_pct: float = 0.0,
    *,
    place: str = "rack1",
    blocks: int = 10,
    most: int = 20,
    sd_pct: float = 0.5,
    seed: int = 1,
    level: float = 10.0,
    day: int = 1,
    void: tuple[int, ...] = (),
    about: Mapping[str, Any] | None = None,
    turns: Turns | None = None,
    **changes: Any,
) -> Path:
    """A run of so many blocks on a machine reached by SSH; the trials of `new` in the blocks `void` are void."""
    lock = Lock(
        kduel="0.1.0",
        seed=seed,
        origin="made.toml",
        study=StudyHeader(**{"name": "made"} | dict(about or {})),
        blocks=Blocks(max=most, turns=turns),
        settle=Settle(mode="fixed", seconds=0.0),
        machine=MachineRecord(kind="ssh", settings={"place": place}, facts={"place": place, "cpu": "a CPU"}),
        contenders=[Contender(kernel=f"installed:{name}", name=name) for name in ("old", "new")],
        kernels=[
            KernelRecord(spec=f"installed:{name}", release=name, architecture="x86_64") for name in ("old", "new")
        ],
        steps=[STEP],
        edition=2,
        host=HostRecord(cpus=2, cpu="controller"),
    )
    lock = msgspec.structs.replace(lock, **changes)
    plan = make_plan(study_of(lock, ""), lock.seed, lock.edition)
    run = RunDir.create(path, '[study]\nname = "made"\n', lock, plan)
    draw = np.random.default_rng([seed, day])
    begin = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day)
    for trial in plan[: 2 * blocks]:
        staged = run.stage()
        step = staged / "01-job"
        step.mkdir()
        factor = 1 + effect_pct / 100 if trial.contender == "new" else 1.0
        (step / "stdout").write_text(f"time {level * factor * (1 + sd_pct / 100 * draw.standard_normal()):.9f}\n")
        (step / "stderr").write_text("")
        (step / "exit.json").write_text('{"status": 0, "seconds": 1.0}')
        (staged / "environment.json").write_text('{"cpu_model": "a CPU"}')
        gone = trial.block in void and trial.contender == "new"
        record = TrialRecord(
            id=trial.id,
            block=trial.block,
            position=trial.position,
            contender=trial.contender,
            status="void" if gone else "ok",
            void=Void(code="hang") if gone else None,
            started=(begin + timedelta(minutes=trial.position)).isoformat(timespec="milliseconds"),
            seconds=30.0,
            boot=trial.boot,
            steps=trial.steps,
        )
        run.keep(staged, record)
    return path
