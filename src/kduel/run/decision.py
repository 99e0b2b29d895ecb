"""The decision about a run as it goes, by records and values alone: blocks that count, verdicts, boots to come."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import structs

from kduel.core.errors import NotMeasuredError
from kduel.core.metric_results import MetricResult
from kduel.judge.factors import gating
from kduel.judge.verdict.interim import is_finished, primary_results
from kduel.run.records import Records
from kduel.run.repeat import Boot
from kduel.run.watch import GiveUp, TrialDone, Watcher
from kduel.store.collect import Collector, Values
from kduel.store.documents import TrialRecord

if TYPE_CHECKING:
    from kduel.core.samples import Samples
    from kduel.judge.verdict.futility import Hopeless
    from kduel.judge.verdict.rule import Rule


class Decision:
    """The state of one run's decision. `complete_blocks` are by default the leading ones with every trial."""

    def __init__(
        self,
        records: Records,
        watch: Watcher,
        give_up: GiveUp,
        complete_blocks: Callable[[], list[int]] | None = None,
    ) -> None:
        self.records, self.lock, self.watch, self.give_up = records, records.lock, watch, give_up
        self.complete_blocks = complete_blocks or records.leading_blocks
        self.collector = Collector(records.run, self.lock)
        for record in records.by_id.values():
            self.collector.add(record)
        self.judged: tuple[int, list[MetricResult]] = (0, [])
        """Number of complete blocks, and the primary metrics after them."""
        self.hopeless_metrics: list[Hopeless] = []
        """After the last complete block."""
        self.given_up: bool | None = None
        """The result of `give_up`; None until it is called."""

    @cached_property
    def rule(self) -> Rule:
        """The rule that the run was planned by."""
        from kduel.judge.evaluate import rule_of

        return rule_of(self.lock)

    def take(
        self, record: TrialRecord, values: Values | None = None, *, repeated_seconds: float = 0.0, at_once: int = 1
    ) -> None:
        """Take in a finished trial, with the values that were just read from it, and report the progress; for its
        estimate, the seconds of boots that were made again, and how many trials are made at once."""
        before = len(self.complete_blocks())
        self.records.add(record)
        self.collector.add(record, values)
        self.report(record, len(self.complete_blocks()) > before, repeated_seconds, at_once)

    def report_kept(self, at_once: int = 1) -> None:
        """Report the state of a run that goes on; nothing where it has no trial yet."""
        if self.records.by_id:
            self.report(None, bool(self.complete_blocks()), 0.0, at_once)

    def report(self, record: TrialRecord | None, block_done: bool, repeated_seconds: float, at_once: int) -> None:
        """Report the state to the display; see `TrialDone` and `take`."""
        if block_done:
            self.hopeless_metrics = self.find_hopeless()
        done = len(self.records.by_id)
        self.watch(
            TrialDone(
                done=done,
                planned=len(self.records.plan),
                record=record,
                block_done=block_done,
                voids=[one.void.code for one in self.records.by_id.values() if one.void],
                mean_seconds=(self.records.seconds + repeated_seconds) / done / at_once,
                metrics=self.judge_primary(),
                hopeless=self.hopeless_metrics,
            )
        )

    def is_over(self) -> bool:
        """True if nothing more is to be carried out, though the plan may have more."""
        return self.is_finished() or self.is_futile()

    def is_finished(self) -> bool:
        """True if all primary metrics are decided by the complete blocks that are there. Where there is none, an exact
        machine, on which a repetition gives the same, carries out one block."""
        complete = self.complete_blocks()
        if not complete or self.lock.blocks.fixed is not None:
            return False
        if not any(step.primary for step in self.lock.steps):
            return not self.lock.machine.evidence.varies
        out = self.records.excluded_contenders()
        # Exact CPUs take minutes for a block, and no further one decides what depends on conditions, or has none.
        if self.lock.machine.resolution and all(
            one.settled or one.depends for one in self.judge_primary() if one.contender not in out
        ):
            return True
        return self.repeats(complete) or is_finished(self.samples(complete), self.rule, without=out)

    def repeats(self, blocks: list[int]) -> bool:
        """True if the last two of these blocks agree: then no block of an exact machine gives anything else."""
        if self.lock.machine.evidence.varies or len(blocks) < 2:
            return False
        last, before = (self.samples([block]) for block in blocks[:-3:-1])
        return all(one.repeats(other) for one, other in zip(last, before, strict=True))

    def is_futile(self) -> bool:
        """True if nothing can be decided any more and the run is to end for that."""
        if self.given_up is None and (hopeless := self.find_hopeless()):
            self.given_up = self.give_up(hopeless, self.rule)
        return bool(self.given_up)

    def find_hopeless(self) -> list[Hopeless]:
        """Metrics that are unlikely to be decided any more, by the complete blocks that are there."""
        complete = self.complete_blocks()
        if not complete or self.lock.blocks.fixed is not None:
            return []
        from kduel.judge.verdict.futility import futile

        return futile(self.samples(complete), self.rule, without=self.records.excluded_contenders())

    def judge_primary(self) -> list[MetricResult]:
        """The primary metrics after the complete blocks; judged once for each number of them."""
        if len(complete := self.complete_blocks()) != self.judged[0]:
            from kduel.judge.verdict.judge import judge_primary

            self.judged = len(complete), judge_primary(self.samples(complete), self.rule)
        return self.judged[1]

    def samples(self, blocks: list[int]) -> list[Samples]:
        """The values of these blocks, with the effects of factors."""
        return gating(self.collector.samples(blocks), self.lock.design)

    def next_boot(self, waiting: deque[Boot], busy: bool) -> Boot | None:
        """The next boot, with those steps that are to run; None where it must wait for those under way (`busy`)."""
        # A block that counts only what those before left open waits for them.
        if busy and self.counts_by_need and waiting[0][0].block - 1 not in (0, *self.complete_blocks()):
            return None
        return self.select_open_steps(waiting.popleft())

    @property
    def counts_by_need(self) -> bool:
        """True if a block counts only those steps whose verdict those before it left open: on an exact machine, where
        a repetition gives the same, and more conditions are all that a block can add. Not in a fleet, where what was
        there before a block depends on how many machines there are."""
        lock = self.lock
        return not lock.machine.evidence.varies and lock.blocks.fixed is None and lock.fleet is None

    def select_open_steps(self, boot: Boot) -> Boot:
        """The planned trials with the steps that are to run: all, or by need those that are still open."""
        block = boot[0].block
        if not self.counts_by_need or block == 1:
            return boot
        known = [one.steps for one in self.records.by_id.values() if one.block == block and one.steps]
        chosen = known[0] if known else self.open_steps([one for one in self.complete_blocks() if one < block])
        if not chosen:
            return boot
        return [
            structs.replace(planned, steps=chosen if known else [step for step in planned.steps if step in chosen])
            for planned in boot
        ]

    def open_steps(self, blocks: list[int]) -> list[int]:
        """The steps with a primary metric that these blocks do not settle."""
        if not blocks:
            return []
        labels = {one.benchmark for one in primary_results(self.samples(blocks), self.rule) if not one.settled}
        return [index for index, step in enumerate(self.lock.steps) if step.label in labels]

    def check_measurable(self) -> None:
        """Raises NotMeasuredError where a contender's trials are all void, and without it nothing is left to compare."""
        out = self.records.unmeasurable
        if not self.records.excluded_contenders().issuperset(out):
            raise NotMeasuredError(
                "\n".join(map(self.describe_unmeasurable, out)),
                f"{self.console_hint(out[-1])}; the trials so far are kept in {self.records.run.path}.",
            )

    def describe_unmeasurable(self, contender: str) -> str:
        """A sentence about a contender whose trials are all void."""
        own = self.records.trials_of_contender(contender)
        what = f"its first {len(own)} trials are void" if len(own) > 1 else "its trial is void"
        return f"{contender} could not be measured: {what}. {own[-1].void}"

    def console_hint(self, contender: str) -> str:
        """The place where the reason of a contender's void trials can be seen."""
        last = self.records.trials_of_contender(contender)[-1]
        return f"Look at {self.records.run.directory(last.id) / 'console.log'}"
