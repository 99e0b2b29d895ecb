"""The display of a run that continues: `LiveRun` makes lines for a terminal of any size (kduel.cli.terminal)."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from kduel.core.format import duration, plain_number
from kduel.core.host import wait_share
from kduel.core.text import plural, visible
from kduel.core.this_host import text_of
from kduel.report.content.overview import clip, overview
from kduel.report.content.textgrid import Line
from kduel.run.watch import TrialDone, boot_phase

if TYPE_CHECKING:
    from kduel.study.load import Study
    from kduel.study.plan import PlannedTrial

BUSY_PCT = 20.0
"""A host on which tasks wait for a CPU so much of the time is named as a reason for the spread."""
STARVED_PCT = 50.0
"""Beyond this, somebody always waits, and a boot that runs is said to."""
BOOTS_SHOWN = 3


class Boot(Struct, kw_only=True):
    block: int
    contender: str
    trials: int
    staged: Path
    began: float


class HostLoad(Struct, kw_only=True):
    """Other work of the host. null where the host does not report it."""

    load: float | None
    waiting_pct: float | None
    """The share of the last ten seconds in which some task waited for a CPU, in per cent (PSI)."""


class LiveRun:
    """The state of a run as it is shown. Methods may be called from several threads."""

    def __init__(self, study: Study, machine: str, parallel: int | None = 1) -> None:
        self.study, self.machine, self.parallel = study, machine, parallel
        self.boots: dict[str, Boot] = {}
        self.last: TrialDone | None = None

    def start_boot(self, boot: list[PlannedTrial], staged: Path) -> None:
        contender = " and ".join(dict.fromkeys(planned.contender for planned in boot))
        self.boots[boot[0].id] = Boot(
            block=boot[0].block, contender=contender, trials=len(boot), staged=staged, began=time.monotonic()
        )

    def end_trial(self, trial: TrialDone) -> None:
        """A trial has ended and is kept, or a run that has trials goes on."""
        if trial.record:
            self.boots.pop(trial.record.id, None)
        self.last = trial

    def frame(self, width: int, height: int, host: HostLoad) -> list[Line]:
        """The lines of a screen of that size; never more than it has."""
        metrics = self.last.metrics if self.last else []
        lines: list[Line] = [
            [(clip(self.title(), width), "bold")],
            [(clip(self.progress(), width), "")],
            *([(clip(line, width), "cyan")] for line in self.boot_lines(host)),
        ]
        below: list[Line] = [[(clip(self.host_line(host), width), "dim")], [(clip(self.time_left(host), width), "")]]
        room = height - 1 - len(lines) - len(below) - 2
        if room >= 2 and metrics:
            table = overview(metrics, self.study.about.delta, width, room, self.blocks_left)
            lines += [[], *table, []]
        elif room >= 2:
            lines += [[], [(clip("The table of intervals begins with the first complete block.", width), "dim")], []]
        return [*lines, *below][: max(1, height - 1)]

    def title(self) -> str:
        """Names of what is compared."""
        baseline, *others = (visible(name, 200) for name in self.study.names)
        return f"{others[0] if len(others) == 1 else plural(len(others), 'contender')} against {baseline}"

    @property
    def most_blocks(self) -> int:
        return self.study.blocks.count

    @property
    def blocks_left(self) -> int:
        return self.most_blocks - (self.last.done // len(self.study.names) if self.last else 0)

    def progress(self) -> str:
        """`quick on qemu · 9 of at most 40 trials · 1 void (oops)`."""
        bound = "" if self.study.blocks.fixed else "at most "
        done = self.last.done if self.last else 0
        parts = [
            f"{visible(self.study.about.name, 60)} on {self.machine}",
            f"{done} of {bound}{self.most_blocks * len(self.study.names)} trials",
        ]
        if voids := Counter(self.last.voids if self.last else ()):
            kinds = ", ".join(f"{number} {code}" for code, number in voids.most_common(3))
            parts.append(f"void: {kinds}")
        return " · ".join(parts)

    def boot_lines(self, host: HostLoad) -> list[str]:
        """A line for each boot that runs: block, contender, step, seconds, and why it is slow."""
        if self.parallel is None:
            return []
        # Its directory leaves this place when a boot is kept, or put aside to be made again.
        boots = [boot for boot in list(self.boots.values()) if boot.staged.is_dir()]
        waits = ", waiting for a CPU" if host.waiting_pct is not None and host.waiting_pct >= STARVED_PCT else ""
        out = []
        for boot in boots[:BOOTS_SHOWN]:
            seconds = time.monotonic() - boot.began
            # Guests in turns last as long as all of their block.
            trials = len(self.study.names) if self.study.blocks.side_by_side else boot.trials * self.parallel
            usual = f" of about {self.last.mean_seconds * trials:.0f}" if self.last else ""
            out.append(
                f"now: block {boot.block} · {visible(boot.contender, 80)} · "
                f"{boot_phase(boot.staged)}{waits} · {seconds:.0f}{usual} s"
            )
        if len(boots) > BOOTS_SHOWN:
            out.append(f"     and {plural(len(boots) - BOOTS_SHOWN, 'more boot')}")
        return out or ["now: between two boots"]

    def host_line(self, host: HostLoad) -> str:
        parts = [] if host.load is None else [f"load {host.load:.1f} on {plural(os.cpu_count() or 1, 'CPU')}"]
        guest = wait_share(self.last.record.host.values()) if self.last and self.last.record else None
        waits = [] if host.waiting_pct is None else [f"tasks {host.waiting_pct:.0f} % of 10 s"]
        waits += [] if guest is None else [f"last guest {100 * guest:.0f} %"]
        if waits:
            parts.append(f"waits for a CPU: {', '.join(waits)}")
        return "host: " + (" · ".join(parts) or "its load cannot be read")

    def time_left(self, host: HostLoad) -> str:
        """Expected duration of the rest, or a note that the blocks will not be enough."""
        last, most = self.last, self.most_blocks
        if last is None:
            return f"left: known after the first trial; {plural(most, 'block')}{'' if self.study.blocks.fixed else ' at most'}"
        undecided = [metric for metric in last.metrics if metric.verdict == "undecided"]
        needs = [metric.blocks_more for metric in undecided]
        block_seconds = last.mean_seconds * len(self.study.names)
        blocks = self.blocks_left
        if self.study.blocks.fixed is None and last.metrics:
            blocks = min(blocks, max((need or blocks for need in needs), default=0))
        text = f"left: about {duration(blocks * block_seconds)}"
        if self.study.blocks.fixed is not None:
            return text
        beyond = [metric for metric in undecided if (metric.blocks_more or 0) > self.blocks_left]
        if last.hopeless or beyond:
            number = len(last.hopeless or beyond)
            busy = host.waiting_pct is not None and host.waiting_pct >= BUSY_PCT
            why = " (CPUs busy)" if busy else ""
            return f"{text}; {plural(number, 'metric')} may need over {plural(most, 'block')} at this spread{why}"
        return f"{text}; it ends when all are decided within ±{plain_number(self.study.about.delta)} % or beyond 0"


def crowd(host: HostLoad) -> str:
    """The host's load in words, where more tasks want to run than there are CPUs; else empty."""
    cpus = os.cpu_count() or 1
    return (
        f"host load {host.load:.0f} on {plural(cpus, 'CPU')}"
        if host.load is not None and host.load > 1.5 * cpus
        else ""
    )


def read_host(root: Path = Path("/")) -> HostLoad:
    """Load and CPU pressure as the kernel reports them."""
    return HostLoad(
        load=read_number(root / "proc/loadavg", r"([\d.]+)"),
        waiting_pct=read_number(root / "proc/pressure/cpu", r"some avg10=([\d.]+)"),
    )


def read_number(path: Path, pattern: str) -> float | None:
    """The first number of a file that the pattern finds; None where there is none."""
    match = re.match(pattern, text_of(path))
    return float(match[1]) if match else None
