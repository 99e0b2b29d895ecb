"""Boots that are made again for a fault that is not their contender's: which, how often, and in what order.

Only the host's figures and the emulator's known faults decide, never a contender's name or a measured value.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct, structs

from kduel.core.errors import HostError, NotMeasuredError
from kduel.core.experiment import EMULATOR_FAULT, HOST_DISTURBED, Void
from kduel.core.host import other_work, wait_share
from kduel.core.progress import Progress
from kduel.core.void_codes import never_began
from kduel.guest.hosttotals import HostSnapshot, cpu_times, taken_by_others
from kduel.store.documents import Disturbance, TrialRecord
from kduel.store.rundir import RunDir
from kduel.study.plan import PlannedTrial

EMULATOR_REPEATS = 3
"""A fault of the emulator strikes one boot in six at worst: four in a row are the kernel's own."""
SHARE_OF_PLAN = 0.2
"""Under a machine's default so many of the planned trials are made again at most: a host that is never quiet must not
make a run endless."""
STARVED = frozenset({"wrong-clock", "no-results", "deadline", "hang", "soft-lockup"})
"""What becomes of a guest that gets too little of the host's CPUs. Any other trouble is its own, however busy the host."""
MOST_DISTURBED = 6
"""Under a study's own rule the run ends when so many trials in a row are void for the host's sake."""
MOST_AWAY = 3
"""The run ends when so many trials in a row are void because their machine was not there: more of the plan would be lost."""
LOOK_SECONDS = 1.0
"""For which other work is measured when the runner waits for quiet."""
MOMENT_SECONDS = 0.1
"""The shortest time in which ticks of 10 ms tell a busy host from a quiet one."""

COVARIATE_SECONDS = 0.5
"""For which other work is measured before a boot, where the study makes it a covariate."""

Boot = list[PlannedTrial]


class Ended(Struct, frozen=True):
    """A trial that has ended and is not visible yet."""

    staged: Path
    """Its raw files."""
    record: TrialRecord
    values: dict[int, dict[str, float]] = {}
    """What was read from them: kduel.store.collect.Values."""


class Repeats:
    """What was made again so far in a run, and what is to be."""

    def __init__(self, run: RunDir, rule: Disturbance | None, planned: int) -> None:
        self.run, self.rule, self.planned = run, rule, planned
        self.made: Counter[tuple[str, str]] = Counter()
        self.seconds = 0.0
        """How long these boots took together."""
        for _, record in run.put_asides():
            self.count(record, record.void.code if record.void else "")

    def count(self, record: TrialRecord, code: str) -> None:
        """A trial was put aside for that reason."""
        self.made[record.id, code] += 1
        self.seconds += record.seconds

    def of(self, boot: Boot) -> int:
        """How often a planned boot was made already."""
        return max(sum(count for (trial, _), count in self.made.items() if trial == one.id) for one in boot)

    def in_order(self, boots: Sequence[Boot]) -> deque[Boot]:
        """Boots of the plan, those to be made again at the end of their block."""
        return deque(sorted(boots, key=lambda boot: (boot[0].block, self.of(boot) > 0)))

    def due(self, ended: Sequence[Ended]) -> tuple[list[Ended], str]:
        """The trials of a boot as they are to be kept, and the code for which the boot is to be made again instead."""
        if any(one.record.void and one.record.void.code == EMULATOR_FAULT for one in ended):
            if self.times(ended, EMULATOR_FAULT) < EMULATOR_REPEATS:
                return list(ended), EMULATOR_FAULT
            return [of_kernel(one) for one in ended], ""
        if any(one.record.void and one.record.void.code not in STARVED for one in ended):
            return list(ended), ""
        waited = [share for one in ended if (share := wait_share(one.record.host.values())) is not None]
        if self.rule is None or not waited or 100 * max(waited) <= self.rule.max_wait_pct:
            return list(ended), ""
        again = self.times(ended, HOST_DISTURBED) < self.rule.repeats
        if not self.rule.strict and self.disturbed >= SHARE_OF_PLAN * self.planned:
            again = False
        if not again and not self.rule.strict:
            return list(ended), ""
        why = (
            f"The guest waited for a CPU of the host {100 * max(waited):.0f} % of the time in which it was runnable; at most "
            f"{self.rule.max_wait_pct:g} % are allowed."
        )
        return [voided(one, Void(HOST_DISTURBED, why)) for one in ended], HOST_DISTURBED if again else ""

    @property
    def disturbed(self) -> int:
        """How many boots were made again for the host's sake."""
        return sum(count for (_, code), count in self.made.items() if code == HOST_DISTURBED)

    def times(self, ended: Sequence[Ended], code: str) -> int:
        """How often this boot was made again for that reason."""
        return max(self.made[one.record.id, code] for one in ended)

    def put_aside(self, boot: Boot, ended: Sequence[Ended], code: str, waiting: deque[Boot]) -> None:
        """Keep a boot next to the trials, and plan it again at the end of its block."""
        for one in ended:
            self.run.put_aside(one.staged, one.record)
            self.count(one.record, code)
        index = next((i for i, other in enumerate(waiting) if other[0].block > boot[0].block), len(waiting))
        waiting.insert(index, boot)

    def refuse_in_vain(self, records: Sequence[TrialRecord]) -> None:
        """Raises NotMeasuredError where the host disturbed every trial of late, and HostError where the machine was not
        there for them: the run would measure nothing."""
        in_time = sorted(records, key=lambda record: record.started)
        if len(last := in_time[-MOST_AWAY:]) == MOST_AWAY and all(never_began(one.void) for one in last):
            raise HostError(
                f"the last {MOST_AWAY} trials are void by no fault of their contenders. {last[-1].void}",
                f"What was measured is kept: see to the machine, then `kduel resume {self.run.path}` continues.",
            )
        last = in_time[-MOST_DISTURBED:]
        if len(last) == MOST_DISTURBED and all(one.void and one.void.code == HOST_DISTURBED for one in last):
            raise NotMeasuredError(
                f"the host disturbed the last {len(last)} trials. {last[-1].void}",
                f"Stop other work on the host, or raise max_wait in [host]; the trials are kept in {self.run.path}.",
            )


def of_kernel(ended: Ended) -> Ended:
    """The same fault boot after boot is not chance: it is the kernel's oops."""
    why = f"{EMULATOR_REPEATS + 1} boots in a row ended this way, which the emulator's fault seldom causes. "
    return voided(ended, Void("oops", why + (ended.record.void.message if ended.record.void else "")))


def voided(ended: Ended, void: Void) -> Ended:
    """The same trial, void for this reason; a former one of starvation is reported as well."""
    known = ended.record.void
    if known is not None and known.code in STARVED:
        void = Void(void.code, f"{void.message} Its own trouble was {known}")
    return Ended(ended.staged, structs.replace(ended.record, status="void", void=void))


class Quiet:
    """Waits for the host to become quiet before a trial: bounded, and less patient each time that it was in vain."""

    def __init__(self, rule: Disturbance | None, progress: Progress, root: Path = Path("/")) -> None:
        self.rule, self.progress, self.root = rule, progress, root
        self.patience = rule.quiet_seconds if rule else 0.0
        """Seconds that the next wait lasts at most."""
        self.busy = True
        """Whether other work was found last: at the start nothing is known."""
        self.since: HostSnapshot | None = None
        """The host when the last trial had ended."""

    def saw(self, record: TrialRecord) -> None:
        """A trial has ended; what the host did during it is known."""
        if self.rule is not None:
            self.busy = self.beyond(other_work(record.host.values()))
            self.since = self.now()

    def beyond(self, share: float | None) -> bool:
        """Whether other work takes more of the CPUs than the guest may wait."""
        return self.rule is not None and share is not None and 100 * share > self.rule.max_wait_pct

    def came_back(self) -> bool:
        """Whether other work shows in the moment since the last trial: a guest with raised priority displaces it."""
        if self.since is None:
            return False
        pause(max(0.0, MOMENT_SECONDS - (time.monotonic() - self.since.at)))
        return self.beyond(taken_by_others(self.since, self.now()))

    def wait(self) -> None:
        """Return when other work takes no more of the CPUs than the guest may wait, or when patience ends.

        A host that has been quiet is waited for longer: what it does comes and goes, and a block whose trials differ in
        it says little. One that never was would only cost time.
        """
        if self.rule is None or not self.rule.quiet_seconds:
            return
        longest = max(self.rule.quiet_seconds, self.rule.between_bursts_seconds)
        if not (self.busy or self.came_back()):
            # A moment can be quiet by chance where the host never is: only a longer look makes the runner patient again.
            if self.patience < longest and not self.beyond(self.other_share()):
                self.patience = longest
            return
        if self.patience < LOOK_SECONDS:
            return
        deadline = time.monotonic() + self.patience
        shown = False
        while (share := self.other_share()) is not None and self.beyond(share):
            if time.monotonic() >= deadline:
                self.patience /= 2
                return
            if not shown:
                self.progress.info(
                    f"other work takes {100 * share:.0f} % of the CPUs: the next trial waits for a quiet host, "
                    f"{self.patience:.0f} s at most"
                )
                shown = True
        self.patience = longest

    def before_boot(self) -> float | None:
        """The share of the host's CPUs that other work takes just before a boot."""
        return self.other_share(COVARIATE_SECONDS)

    def other_share(self, seconds: float = LOOK_SECONDS) -> float | None:
        """The share of the host's CPUs that is taken now, measured for so long, while no guest runs."""
        before = self.now()
        pause(seconds)
        return taken_by_others(before, self.now())

    def now(self) -> HostSnapshot:
        """What the host's CPUs, and this process, have done so far."""
        return HostSnapshot(at=time.monotonic(), busy=cpu_times(self.stat())[0], own=time.process_time())

    def stat(self) -> str:
        """/proc/stat, or nothing where it cannot be read."""
        try:
            return (self.root / "proc/stat").read_text("ascii", errors="replace")
        except OSError:
            return ""


def pause(seconds: float) -> None:
    """Wait. Not time.sleep, which uses an absolute time and fails where a library fakes the clock."""
    threading.Event().wait(seconds)
