"""From the rows of foreign files to samples: the one place where they are checked against each other."""

import math
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from msgspec import Struct, field

from kduel.core.errors import InputError, unknown_name
from kduel.core.experiment import Metric, Role
from kduel.core.samples import REASON, SECONDS, Samples, within_reason
from kduel.store.imported.support.foreign import ForeignRow, location_text
from kduel.store.imported.support.names import Kind, aspect_of, step_of

MOST_VALUES = 2_000_000
MOST_CELLS = 8_000_000
LONGEST_NAME = 300


class GatheredMetric(Struct):
    """A metric as its first row defines it, with all its values by contender and trial."""

    metric: Metric
    first: str
    """Where it was first met."""
    kind: Kind
    role: Role | None = None
    values: dict[str, dict[int, float]] = field(default_factory=dict)
    conditions: dict[str, dict[int, dict[str, float]]] = field(default_factory=dict)
    """By contender, trial and condition; `values` has the median of a trial's."""


class Gathering:
    """Takes rows in, file by file; contenders, benchmarks and metrics keep the order in which they first appear."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], GatheredMetric] = {}
        self.spelled: dict[str, str] = {}
        """Names by their normal form."""
        self.contenders: dict[str, str] = {}
        """With the place where each was first met."""
        self.order: list[str] = []
        """Names of contenders in the order of files that state one."""
        self.trials: set[int] = set()
        self.numbered: dict[str, set[int]] = {}
        """By contender, the trials that its files number themselves."""
        self.repeated: dict[tuple[str, str], int] = {}
        """By contender and benchmark, the largest trial that no file numbers."""
        self.settings: dict[str, dict[str, dict[str, str]]] = {}
        """By benchmark and contender: with what it was called."""
        self.figures: dict[tuple[str, str, str], tuple[set[str], str]] = {}
        """By contender, benchmark and metric: all metrics of the calls that first had it, and their file."""
        self.mixed: InputError | None = None
        """Refusal of trials of one contender that were called with different things; a kept import is not refused."""
        self.resolution = 0
        """Nanoseconds that the machine of what was scheduled resolves, by the coarsest trial."""
        self.count = 0

    def add(self, path: Path, rows: Iterable[ForeignRow], calls: bool = False, benchmark: str = "") -> None:
        """One file's rows; `benchmark` is of those that name none. Raises InputError for a row that contradicts another one, or is no finite number; with `calls`
        also where one trial lacks a metric that another trial of the same benchmark has in this file."""
        before = self.count
        figures: dict[tuple[str, str], dict[int, set[str]]] = {}
        earlier = dict(self.repeated)
        for given in rows:
            row = given._replace(benchmark=given.benchmark or benchmark)
            key = row.contender, row.benchmark
            if not row.numbered or calls:
                # Another file of the same contender has further trials.
                row = row._replace(trial=row.trial + earlier.get(key, 0))
                self.repeated[key] = max(self.repeated.get(key, 0), row.trial)
            if calls:
                trials = figures.setdefault((row.contender, row.benchmark), {})
                trials.setdefault(row.trial, set()).add(row.metric)
            self.count += 1
            if self.count > MOST_VALUES:
                raise InputError(
                    f"{path.name} brings the values above {MOST_VALUES:,}", "Split it by benchmark into several runs."
                )
            self.add_row(path, row)
        if self.count == before:
            raise InputError(f"{path.name} holds no values", "Give a file with at least one value of each contender.")
        for (contender, benchmark), trials in figures.items():
            every = set().union(*trials.values())
            for trial, own in trials.items():
                if lacking := sorted(every - own):
                    raise InputError(
                        f"{path.name}: call {trial} of {benchmark} has no {lacking[0]}, which other calls have",
                        "Remove this call from the file, or repeat all calls with the same options.",
                    )
            for metric in sorted(every):
                known, first = self.figures.setdefault((contender, benchmark, metric), (every, path.name))
                if differing := sorted(known ^ every):
                    without, other = (path.name, first) if differing[0] in known else (first, path.name)
                    self.mixed = self.mixed or InputError(
                        f"{without}: {benchmark} of {contender!r} has no {differing[0]}, which it has in {other}",
                        "Leave one of the two files out, or repeat all calls with the same options.",
                    )

    def add_row(self, path: Path, row: ForeignRow) -> None:
        if not within_reason(row.value):
            raise InputError(
                f"{location_text(path, row.where)}: the value is {row.value}, not {REASON}",
                "Leave it out, or give it in a unit in which it is within these limits.",
            )
        if row.least is not None and row.value < row.least:
            raise InputError(
                f"{location_text(path, row.where)}: {row.metric} is {row.value:g}, which cannot be below {row.least:g}",
                "Leave the run out, or measure it again.",
            )
        key = row.benchmark, row.metric
        found = self.found.get(key)
        if found is None or row.contender not in self.contenders:
            self.check_names(path, row)
        if found is None:
            aspect = aspect_of(row.benchmark, row.metric) if row.aspect is None else row.aspect
            metric = Metric(
                name=row.metric, unit=row.unit, better=row.better, statistic=row.statistic, least=row.least,
                exact=row.kind != "measured", aspect=aspect,
            )  # fmt: skip
            place = location_text(path, row.where)
            found = self.found[key] = GatheredMetric(metric, place, row.kind, row.role)
        known = found.metric
        for what, old, new in (
            ("unit", known.unit, row.unit),
            ("better", known.better, row.better),
            ("kind", found.kind, row.kind),
            ("role", found.role or "", row.role or ""),
            ("aspect", known.aspect, known.aspect if row.aspect is None else row.aspect),
        ):
            if old != new:
                raise InputError(
                    f"{location_text(path, row.where)}: {row.benchmark}/{row.metric} has the {what} {new!r}, but {old!r} "
                    f"at {found.first}",
                    "A metric has one unit, one better side, one kind, one aspect and one role: convert the values, or give it another name.",
                )
        if row.contender not in self.contenders:
            alike = next((one for one in self.contenders if one.casefold() == row.contender.casefold()), None)
            if alike is not None:
                self.mixed = self.mixed or InputError(
                    f"{location_text(path, row.where)}: the contender {row.contender[:60]!r} differs from {alike[:60]!r} by the size of "
                    "its letters only",
                    "Write it in one way, or give one of them another name.",
                )
            self.contenders[row.contender] = location_text(path, row.where)
        if row.settings:
            self.take_settings(path, row)
        values = found.values.setdefault(row.contender, {})
        conditions = found.conditions.setdefault(row.contender, {}).setdefault(row.trial, {})
        if row.condition in conditions if row.condition and conditions else row.trial in values:
            raise InputError(
                f"{location_text(path, row.where)}: a second value of {row.benchmark}/{row.metric} for {row.contender!r}, "
                f"trial {row.trial}{f', condition {row.condition!r}' * bool(row.condition)}",
                "Give every trial a number of its own, or remove one of the two.",
            )
        if row.condition:
            conditions[row.condition] = row.value
        values[row.trial] = median(conditions.values()) if conditions else row.value
        self.trials.add(row.trial)
        self.resolution = max(self.resolution, row.resolution)
        if row.numbered:
            self.numbered.setdefault(row.contender, set()).add(row.trial)

    def take_settings(self, path: Path, row: ForeignRow) -> None:
        """Note with what a benchmark was called, and whether another trial of the contender was called with something else."""
        own = self.settings.setdefault(row.benchmark, {}).setdefault(row.contender, {})
        for name, value in row.settings:
            if own.setdefault(name, value) != value:
                self.mixed = self.mixed or InputError(
                    f"{location_text(path, row.where)}: {row.benchmark} of {row.contender!r} has {name} {value[:60]!r}, but "
                    f"{own[name][:60]!r} before",
                    "Trials are repetitions: import what was measured with other settings as a run of its own, or write a table "
                    "with a benchmark for each.",
                )

    def differing_settings(self) -> dict[str, dict[str, str]]:
        """By contender: with what benchmarks were called, where contenders differ in it."""
        found: dict[str, dict[str, str]] = {}
        for benchmark, arms in self.settings.items():
            for name in dict.fromkeys(name for own in arms.values() for name in own):
                if len({own.get(name) for own in arms.values()}) > 1:
                    for contender, own in arms.items():
                        found.setdefault(contender, {})[f"{benchmark}: {name}"] = own.get(name, "not stated")
        return found

    def check_names(self, path: Path, row: ForeignRow) -> None:
        """Names are shown in terminals and pages. Raises InputError for control characters and absurd lengths."""
        for name in (row.contender, row.benchmark, row.metric, row.unit, row.condition):
            if len(name) > LONGEST_NAME or not name.isprintable():
                raise InputError(
                    f"{location_text(path, row.where)}: the name {name[:40]!r} is too long or holds control characters",
                    f"Use at most {LONGEST_NAME} printable characters.",
                )
            first = self.spelled.setdefault(unicodedata.normalize("NFC", name), name)
            if first != name:
                raise InputError(
                    f"{location_text(path, row.where)}: the name {name!r} looks like an earlier one, but is written with other "
                    f"characters ({ascii(name)[:80]} and {ascii(first)[:80]})",
                    "Write it in one way: they differ in Unicode normalisation only.",
                )

    def samples(self, baseline: str | None, primary: list[str]) -> list[Samples]:
        """One table a metric; block i holds each contender's trial number i, and pairs nothing. `primary` names
        metrics, benchmarks, or both (benchmark/metric); none: by their roles. Raises InputError."""
        names = self.order_contenders(baseline)
        unknown = [name for name in primary if not any(name in names_of(*key) for key in self.found)]
        if unknown:
            known = ", ".join(f"{b}/{m}" for b, m in self.found)
            raise InputError(f"there is no metric {unknown[0]!r} to be primary", f"There are: {known[:1000]}.")
        blocks = sorted(self.trials)
        if len(blocks) * len(names) * len(self.found) > MOST_CELLS:
            raise InputError(
                f"{len(self.found):,} metrics x {len(blocks):,} trial numbers x {len(names):,} contenders are too many",
                "Number the trials 1, 2, 3 for every metric, or split the file by benchmark.",
            )
        compared = {key: found for key, found in self.found.items() if len(found.values) > 1}
        for key, found in self.found.items():
            if key not in compared and (not compared or any(name in names_of(*key) for name in primary)):
                raise InputError(
                    self.lacking_text(key, found),
                    "Add the values of the other contenders under the same name, or remove this metric.",
                )
        carried_out = {name: self.carried_out(name) for name in names}
        unknown_trials = {name: [block not in carried_out[name] for block in blocks] for name in names}
        return [
            Samples(
                benchmark=benchmark,
                metric=found.metric,
                step=step_of(benchmark),
                primary=any(name in names_of(benchmark, metric) for name in primary)
                if primary
                else found.role != "exploratory",
                paired=found.kind in ("exact", "scheduled"),
                counted=found.kind in ("exact", "scheduled"),
                scheduled=found.kind == "scheduled",
                resolution=self.resolution * 1e-9 / SECONDS.get(found.metric.unit, math.inf)
                if found.kind == "scheduled"
                else 0.0,
                blocks=blocks,
                values={name: [found.values.get(name, {}).get(block) for block in blocks] for name in names},
                conditions={
                    name: [found.conditions.get(name, {}).get(block, {}) for block in blocks] for name in names
                }
                if any(any(by.values()) for by in found.conditions.values())
                else {},
                absent={
                    name: [
                        unknown and block not in found.values.get(name, {})
                        for block, unknown in zip(blocks, unknown_trials[name], strict=True)
                    ]
                    for name in names
                },
            )
            for (benchmark, metric), found in compared.items()
        ]

    def check_swept(self) -> None:
        """Raises InputError for a column of which every contender has the same values, each another one, beside columns of
        its lines that differ: a parameter, and its lines are no repetitions. One with a unit or a better side was measured, and
        lines with numbers of trials are said to be repetitions."""
        if self.numbered.keys() >= self.contenders.keys():
            return
        columns = {key: [[*values.values()] for values in found.values.values()] for key, found in self.found.items()}
        alike = {key for key, arms in columns.items() if len(arms) > 1 and all(arm == arms[0] for arm in arms)}
        measured = {key[0] for key, arms in columns.items() if len(arms) > 1 and key not in alike}
        for key in (key for key in self.found if key in alike and key[0] in measured):
            found, (values, *_) = self.found[key], columns[key]
            stated = found.metric.unit or found.metric.better != "none" or found.kind != "measured"
            if not stated and 1 < len(values) == len({*values}):
                raise InputError(
                    f"the column {key[1][:60]!r} has the same values for each contender ({', '.join(f'{v:g}' for v in values[:3])}): "
                    "a parameter or a number, by which the lines differ, so that they are no repetitions",
                    "Put it into the names in the column 'benchmark', such as fio-qd4. If the lines are repetitions, number them in a "
                    f"column 'trial'. What was measured has its unit in the heading: {key[1][:40]} [1: lower].",
                )

    def left_out(self) -> list[str]:
        """Metrics that only one contender has, a sentence each: there is nothing to compare them with."""
        return [self.lacking_text(key, found) for key, found in self.found.items() if len(found.values) < 2]

    def carried_out(self, contender: str) -> set[int]:
        """The trials that the contender must have had, so that one without a value is a missing value: those that have
        a value of any of its metrics, and the numbers of every contender with which it has a number in common, since then
        both count the same rounds. None where the files do not number trials."""
        own = self.numbered.get(contender, set())
        return own.union(*(other for other in self.numbered.values() if own & other))

    def order_contenders(self, baseline: str | None) -> list[str]:
        """The contenders, the baseline first. Raises InputError where there are fewer than two."""
        names = [name for name in dict.fromkeys((*self.order, *self.contenders)) if name in self.contenders]
        if len(names) < 2:
            raise InputError(
                f"there is only one contender, {names[0]!r}: nothing to compare it with",
                "Give the other's results too: in the same CSV, or as a second file, NAME=FILE.",
            )
        if baseline is None:
            return names
        if baseline not in names:
            raise unknown_name(f"there is no contender {baseline!r}", baseline, names)
        return [baseline, *(name for name in names if name != baseline)]

    def lacking_text(self, key: tuple[str, str], found: GatheredMetric) -> str:
        """The contender that alone has a metric, and those that lack it."""
        missing = ", ".join(repr(name) for name in self.contenders if name not in found.values)
        return (
            f"{'/'.join(key)} has values of {next(iter(found.values))!r} only (first at {found.first}): "
            f"{missing[:300]} is missing"
        )


def names_of(benchmark: str, metric: str) -> tuple[str, str, str]:
    """Names that a user may give a metric."""
    return benchmark, metric, f"{benchmark}/{metric}"
