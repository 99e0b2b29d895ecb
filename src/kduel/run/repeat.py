"""Boots made again for a fault that is not their contender's, by the host's figures and the emulator's faults."""

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
from kduel.core.this_host import text_of
from kduel.core.void_codes import never_began
from kduel.guest.emulator import NO_FAULT
from kduel.guest.hosttotals import HostSnapshot, cpu_times, taken_by_others
from kduel.store.documents import Disturbance, TrialRecord, boot_seconds
from kduel.store.rundir import RunDir
from kduel.study.plan import PlannedTrial

EMULATOR_REPEATS = 3
"""A fault of the emulator strikes one boot in six at worst: four in a row are the kernel's own."""
LOCKUP_REPEATS = 1
"""Of a lockup that looks like that fault, over all boots of a contender: its kernel may have a livelock of its own."""
SHARE_OF_PLAN = 0.2
"""By a machine's default at most so many of the trials are made again: a run must end on a busy host, too."""
LOCKUP = "soft-lockup"
STARVED = frozenset({"wrong-clock", "no-results", "deadline", "hang", "qemu-hung", LOCKUP, "peer-late", "peer-hung"})
"""Void codes of a guest that gets too little of the host's CPUs. Any other trouble is its own, however busy the host."""
ALWAYS_PCT = 100.0
"""As `Machine.max_wait_pct`: the guest has more CPUs than its host, and waits always."""
TOO_SMALL = (
    ": it has more CPUs than KDuel may use here, and one that waits looks locked up to its kernel. Give it fewer"
)
STARVED_PCT = 25.0
"""Per cent of waiting for the host's CPUs from which they explain a STARVED trial of a guest that may wait however long."""
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


class EndedTrial(Struct, frozen=True):
    """A trial that has ended and is not visible yet."""

    staged: Path
    """Its raw files."""
    record: TrialRecord
    values: dict[int, dict[str, float]] = {}
    """Values that were read from them: kduel.store.collect.Values."""


class Repeats:
    """Counts repeated boots of a run, and decides which boots are repeated."""

    def __init__(self, run: RunDir, rule: Disturbance | None, planned: int) -> None:
        self.run, self.rule, self.planned = run, rule, planned
        self.made: Counter[tuple[str, str]] = Counter()
        self.locked_up: Counter[str] = Counter()
        """By contender: lockups that were taken for the emulator's."""
        self.counted: list[TrialRecord] = []
        for _, record in run.put_asides():
            self.count(record, record.void.code if record.void else "")

    def count(self, record: TrialRecord, code: str) -> None:
        """A trial was put aside for that reason."""
        self.made[record.id, code] += 1
        self.locked_up[record.contender] += is_lockup(record)
        self.counted.append(record)

    @property
    def seconds(self) -> float:
        """Seconds that these boots took together."""
        return boot_seconds(self.counted)

    def times_made(self, boot: Boot) -> int:
        return max(sum(count for (trial, _), count in self.made.items() if trial == one.id) for one in boot)

    def order_boots(self, boots: Sequence[Boot]) -> deque[Boot]:
        """Boots of the plan, those to be made again at the end of their block."""
        return deque(sorted(boots, key=lambda boot: (boot[0].block, self.times_made(boot) > 0)))

    def judge_boot(self, ended: Sequence[EndedTrial]) -> tuple[list[EndedTrial], str]:
        """The trials of a boot as they are to be kept, and the code for which the boot is to be made again instead."""
        if any(map(is_emulators, ended)):
            often = self.times_repeated(ended, EMULATOR_FAULT) >= EMULATOR_REPEATS
            second = [
                is_lockup(one.record) and self.locked_up[one.record.contender] >= LOCKUP_REPEATS for one in ended
            ]
            if not often and not any(second):
                return list(ended), EMULATOR_FAULT
            return [
                blame_kernel(one, often) if is_emulators(one) and (often or again) else one
                for one, again in zip(ended, second, strict=True)
            ], ""
        if any(one.record.void and one.record.void.code not in STARVED for one in ended):
            return list(ended), ""
        hosts = [list(one.record.host.values()) for one in ended]
        if len({one.record.boot for one in ended}) > 1:
            # Guests that took turns met the same host.
            hosts = [[step for steps in hosts for step in steps]]
        waited = [share for steps in hosts if (share := wait_share(steps)) is not None]
        if self.rule is None or not waited:
            return list(ended), ""
        allowed = self.rule.max_wait_pct
        crowded = allowed >= ALWAYS_PCT
        if crowded and any(one.record.void for one in ended):
            allowed = STARVED_PCT
        if 100 * max(waited) <= allowed:
            return list(ended), ""
        why = f"The guest waited for a CPU of the host {100 * max(waited):.0f} % of the time in which it was runnable"
        why += f"{TOO_SMALL}." if crowded else f"; at most {allowed:g} % are allowed."
        again = self.times_repeated(ended, HOST_DISTURBED) < self.rule.repeats
        if not self.rule.strict and self.disturbed_boots >= SHARE_OF_PLAN * self.planned:
            again = False
        if not again and not self.rule.strict:
            return [explain_void(one, why) for one in ended], ""
        return [make_void(one, Void(HOST_DISTURBED, why)) for one in ended], HOST_DISTURBED if again else ""

    @property
    def disturbed_boots(self) -> int:
        return sum(count for (_, code), count in self.made.items() if code == HOST_DISTURBED)

    def times_repeated(self, ended: Sequence[EndedTrial], code: str) -> int:
        """Number of times that this boot was made again for that reason."""
        return max(self.made[one.record.id, code] for one in ended)

    def put_aside(self, boot: Boot, ended: Sequence[EndedTrial], code: str, waiting: deque[Boot]) -> None:
        """Keep a boot next to the trials, and plan it again at the end of its block."""
        for one in ended:
            self.run.put_aside(one.staged, one.record)
            self.count(one.record, code)
        index = next((i for i, other in enumerate(waiting) if other[0].block > boot[0].block), len(waiting))
        waiting.insert(index, boot)

    def check_not_in_vain(self, records: Sequence[TrialRecord], resume: str) -> None:
        """Raises NotMeasuredError where the host disturbed every trial of late, and HostError where the machine was not
        there for them: the run would measure nothing. `resume` is the command that goes on."""
        in_time = sorted(records, key=lambda record: record.started)
        if len(last := in_time[-MOST_AWAY:]) == MOST_AWAY and all(never_began(one.void) for one in last):
            raise HostError(
                f"the last {MOST_AWAY} trials are void by no fault of their contenders. {last[-1].void}",
                f"What was measured is kept: see to the machine, then {resume} continues.",
            )
        last = in_time[-MOST_DISTURBED:]
        if len(last) == MOST_DISTURBED and all(one.void and one.void.code == HOST_DISTURBED for one in last):
            raise NotMeasuredError(
                f"the host disturbed the last {len(last)} trials. {last[-1].void}",
                f"Stop other work on the host, or raise max_wait in [host]; the trials are kept in {self.run.path}.",
            )


def is_emulators(ended: EndedTrial) -> bool:
    return ended.record.void is not None and ended.record.void.code == EMULATOR_FAULT


def is_lockup(record: TrialRecord) -> bool:
    """True if a lockup was taken for the emulator's fault."""
    return record.facts.get("excused") == LOCKUP


def blame_kernel(ended: EndedTrial, often: bool) -> EndedTrial:
    """Record a fault that recurs as the kernel's oops or lockup: it is not chance. It recurred `often`, or is a second lockup."""
    how_often = f"{EMULATOR_REPEATS + 1} boots in a row" if often else "A second boot of this contender"
    told = ended.record.void.message.replace(NO_FAULT, "") if ended.record.void else ""
    why = f"{how_often} ended this way, which the emulator's fault seldom causes. {told}"
    return make_void(ended, Void(LOCKUP if is_lockup(ended.record) else "oops", why))


def explain_void(ended: EndedTrial, why: str) -> EndedTrial:
    """Say of a void trial what the host did; a good one stays as it is."""
    known = ended.record.void
    if known is None:
        return ended
    void = Void(known.code, f"{known.message}\n{why}")
    return EndedTrial(ended.staged, structs.replace(ended.record, void=void), ended.values)


def make_void(ended: EndedTrial, void: Void) -> EndedTrial:
    """Make the trial void for this reason; a former reason of starvation is kept in the message."""
    known = ended.record.void
    if known is not None and known.code in STARVED:
        void = Void(void.code, f"{void.message} Its own trouble was {known}")
    return EndedTrial(ended.staged, structs.replace(ended.record, status="void", void=void))


class QuietHostWait:
    """Waits for the host to become quiet before a trial: each failed wait halves the limit."""

    def __init__(self, rule: Disturbance | None, progress: Progress, root: Path = Path("/")) -> None:
        self.rule, self.progress, self.root = rule, progress, root
        self.patience = rule.quiet_seconds if rule else 0.0
        """Seconds that the next wait lasts at most."""
        self.busy = True
        """True if other work was found last: at the start nothing is known."""
        self.since: HostSnapshot | None = None
        """The host when the last trial had ended."""

    def note_trial(self, record: TrialRecord) -> None:
        """A trial has ended; what the host did during it is known."""
        if self.rule is not None:
            self.busy = self.is_disturbing(other_work(record.host.values()))
            self.since = self.take_snapshot()

    def is_disturbing(self, share: float | None) -> bool:
        """True if other work takes more of the CPUs than the guest may wait."""
        return self.rule is not None and share is not None and 100 * share > self.rule.max_wait_pct

    def sees_other_work(self) -> bool:
        """True if other work shows in the moment since the last trial: a guest with raised priority displaces it."""
        if self.since is None:
            return False
        pause(max(0.0, MOMENT_SECONDS - (time.monotonic() - self.since.at)))
        return self.is_disturbing(taken_by_others(self.since, self.take_snapshot()))

    def wait(self) -> None:
        """Return when other work takes no more of the CPUs than the guest may wait, or when patience ends: it is
        longer on a host that has been quiet, as a block of which one trial is disturbed is nearly useless."""
        if self.rule is None or not self.rule.quiet_seconds:
            return
        longest = max(self.rule.quiet_seconds, self.rule.between_bursts_seconds)
        if not (self.busy or self.sees_other_work()):
            # A moment can be quiet by chance where the host never is: only a longer look makes the runner patient again.
            if self.patience < longest and not self.is_disturbing(self.measure_other_work()):
                self.patience = longest
            return
        if self.patience < LOOK_SECONDS:
            return
        deadline = time.monotonic() + self.patience
        shown = False
        while (share := self.measure_other_work()) is not None and self.is_disturbing(share):
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

    def measure_other_work(self, seconds: float = LOOK_SECONDS) -> float | None:
        """The share of the host's CPUs that is taken now, measured for so long, while no guest runs."""
        before = self.take_snapshot()
        pause(seconds)
        return taken_by_others(before, self.take_snapshot())

    def take_snapshot(self) -> HostSnapshot:
        """Times of the host's CPUs and of this process so far."""
        return HostSnapshot(
            at=time.monotonic(), busy=cpu_times(text_of(self.root / "proc/stat"))[0], own=time.process_time()
        )


def pause(seconds: float) -> None:
    """Wait. Not time.sleep, which uses an absolute time and fails where a library fakes the clock."""
    threading.Event().wait(seconds)
