"""From raw files to samples: every number of a run, read again from what its trials left behind."""

import contextlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from kduel.benchmarks import Benchmark, ParseError, Raw, benchmark
from kduel.benchmarks.support import schedstat
from kduel.benchmarks.support.output import BeyondHistogramError
from kduel.core.experiment import Metric, Step, resolution_in
from kduel.core.host import OTHER_WORK
from kduel.core.samples import (
    DETAILS_BY_BLOCK,
    DETAILS_ONCE,
    SECONDS,
    Details,
    Samples,
    StepResult,
    within_reason,
)
from kduel.core.slices import ALL, SliceValue, interleave, plain_mean, reduce_slices, slice_label
from kduel.core.turns import StepTurns
from kduel.core.untrusted import MalformedError, decode, read
from kduel.core.void_codes import never_began
from kduel.store.documents import Lock, TrialRecord, check_steps, read_turns
from kduel.store.integrity import trials_of
from kduel.store.rundir import RunDir
from kduel.study.file import Blocks

BLOCKS = Blocks()


def step_directory(trial: Path, index: int, label: str, piece: int = 0) -> Path:
    """A step's directory: `index` from 0 in the study's order; `piece` is the slice from 1, or 0 for one piece."""
    return trial / f"{index + 1:02d}-{slice_label(label, piece)}"


def parse_step(directory: Path, chosen: Benchmark[Any], parameters: object) -> dict[str, float]:
    """The step's numbers from its raw files, all of the benchmark's metrics. Raises ParseError with the reason."""
    raw = Raw.read(directory, trial_files=chosen.trial_files)
    if raw.exit_status != 0:
        last = (raw.stderr.strip() or raw.stdout.strip()).splitlines()[-1:]
        raise ParseError(f"it ended with status {raw.exit_status}" + (f": {last[0][:300]}" if last else ""))
    return chosen.parse(raw, parameters)


def seconds_of(directory: Path, key: str) -> float | None:
    """Time when a step `started` after the boot, or the `seconds` it took, by the guest's clock; None if unknown."""
    try:
        found = decode(read(directory / "exit.json"), dict[str, float | None]).get(key)
    except (OSError, MalformedError):
        return None
    return found if found is not None and within_reason(found) else None


Values = dict[int, dict[str, float]]
"""By the step's place in the study, its metrics by name."""


class PreparedSteps:
    """A study's steps with their benchmarks and typed parameters, looked up once. `blocks` says how steps are cut."""

    def __init__(self, steps: list[Step], blocks: Blocks = BLOCKS) -> None:
        self.steps = steps
        self.reducer = blocks.reducer
        self.benchmarks = [benchmark(step.benchmark) for step in steps]
        self.parameters = [
            chosen.read_parameters(step.parameters) for chosen, step in zip(self.benchmarks, steps, strict=True)
        ]
        self.wanted = [step.slices or blocks.slices for step in steps]
        self.pieces = [
            chosen.cut(parameters, slices)
            for slices, chosen, parameters in zip(self.wanted, self.benchmarks, self.parameters, strict=True)
        ]
        """By step, the parameters of each of its slices; one for a step in one piece."""

    def __iter__(self) -> Iterator[tuple[Step, Benchmark[Any], Any]]:
        return zip(self.steps, self.benchmarks, self.parameters, strict=True)

    def fewer_slices(self) -> list[str]:
        """Steps that a longer `time` would cut into the number of slices that they should have, with their number."""
        fewer = []
        for step, chosen, parameters, pieces, wanted in zip(
            self.steps, self.benchmarks, self.parameters, self.pieces, self.wanted, strict=True
        ):
            if len(pieces) < wanted and hasattr(parameters, "time"):
                longer = structs.replace(parameters, time=parameters.time * wanted)
                if len(chosen.cut(longer, wanted)) == wanted:
                    fewer.append(f"{step.label} ({len(pieces)} of {wanted})")
        return fewer

    def measure_boots(self) -> bool:
        """True if one of them measures the boot of its trial."""
        return any(one.aspect == "boot-time" for _, chosen, given in self for one in chosen.metrics(given))

    def slice_labels(self) -> dict[str, list[str]]:
        """By the label of each step that is cut: the labels of its slices."""
        return {
            step.label: [slice_label(step.label, number) for number in range(1, len(pieces) + 1)]
            for step, pieces in zip(self.steps, self.pieces, strict=True)
            if len(pieces) > 1
        }

    def directories(self, index: int) -> list[str]:
        """Names of the directories of a step's slices, or of the step in one piece."""
        label, count = self.steps[index].label, len(self.pieces[index])
        return [
            step_directory(Path(), index, label, piece).name for piece in (range(1, count + 1) if count > 1 else (0,))
        ]

    def in_order(self, steps: Sequence[int], seed: int) -> list[tuple[int, int]]:
        """(step, slice) in the order of a trial of a block with this seed; slice 0 is a step in one piece."""
        return interleave(steps, {step: len(self.pieces[step]) for step in steps}, seed)

    def parse(self, trial: Path, index: int) -> dict[str, float]:
        """One step's numbers. Raises ParseError, naming the slice."""
        if len(self.pieces[index]) == 1:
            directory = step_directory(trial, index, self.steps[index].label)
            return self.parse_one(directory, index, self.parameters[index])
        found = self.parse_slices(trial, index)
        values = {
            metric.name: reduce_slices([one[metric.name] for one in found], metric, self.reducer)
            for metric in self.metrics_of_one(index)
            if all(metric.name in one for one in found)
        }
        return values | {
            name + ALL: math.fsum(one[name] for one in found) / len(found)
            for name in self.slice_means(index)
            if name in values
        }

    def parse_one(self, directory: Path, index: int, parameters: object) -> dict[str, float]:
        """The numbers of one slice, or of a step in one piece, in its directory. Raises ParseError."""
        values = parse_step(directory, self.benchmarks[index], parameters)
        if self.steps[index].schedstat:
            for part in (schedstat.read_counters, schedstat.read_beside):
                with contextlib.suppress(ParseError):  # parse_trial says so
                    values |= part(directory)
        return values

    def counters_error(self, trial: Path, index: int) -> str:
        """The reason why the counters around a step cannot be read; empty where they can, or none are kept."""
        try:
            for name in self.directories(index) if self.steps[index].schedstat else ():
                schedstat.read_step(trial / name)
        except ParseError as error:
            return str(error)
        return ""

    def parse_slices(self, trial: Path, index: int) -> list[dict[str, float]]:
        """The numbers of each slice of a step. Raises ParseError, naming the slice: without one the others are no fair sample."""
        found = []
        for number, parameters in enumerate(self.pieces[index], 1):
            directory = step_directory(trial, index, self.steps[index].label, number)
            try:
                found.append(self.parse_one(directory, index, parameters))
            except ParseError as error:
                raise ParseError(f"slice {number}: {error}") from error
        return found

    def slice_means(self, index: int) -> list[str]:
        """Metrics whose plain mean over all slices stands beside the reduced value."""
        if len(self.pieces[index]) == 1 or self.reducer == "mean":
            return []
        return [metric.name for metric in self.metrics_of_one(index) if metric.name in self.steps[index].primary]

    def details(self, trial: Path, index: int) -> Details:
        """Details of one step beyond its numbers. Raises ParseError."""
        if len(self.pieces[index]) > 1:
            return self.details_of_slices(trial, index)
        return self.details_of_one(step_directory(trial, index, self.steps[index].label), index)

    def details_of_one(self, directory: Path, index: int, piece: int = 1) -> Details:
        """Details of one slice, or of a step in one piece, in its directory. Raises ParseError."""
        chosen = self.benchmarks[index]
        if type(chosen).details is Benchmark.details:
            return Details()
        return chosen.details(Raw.read(directory, trial_files=chosen.trial_files), self.pieces[index][piece - 1])

    def details_of_slices(self, trial: Path, index: int) -> Details:
        """Each slice's value of the primary metrics. Raises ParseError."""
        label = self.steps[index].label
        slices: dict[str, list[SliceValue]] = {name: [] for name in self.steps[index].primary}
        for number, values in enumerate(self.parse_slices(trial, index), 1):
            directory = step_directory(trial, index, label, number)
            errors = self.details_of_one(directory, index, number).errors
            for name in slices.keys() & values.keys():
                slices[name].append(SliceValue(seconds_of(directory, "started"), values[name], errors.get(name)))
        return Details(
            slices={name: found for name, found in slices.items() if len(found) == len(self.pieces[index])}
        )

    def parse_trial(self, trial: Path, steps: Sequence[int] | None = None) -> tuple[Values, dict[str, str]]:
        """Every step's numbers, or those of some, and by label why a step, or the scheduler's counters around it, gave none.
        What lies beyond a histogram is left out."""
        values: Values = {}
        failed = {}
        for index in range(len(self.steps)) if steps is None else steps:
            try:
                values[index] = self.parse(trial, index)
            except BeyondHistogramError as error:
                values[index] = error.known
            except ParseError as error:
                failed[self.steps[index].label] = str(error)
            else:
                if why := self.counters_error(trial, index):
                    failed[f"{self.steps[index].label} (schedstat)"] = why
        return values, failed

    def step(self, index: int) -> StepResult:
        step = self.steps[index]
        parameters = msgspec.to_builtins(self.parameters[index])
        return StepResult(label=step.label, benchmark=step.benchmark, parameters=parameters, load=step.load)

    def metrics_of_one(self, index: int) -> tuple[Metric, ...]:
        """Metrics of one slice of a step, or of the step in one piece."""
        own = self.benchmarks[index].metrics(self.pieces[index][0])
        return (*own, *(schedstat.metrics() if self.steps[index].schedstat else ()))

    def metrics(self, index: int) -> tuple[Metric, ...]:
        """Metrics of one step, with the means of slices next to reduced values."""
        found, beside = self.metrics_of_one(index), self.slice_means(index)
        return (*found, *(plain_mean(metric) for metric in found if metric.name in beside))


class Collector:
    """Samples growing trial by trial, so that a runner need not read the whole run again after each block."""

    def __init__(self, run: RunDir, lock: Lock, prepared: PreparedSteps | None = None) -> None:
        self.run = run
        self.resolution = lock.machine.resolution
        self.counted = lock.machine.exact
        self.names = [contender.name for contender in lock.contenders]
        if prepared is None:
            check_steps(lock, run.path / "lock.json")
        self.prepared = prepared or PreparedSteps(lock.steps, lock.blocks)
        self.blocks: list[int] = []
        self.found: dict[tuple[int, str], TrialRecord] = {}
        self.values: dict[tuple[int, str], Values] = {}
        self.details: dict[tuple[int, str], dict[int, Details]] = {}
        self.turns: dict[tuple[int, str], dict[str, StepTurns]] = {}

    def add(self, record: TrialRecord, values: Values | None = None) -> None:
        """Take in one trial: its raw files, or the values that were just read from them."""
        key = record.block, record.contender
        self.found[key] = record
        if record.block not in self.blocks:
            self.blocks.append(record.block)
        if record.status == "void":
            return
        self.resolution = max(self.resolution, resolution_in(record.facts))
        directory = self.run.directory(record.id)
        self.values[key] = self.prepared.parse_trial(directory)[0] if values is None else values
        self.details[key] = {index: self.prepared.details(directory, index) for index in self.values[key]}
        if (turns := read_turns(directory)) is not None:
            self.turns[key] = turns.steps

    def samples(self, blocks: list[int] | None = None) -> list[Samples]:
        """One table a metric over the given blocks (all by default), in the study's order."""
        chosen = sorted(self.blocks if blocks is None else blocks)
        places = {block: self.places(block) for block in chosen}
        order = {name: [places[block].get(name) for block in chosen] for name in self.names}
        records = {name: [self.found.get((block, name)) for block in chosen] for name in self.names}
        known = {name: [one.other_work_before if one else None for one in column] for name, column in records.items()}
        absent = {name: [bool(one and never_began(one.void)) for one in column] for name, column in records.items()}
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
                values = {
                    name: [self.values.get((block, name), {}).get(index, {}).get(metric.name) for block in chosen]
                    for name in self.names
                }
                table = Samples(
                    benchmark=step.label, metric=metric, step=made, primary=metric.name in step.primary,
                    counted=self.counted, scheduled=self.resolution > 0, blocks=chosen, values=values, order=order,
                    places=[self.place_of(index, block) for block in chosen],
                    absent=absent if any(map(any, absent.values())) else {},
                    covariates={OTHER_WORK: known} if measured else {}, machines=machines,
                    beyond=self.find_beyond(index, metric, chosen), turns=self.find_turns(index, chosen),
                    resolution=self.resolution / SECONDS[metric.unit] if metric.unit in SECONDS else 0.0,
                    **self.detail_fields(index, metric.name, chosen),
                )  # fmt: skip
                tables.append(table)
        return tables

    def find_beyond(self, index: int, metric: Metric, blocks: list[int]) -> dict[str, list[int]]:
        """By contender, the blocks in which a step gave values, but not this one: it lies beyond the histogram."""
        given = {key: values[index] for key, values in self.values.items() if index in values and not metric.optional}
        found = {
            name: [b for b in blocks if (b, name) in given and metric.name not in given[b, name]]
            for name in self.names
        }
        return {name: beyond for name, beyond in found.items() if beyond}

    def find_turns(self, index: int, blocks: list[int]) -> dict[str, list[list[StepTurns]]]:
        """By contender and block, the turns of a step's slices; none where one of them is not recorded."""
        labels = self.prepared.directories(index)
        found = {name: [self.turns.get((block, name), {}) for block in blocks] for name in self.names}
        kept = {
            name: [[steps[one] for one in labels] if all(one in steps for one in labels) else [] for steps in trials]
            for name, trials in found.items()
        }
        return kept if any(map(any, kept.values())) else {}

    def places(self, block: int) -> dict[str, int]:
        """By contender, the place in time of its trial. What was made again came after the rest of its block."""
        records = [self.found[block, name] for name in self.names if (block, name) in self.found]
        in_time = sorted(records, key=lambda one: (one.repeats > 0, one.started if one.repeats else "", one.position))
        places = sorted(record.position for record in records)
        return {record.contender: place for record, place in zip(in_time, places, strict=True)}

    def place_of(self, index: int, block: int) -> int:
        """The place of a step among the steps of the block's trials."""
        orders = (self.found[block, name].steps for name in self.names if (block, name) in self.found)
        return next((order.index(index) for order in orders if index in order), 0)

    def detail_fields(self, index: int, metric: str, blocks: list[int]) -> dict[str, Any]:
        """The fields of a metric's table that its benchmark's details fill; none where it gives no details."""
        of_name = {
            name: [self.details.get((b, name), {}).get(index, Details()) for b in blocks] for name in self.names
        }
        found: dict[str, Any] = {}
        for field, empty in DETAILS_BY_BLOCK.items():
            trials = {name: [getattr(one, field).get(metric, empty) for one in of] for name, of in of_name.items()}
            found[field] = trials if any(map(any, trials.values())) else {}
        for field, empty in DETAILS_ONCE.items():
            first = {
                name: next((it for one in of if (it := getattr(one, field).get(metric))), empty)
                for name, of in of_name.items()
            }
            found[field] = first if any(first.values()) else {}
        return found


def contenders_of(run: RunDir) -> list[str]:
    """Names, the baseline first. Raises InputError where the run is damaged."""
    if run.imported:
        from kduel.store.imported import contenders

        return contenders(run.path)
    return [one.name for one in run.lock().contenders]


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
