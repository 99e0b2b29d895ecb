"""Two kernels counted in real guests: what the test files of this directory have in common."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kduel.core.cache import Cache
from kduel.core.progress import Progress
from kduel.machines import Trial
from kduel.run.exact.measure import CountedTrial, count_arms
from kduel.run.exact.subject import operation_study
from kduel.run.prepare import Ready, make_ready
from kduel.study.file import parse_study
from kduel.study.load import Study, assemble

COUNT, CONDITIONS = 12, 2
"""Of each operation's calls, once and five times as many; and of what must not matter."""
QUICK = "noapictimer"
"""On a kernel's command line, half of a boot's time: the kernel does not calibrate the timer of the local APIC."""
STUDY = """
[study]
name = "exact-test"
[machine]
kind = "icount"
[settle]
mode = "fixed"
seconds = 3
[blocks]
fixed = 1
{first}
[[benchmark]]
use = "kbench"
mode = "exact"
count = {count}
conditions = {conditions}
operation = {operations}
{contenders}
"""


def quick(kernel: object) -> str:
    """The specification of a kernel that boots in half of the time."""
    return f"{kernel},cmdline={QUICK}"


def made_ready(study: Study) -> Ready:
    return make_ready(study, cache=Cache(), progress=Progress())


def ready_of(text: str) -> Ready:
    """Of a study's text."""
    return made_ready(assemble(parse_study(text, "test"), text, "test"))


def ready_to_count(operations: Sequence[str], contenders: str, first: str = "") -> Ready:
    """Operations in contenders, which are given as tables; `first` are tables of benchmarks before them."""
    return ready_of(
        STUDY.format(
            first=first, count=COUNT, conditions=CONDITIONS, operations=list(operations), contenders=contenders
        )
    )


def ready_pair(kernels: Sequence[object], benchmark: str) -> Ready:
    """As `kduel explain` prepares two kernels."""
    return made_ready(operation_study([str(kernel) for kernel in kernels], benchmark))


def trial_of(ready: Ready, into: Path, deadline: float = 600) -> Trial:
    """A trial of the first contender with all steps."""
    arm = ready.arms[0]
    script = ready.setup.script(arm.contender, range(len(ready.study.steps)))
    into.mkdir(exist_ok=True)
    return Trial(id="0001", arm=arm, script=script.text, deadline=deadline, into=into)


def count_both(ready: Ready, **options: Any) -> list[CountedTrial]:
    """The baseline and the contender, counted with the plug-in."""
    one, other = (arm.contender.name for arm in ready.arms)
    return count_arms(ready, (one, other), cache=Cache(), progress=Progress(), **options)
