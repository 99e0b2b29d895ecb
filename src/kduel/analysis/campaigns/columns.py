"""Columns: what one contender gave in one run, with all that is known of where and how it was measured."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field, to_builtins

from kduel.core.errors import InputError, unknown_name
from kduel.core.experiment import MachineRecord, Metric
from kduel.core.results import TrialResult, first_date, stated_date
from kduel.core.samples import Samples
from kduel.judge.evaluate import environments_of, trial_result
from kduel.judge.verdict.voids import missing_in
from kduel.machines import machine_kind
from kduel.store import imported
from kduel.store.collect import collect, contenders_of
from kduel.store.imported.support.store import ReportedRange, conditions_of, read_with_settings, record_of
from kduel.store.integrity import examine, trials_of
from kduel.store.rundir import RunDir

Environment = dict[str, Any]
MOST_COLUMNS = 26
"""They are called A to Z."""
GUEST_FACTS = ("root", "caveat", "pinned", "argv")
"""Of a machine: taken from the captured environments and the other facts, or no property of it."""


class Series(Struct, kw_only=True):
    """A metric's values in one column, by block; missing ones are left out."""

    metric: Metric
    parameters: dict[str, Any]
    values: dict[int, float]
    order: dict[int, int]
    """By block: the trial's place in the run's time; empty where it is not known."""
    conditions: dict[int, dict[str, float]] = field(default_factory=dict)
    """By block: the values under each condition, where the benchmark counts under several."""
    missing: int = 0
    """How many trials that were carried out gave no value."""
    beyond: int = 0
    """In how many trials the value lies beyond a histogram."""
    primary: bool = False
    """Whether its run declared it before it measured."""
    scheduled: bool = False
    """Whether a scheduler decided what exact CPUs do, as in `Samples`."""
    resolution: float = 0.0
    """Of the run's clock, trials that resolve less included, in the metric's unit."""


class Column(Struct, kw_only=True):
    """A contender of a run."""

    name: str
    """Unique among the columns."""
    run: Path
    contender: str
    when: str
    """As of `first_date`: what an import states, or the start of a run's first trial."""
    imported: bool
    environments: list[Environment]
    """One a trial; empty where nothing is known."""
    series: dict[tuple[str, str], Series]
    """By step label and metric name."""
    commit: str = ""
    """From which the kernel was built, where it came from a git tree; what a source that measured elsewhere calls it."""
    revision: str = ""
    """By which name git found that commit, such as COMMIT~1."""
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By label: the benchmark (`use`) and its parameters; of imported results with what it was called, where the files say."""
    exact: dict[str, Any] = field(default_factory=dict)
    """The machine, where repeated trials give the same numbers: equal ones may be compared. Else empty."""
    void: int = 0
    trials: int | None = None
    """How many there were; None for imported results."""
    outcomes: list[TrialResult] = field(default_factory=list)
    """Whether each trial is void; empty for imported results."""
    changed: list[str] = field(default_factory=list)
    """What of its run was changed after it had been measured, a sentence each."""
    spreads: dict[str, ReportedRange] = field(default_factory=dict)
    """What the source itself reports of repeats of a metric, by `benchmark/metric`."""


def columns(arguments: Sequence[str]) -> list[Column]:
    """One column for each `RUN:CONTENDER`, and one for every contender of each plain `RUN`. Raises InputError for
    what is no run, an unknown contender, one that is given twice, or fewer than two columns."""
    found: list[Column] = []
    given = [split(argument) for argument in arguments]
    places = {path.resolve() for path, _ in given}
    called = Counter(place.name for place in places)
    seen: set[tuple[Path, str]] = set()
    for path, wanted in given:
        place = path.resolve()
        run = place.name if called[place.name] == 1 else str(path)
        for column in columns_of(path):
            if wanted not in ("", column.contender):
                continue
            if (place, column.contender) in seen:
                twice = f"the contender {wanted} of {path}" if wanted else str(path)
                raise InputError(f"{twice} is given twice", "Name each run, or each RUN:CONTENDER, once.")
            seen.add((place, column.contender))
            column.name = f"{run} {column.contender}" if len(places) > 1 else column.contender
            found.append(column)
    if len(found) < 2:
        raise InputError(
            "there is only one column: nothing to compare it with", "Name another run, or RUN:CONTENDER of one."
        )
    if len(found) > MOST_COLUMNS:
        raise InputError(
            f"{len(found)} columns are more than {MOST_COLUMNS}",
            "Choose with RUN:CONTENDER, or see `kduel query --history`.",
        )
    return found


def split(argument: str) -> tuple[Path, str]:
    """RUN or RUN:CONTENDER; a directory that is really called so wins. Raises InputError for an unknown contender."""
    if Path(argument).exists() or ":" not in argument:
        return Path(argument), ""
    name, _, contender = argument.partition(":")
    while not Path(name).exists() and ":" in contender:
        more, _, contender = contender.partition(":")
        name = f"{name}:{more}"
    path = Path(name)
    known = contenders_of(RunDir.open(path))
    if contender not in known:
        raise unknown_name(f"{path} has no contender {contender!r}", contender, known)
    return path, contender


def columns_of(path: Path) -> list[Column]:
    """Every contender of a run, the baseline first. Raises InputError where it is no run."""
    run = RunDir.open(path)
    return imported_columns(path) if run.imported else own_columns(run)


def all_settings(machine: MachineRecord) -> Environment:
    """A machine's settings with defaults filled in; as they were stated where this version does not read them."""
    try:
        read = to_builtins(machine_kind(machine.kind).read_settings(machine.settings))
    except InputError:
        return machine.settings
    return {name: value for name, value in read.items() if value is not None}


def own_columns(run: RunDir) -> list[Column]:
    """Columns of a run measured by KDuel: what its trials captured, and the machine and scheduler of its lock."""
    lock = run.lock()
    records = trials_of(run, lock)
    environments = environments_of(run, lock, records)
    facts = {key: value for key, value in lock.machine.facts.items() if key not in GUEST_FACTS}
    machine = {"kind": lock.machine.kind, "settings": all_settings(lock.machine), **facts}
    if lock.machine.exact:
        machine["exact"] = True
    if lock.blocks.in_turns:
        machine["turns"] = lock.blocks.turns
    parameters = {step.label: {"use": step.benchmark, **step.parameters} for step in lock.steps}
    tables = collect(run.path)
    changed = examine(run, lock, records).changes
    started = first_date(record.started for record in records)
    counts = {"seed": lock.seed, "steps": list(parameters), "parameters": parameters}
    exact = machine | counts if lock.machine.exact else {}
    sources = {kernel.spec: kernel.provenance for kernel in lock.kernels}
    found = []
    for contender in lock.contenders:
        own = [record for record in records if record.contender == contender.name]
        shared: Environment = {"machine": machine, "kduel": lock.kduel}
        if contender.scheduler or contender.policy:
            shared["scheduler"] = " ".join(filter(None, (contender.scheduler, contender.policy)))
        column = Column(
            name=contender.name, run=run.path, contender=contender.name, when=started, imported=False,
            environments=[environment | shared for environment in environments[contender.name]],
            commit=str(sources.get(contender.kernel, {}).get("commit", "")),
            revision=str(sources.get(contender.kernel, {}).get("revision", "")),
            series=series(tables, contender.name, parameters), steps=parameters, exact=exact,
            void=sum(record.status == "void" for record in own), trials=len(own),
            outcomes=[trial_result(record, run.directory(record.id)) for record in own], changed=changed,
        )  # fmt: skip
        found.append(column)
    return found


def imported_columns(path: Path) -> list[Column]:
    record = record_of(path)
    known = imported.environments(path)
    spreads = conditions_of(path, record).spreads
    tables, gathering = read_with_settings(path)
    return [
        Column(
            name=name,
            run=path,
            contender=name,
            when=stated_date(known[name]),
            imported=True,
            commit=name,
            revision=name,
            environments=[to_builtins(known[name])] if known[name] else [],
            series=series(tables, name, {}),
            steps={label: {**arms[name]} for label, arms in gathering.settings.items() if name in arms},
            spreads=spreads,
        )
        for name in record.contenders
    ]


def series(
    tables: list[Samples], contender: str, parameters: dict[str, dict[str, Any]]
) -> dict[tuple[str, str], Series]:
    """A contender's values, read again from the raw files."""
    found = {}
    for table in tables:
        values = table.values[contender]
        order = table.order.get(contender) or [None] * len(values)
        conditions = table.conditions.get(contender) or []
        found[table.benchmark, table.metric.name] = Series(
            metric=table.metric,
            parameters=parameters.get(table.benchmark, {}),
            values={block: value for block, value in zip(table.blocks, values, strict=True) if value is not None},
            order={block: place for block, place in zip(table.blocks, order, strict=True) if place is not None},
            conditions=dict(zip(table.blocks, conditions, strict=bool(conditions))),
            missing=missing_in(table, contender).missing,
            beyond=len(table.beyond.get(contender, ())),
            primary=table.primary,
            scheduled=table.scheduled,
            resolution=table.resolution,
        )
    return found
