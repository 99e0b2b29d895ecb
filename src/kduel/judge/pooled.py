"""The parts of a merged run as one: their blocks one after the other, each with the machine that carried it out."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, structs

from kduel.core.results import PartResult, TrialResult, first_date
from kduel.core.samples import DETAILS_BY_BLOCK, DETAILS_ONCE, Samples
from kduel.judge.verdict.comparison import finished_blocks
from kduel.store.collect import Collector
from kduel.store.documents import Lock, TrialRecord
from kduel.store.integrity import trials_of
from kduel.store.merged import machine_of, parts
from kduel.store.rundir import RunDir

T = TypeVar("T")


class PooledPart(Struct, kw_only=True):
    """A part with its place among the others."""

    name: str
    machine: str
    """Of all its blocks; of a fleet's run, what stands before the names of its members."""
    run: RunDir
    lock: Lock
    records: list[TrialRecord]
    samples: list[Samples]
    """Of its finished blocks, numbered as in the merged run."""
    blocks_before: int
    positions_before: int

    def renumber(self, trial: TrialResult) -> TrialResult:
        """A trial of this part as the merged run has it."""
        return structs.replace(
            trial, id=f"{self.name}/{trial.id}", block=trial.block + self.blocks_before,
            position=trial.position + self.positions_before, directory=f"runs/{self.name}/{trial.directory}",
            part=self.name, machine=machine_of(self.machine, trial.machine),
        )  # fmt: skip

    def result(self) -> PartResult:
        return PartResult(
            name=self.name,
            machine=", ".join(machine_of(self.machine, member) for member in self.lock.hosts or [""]),
            blocks=len(self.samples[0].blocks) if self.samples else 0,
            seed=self.lock.seed,
            started=first_date(record.started for record in self.records) or None,
            directory=f"runs/{self.name}",
        )


class MergedData(Struct, kw_only=True):
    lock: Lock
    """The first part's, with the blocks of all of them and what is true of every machine."""
    parts: list[PooledPart]
    samples: list[Samples]


def read_merged(path: Path) -> MergedData:
    """Raises InputError where the merged run is damaged."""
    found: list[PooledPart] = []
    blocks = positions = 0
    for one in parts(path):
        collector = Collector(one.run, one.lock)
        records = trials_of(one.run, one.lock)
        for record in records:
            collector.add(record)
        tables = collector.samples()
        # A last block that was never finished is in the middle now: it is left out, as it would be at the end.
        finished = tables[0].blocks[: finished_blocks(tables)] if tables else []
        moved = [move_on(table, blocks, positions) for table in collector.samples(finished)]
        part = PooledPart(
            name=one.part.name, machine=one.part.machine, run=one.run, lock=one.lock, records=records, samples=moved,
            blocks_before=blocks, positions_before=positions,
        )  # fmt: skip
        found.append(part)
        blocks += max((record.block for record in records), default=0)
        positions += max((record.position + 1 for record in records), default=0)
    keys = dict.fromkeys((table.benchmark, table.metric) for part in found for table in part.samples)
    return MergedData(
        lock=lock_of([part.lock for part in found]), parts=found, samples=[join(key, found) for key in keys]
    )


def move_on(table: Samples, blocks: int, positions: int) -> Samples:
    return structs.replace(
        table,
        blocks=[block + blocks for block in table.blocks],
        order={
            name: [None if place is None else place + positions for place in places]
            for name, places in table.order.items()
        },
    )


def lock_of(locks: Sequence[Lock]) -> Lock:
    """The first lock, with the names of all, the blocks that they planned, and the machine facts on which they agree."""
    first = locks[0]
    fixed = [lock.blocks.fixed for lock in locks]
    machines = [lock.machine for lock in locks]

    def common_items(tables: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {key: value for key, value in tables[0].items() if all(table.get(key) == value for table in tables)}

    def join_names(words: Iterable[str]) -> str:
        return " + ".join(dict.fromkeys(word for word in words if word))

    return structs.replace(
        first,
        study=structs.replace(
            first.study,
            name=join_names(lock.study.name for lock in locks),
            title=join_names(lock.study.title for lock in locks),
        ),
        blocks=structs.replace(
            first.blocks,
            max=sum(lock.blocks.max or 0 for lock in locks),
            fixed=None if None in fixed else sum(number or 0 for number in fixed),
        ),
        machine=structs.replace(
            first.machine,
            settings=common_items([machine.settings for machine in machines]),
            facts=common_items([machine.facts for machine in machines]),
        ),
    )


def join(key: tuple[str, Any], found: Sequence[PooledPart]) -> Samples:
    """A metric's tables as one; where a part does not have it, its values are missing."""
    tables = [
        (part, next((table for table in part.samples if (table.benchmark, table.metric) == key), None))
        for part in found
        if part.samples
    ]
    present = [table for _, table in tables if table is not None]
    whole = present[0]

    def chain_field(pick: Callable[[Samples], dict[str, list[T]]], nothing: T) -> dict[str, list[T]]:
        """A field by contender over all parts, where any has it; `nothing` stands for each block of a table that lacks it."""
        if not any(map(pick, present)):
            return {}
        return {
            name: [
                value
                for part, table in tables
                for value in (
                    (pick(table).get(name) if table is not None else None) or [nothing] * len(part.samples[0].blocks)
                )
            ]
            for name in whole.contenders
        }

    def first_field(pick: Callable[[Samples], dict[str, T]], nothing: T) -> dict[str, T]:
        """A field by contender, of the first part that has it."""
        found = {name: [one for table in present if (one := pick(table).get(name))] for name in whole.contenders}
        return {name: (some or [nothing])[0] for name, some in found.items()} if any(found.values()) else {}

    beyond = {name: [block for table in present for block in table.beyond.get(name, [])] for name in whole.contenders}
    return structs.replace(
        whole,
        blocks=[block for part, _ in tables for block in part.samples[0].blocks],
        machines=[
            machine_of(part.machine, member)
            for part, _ in tables
            for member in part.samples[0].machines or [""] * len(part.samples[0].blocks)
        ],
        parts=[part.name for part, _ in tables for _ in part.samples[0].blocks],
        values=chain_field(lambda table: table.values, None),
        places=[
            place
            for part, table in tables
            for place in (table.places if table is not None else [0] * len(part.samples[0].blocks))
        ],
        order={
            name: [place for part, _ in tables for place in part.samples[0].order[name]] for name in whole.contenders
        },
        absent=chain_field(lambda table: table.absent, False),
        beyond=beyond if any(table.beyond for table in present) else {},
        resolution=max(table.resolution for table in present),
        turns=chain_field(lambda table: table.turns, []),
        **{name: chain_field(attrgetter(name), nothing) for name, nothing in DETAILS_BY_BLOCK.items()},
        **{name: first_field(attrgetter(name), nothing) for name, nothing in DETAILS_ONCE.items()},
        covariates={name: chain_field(partial(covariate, name), None) for name in whole.covariates},
    )


def covariate(name: str, table: Samples) -> dict[str, list[float | None]]:
    return table.covariates.get(name, {})
