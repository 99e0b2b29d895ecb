"""From raw files to samples: every number of a run, read again from what its trials left behind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from kduel.benchmarks import Benchmark, ParseError, Raw, benchmark
from kduel.core.experiment import Metric, Step
from kduel.core.host import OTHER_WORK
from kduel.core.samples import Details, Samples, StepResult
from kduel.core.void_codes import never_began
from kduel.store.documents import Lock, TrialRecord
from kduel.store.integrity import trials_of
from kduel.store.rundir import RunDir


def step_directory(trial: Path, index: int, label: str) -> Path:
    """Where a step's raw files are: `index` counts from 0 in the order of the study, whatever order it ran in."""
    return trial / f"{index + 1:02d}-{label}"


def parse_step(directory: Path, chosen: Benchmark, parameters: object) -> dict[str, float]:
    """The step's numbers from its raw files, all of the benchmark's metrics. Raises ParseError with the reason."""
    raw = Raw.read(directory, trial_files=chosen.trial_files)
    if raw.exit_status != 0:
        last = (raw.stderr.strip() or raw.stdout.strip()).splitlines()[-1:]
        raise ParseError(f"it ended with status {raw.exit_status}" + (f": {last[0][:300]}" if last else ""))
    return chosen.parse(raw, parameters)


Values = dict[int, dict[str, float]]
"""By the step's place in the study, its metrics by name."""


class Prepared:
    """A study's steps with their benchmarks and typed parameters, looked up once."""

    def __init__(self, steps: list[Step]) -> None:
        self.steps = steps
        self.benchmarks = [benchmark(step.benchmark) for step in steps]
        self.parameters = [
            chosen.read_parameters(step.parameters) for chosen, step in zip(self.benchmarks, steps, strict=True)
        ]

    def parse(self, trial: Path, index: int) -> dict[str, float]:
        """One step's numbers. Raises ParseError."""
        directory = step_directory(trial, index, self.steps[index].label)
        return parse_step(directory, self.benchmarks[index], self.parameters[index])

    def details(self, trial: Path, index: int) -> Details:
        """Details of one step beyond its numbers. Raises ParseError."""
        chosen = self.benchmarks[index]
        if type(chosen).details is Benchmark.details:
            return Details()
        directory = step_directory(trial, index, self.steps[index].label)
        return chosen.details(Raw.read(directory, trial_files=chosen.trial_files), self.parameters[index])

    def parse_trial(self, trial: Path, steps: Sequence[int] | None = None) -> tuple[Values, dict[str, str]]:
        """Every step's numbers, or those of some, and by label why a step gave none."""
        values: Values = {}
        failed = {}
        for index in range(len(self.steps)) if steps is None else steps:
            try:
                values[index] = self.parse(trial, index)
            except ParseError as error:
                failed[self.steps[index].label] = str(error)
        return values, failed

    def step(self, index: int) -> StepResult:
        """One step with all its parameters."""
        step = self.steps[index]
        parameters = msgspec.to_builtins(self.parameters[index])
        return StepResult(label=step.label, benchmark=step.benchmark, parameters=parameters)

    def metrics(self, index: int) -> tuple[Metric, ...]:
        """What one step yields."""
        return self.benchmarks[index].metrics(self.parameters[index])


class Collector:
    """Samples growing trial by trial, so that a runner need not read the whole run again after each block."""

    def __init__(self, run: RunDir, lock: Lock, prepared: Prepared | None = None) -> None:
        self.run = run
        self.names = [contender.name for contender in lock.contenders]
        self.prepared = prepared or Prepared(lock.steps)
        self.blocks: list[int] = []
        self.found: dict[tuple[int, str], TrialRecord] = {}
        self.values: dict[tuple[int, str], Values] = {}
        self.details: dict[tuple[int, str], dict[int, Details]] = {}

    def add(self, record: TrialRecord, values: Values | None = None) -> None:
        """Take in one trial: its raw files, or the values that were just read from them."""
        key = record.block, record.contender
        self.found[key] = record
        if record.block not in self.blocks:
            self.blocks.append(record.block)
        if record.status == "void":
            return
        directory = self.run.directory(record.id)
        self.values[key] = self.prepared.parse_trial(directory)[0] if values is None else values
        self.details[key] = {index: self.prepared.details(directory, index) for index in self.values[key]}

    def samples(self, blocks: list[int] | None = None) -> list[Samples]:
        """One table a metric over the given blocks (all by default), in the study's order."""
        chosen = sorted(self.blocks if blocks is None else blocks)
        places = {block: self.places(block) for block in chosen}
        order = {name: [places[block].get(name) for block in chosen] for name in self.names}
        known = {
            name: [
                self.found[block, name].other_work_before if (block, name) in self.found else None for block in chosen
            ]
            for name in self.names
        }
        absent = {
            name: [(block, name) in self.found and never_began(self.found[block, name].void) for block in chosen]
            for name in self.names
        }
        measured = any(value is not None for values in known.values() for value in values)
        member_of = {record.block: record.member for record in self.found.values()}
        machines = [member_of.get(block, "") for block in chosen] if any(member_of.values()) else []
        tables = []
        for index, step in enumerate(self.prepared.steps):
            made = self.prepared.step(index)
            given = {name for values in self.values.values() for name in values.get(index, {})}
            for metric in self.prepared.metrics(index):
                if metric.optional and metric.name not in given:
                    continue  # No trial gave it: an older version's program did not count it.
                tables.append(
                    Samples(
                        benchmark=step.label,
                        metric=metric,
                        step=made,
                        primary=metric.name in step.primary,
                        blocks=chosen,
                        values={
                            name: [
                                self.values.get((block, name), {}).get(index, {}).get(metric.name) for block in chosen
                            ]
                            for name in self.names
                        },
                        order=order,
                        absent=absent if any(map(any, absent.values())) else {},
                        covariates={OTHER_WORK: known} if measured else {},
                        machines=machines,
                        **self.detailed(index, metric.name, chosen),
                    )
                )
        return tables

    def places(self, block: int) -> dict[str, int]:
        """By contender, the place in time of its trial. What was made again came after the rest of its block."""
        records = [self.found[block, name] for name in self.names if (block, name) in self.found]
        in_time = sorted(records, key=lambda one: (one.repeats > 0, one.started if one.repeats else "", one.position))
        places = sorted(record.position for record in records)
        return {record.contender: place for record, place in zip(in_time, places, strict=True)}

    def detailed(self, index: int, metric: str, blocks: list[int]) -> dict[str, Any]:
        """The fields `conditions` and `modes` of a metric's table; none where the benchmark gives no details."""

        def of(name: str) -> list[Details]:
            return [self.details.get((block, name), {}).get(index, Details()) for block in blocks]

        conditions = {name: [details.conditions.get(metric, {}) for details in of(name)] for name in self.names}
        modes = {
            name: next((found for details in of(name) if (found := details.modes.get(metric))), [])
            for name in self.names
        }
        return {
            "conditions": conditions if any(map(any, conditions.values())) else {},
            "modes": modes if any(modes.values()) else {},
        }


def collect(path: Path) -> list[Samples]:
    """Every number of a run, read again from its raw files. Raises InputError where it is no run."""
    run = RunDir.open(path)
    if run.imported:
        from kduel.store.imported import read

        return list(read(path))
    lock = run.lock()
    collector = Collector(run, lock)
    for record in trials_of(run, lock):
        collector.add(record)
    return collector.samples()
