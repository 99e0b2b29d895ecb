"""The trials of a run that are there, the boots that are not, and the contenders that cannot be measured."""

from collections import Counter
from collections.abc import Container

from msgspec import structs

from kduel.core.experiment import BLOCK_INTERRUPTED, LEFT_OUT, Void
from kduel.core.void_codes import find_unmeasurable, may_be_contenders
from kduel.run.repeat import Boot
from kduel.store.documents import Lock, TrialRecord, boot_seconds
from kduel.store.integrity import checked_plan, trials_of
from kduel.store.rundir import RunDir


class Records:
    """The records of a run's trials, by their names. Raises InputError where the run is damaged."""

    def __init__(self, run: RunDir, lock: Lock) -> None:
        self.run, self.lock = run, lock
        self.plan = checked_plan(run, lock)
        self.by_id: dict[str, TrialRecord] = {}
        self.in_block: Counter[int] = Counter()
        """Number of trials of each block that are there."""
        self.unbuilt = {
            contender.name: kernel.unbuilt
            for contender, kernel in zip(lock.contenders, lock.kernels, strict=True)
            if kernel.unbuilt
        }
        """Contenders that have no kernel to boot, and the reason."""
        for record in trials_of(run, lock):
            self.add(record)

    def add(self, record: TrialRecord) -> None:
        """Register a finished trial."""
        self.by_id[record.id] = record
        self.in_block[record.block] += 1

    @property
    def seconds(self) -> float:
        """Seconds that all these trials took."""
        return boot_seconds(self.by_id.values())

    def put_aside_parts(self) -> None:
        """Put aside the trials of blocks that lack others, where a block's trials are alive at once: it is made again as a whole."""
        for record in list(self.by_id.values()) if self.lock.blocks.in_turns else ():
            if not self.has_block(record.block):
                void = Void(BLOCK_INTERRUPTED, "The run was interrupted before all trials of its block were kept.")
                self.run.put_aside(self.run.directory(record.id), structs.replace(record, status="void", void=void))
                del self.by_id[record.id]
        self.in_block = Counter(record.block for record in self.by_id.values())

    def has_block(self, block: int) -> bool:
        return self.in_block[block] >= len(self.lock.contenders)

    def leading_blocks(self) -> list[int]:
        """The leading blocks of which every trial is there: looks never depend on the order inside a block."""
        leading: list[int] = []
        for block in range(1, self.plan[-1].block + 1):
            if not self.has_block(block):
                break
            leading.append(block)
        return leading

    def missing_boots(self, blocks: Container[int] | None = None) -> list[Boot]:
        """The missing trials, those of one boot together, in the plan's order; of some `blocks`, if given."""
        boots: dict[int, Boot] = {}
        for planned in self.plan:
            if planned.id not in self.by_id and (blocks is None or planned.block in blocks):
                boots.setdefault(planned.boot, []).append(planned)
        return list(boots.values())

    def trials_of_contender(self, contender: str) -> list[TrialRecord]:
        """The trials of a contender so far, without those that are void by no fault of its own."""
        return [
            record
            for record in self.by_id.values()
            if record.contender == contender and (record.void is None or may_be_contenders(record.void))
        ]

    @property
    def unmeasurable(self) -> list[str]:
        """The contenders whose trials are all void, and enough of them."""
        out = find_unmeasurable(self.by_id.values(), self.plan[-1].block)
        return [contender.name for contender in self.lock.contenders if contender.name in out]

    def excluded_contenders(self) -> set[str]:
        """The contenders, other than the baseline, that cannot be measured: their first trials are all void."""
        baseline, *others = (contender.name for contender in self.lock.contenders)
        out = {*self.unmeasurable} - {baseline}
        return out if len(out) < len(others) else set()

    def reasons_not_to_boot(self, boot: Boot) -> list[Void]:
        """A reason for each trial of a boot that is not to be carried out; empty where it is."""
        if boot[0].contender in self.unbuilt:
            return [Void("does-not-build", f"not measurable: {self.unbuilt[one.contender]}") for one in boot]
        out = self.excluded_contenders()
        if not all(planned.contender in out for planned in boot):
            return []
        firsts = (min(self.trials_of_contender(one.contender), key=lambda record: record.position) for one in boot)
        return [Void(LEFT_OUT, f"not run: its first trials were void. The first: {first.void}") for first in firsts]
