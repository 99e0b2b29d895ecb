"""Reports of a run while it runs: trials that are there, boots that begin, trials that end, boots' progress."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from kduel.core.experiment import LABEL
from kduel.core.metric_results import MetricResult
from kduel.store.documents import TrialRecord
from kduel.study.plan import PlannedTrial

if TYPE_CHECKING:
    from kduel.judge.verdict.futility import Hopeless
    from kduel.judge.verdict.rule import Rule

END = 64 << 10
"""Bytes of the console that are read: the guest script announces each step there."""
STEP = re.compile(rf"kduel: step (\d\d)-({LABEL.pattern})$", re.MULTILINE)


class TrialDone(Struct, kw_only=True):
    """State of the run after a trial, or where a run that has trials goes on, for the display."""

    done: int
    planned: int
    record: TrialRecord | None
    """The trial that has just ended; None where the run goes on."""
    block_done: bool
    """True if this trial made a block complete; where the run goes on, if it has a complete block."""
    voids: list[str]
    """The codes of all void trials so far."""
    mean_seconds: float
    """Mean seconds of a trial so far, with the boots that were made again for it, to estimate the time left."""
    metrics: list[MetricResult]
    """The primary ones after the complete blocks, without the statistics beside."""
    hopeless: list[Hopeless]
    """Metrics that are unlikely to be decided within the plan's blocks, by the rule of futility."""


Watcher = Callable[[TrialDone], None]
BootStarted = Callable[[list[PlannedTrial], Path], None]
"""Called when a boot starts, with its trials and where its raw files appear; perhaps from several threads."""
GiveUp = Callable[["list[Hopeless]", "Rule"], bool]
"""Called with the metrics that are unlikely to be decided within the maximum; True ends the run."""


def boot_phase(staged: Path) -> str:
    """`starting`, `booting`, or the step that the guest has announced last, such as `step 2, fork`; without a console
    `starting`. A guest can claim any step, so only the display uses this."""
    try:
        with (staged / "console.log").open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - END))
            text = stream.read(END).decode("utf-8", errors="replace")
    except OSError:
        return "starting"
    found = STEP.findall(text)
    if found:
        number, label = found[-1]
        return f"step {int(number)}, {label}"
    return "booting" if text else "starting"
