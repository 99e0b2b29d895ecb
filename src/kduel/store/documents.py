"""The documents in a run's directory, typed and versioned; plan.jsonl follows from the lock (store.integrity)."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec
from msgspec import Struct, field

from kduel.benchmarks import benchmark
from kduel.core.editions import EDITION
from kduel.core.errors import InputError, cannot_read
from kduel.core.experiment import Bound, Contender, Design, MachineRecord, Settle, Step, TrialStatus, Void
from kduel.core.host import OTHER_WORK, HostStep
from kduel.core.text import check_names, visible
from kduel.core.turns import TURNS_FILE, TURNS_SCHEMA, TrialTurns
from kduel.core.untrusted import read_whole
from kduel.core.version import full_version
from kduel.study.file import Blocks, HostTable, StudyHeader, parse_study
from kduel.study.load import Study, check_numbers
from kduel.study.plan import PlannedTrial

LOCK_SCHEMA = 2
"""Of lock.json and plan.jsonl. Schema 1 was never released."""
TRIAL_SCHEMA = 2
"""Of trial.json, and of the manifest next to it. Schema 1 was never released."""
RESTORE = "The file was changed or damaged; restore it from a copy of the run."

Typed = TypeVar("Typed")
Table = dict[str, Any]
"""A JSON object whose keys are not fixed: what a machine or a kernel source reports."""


class KernelRecord(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The kernel that a contender ran, in addition to its definition in the study."""

    spec: str
    """The kernel's specification, as it was written."""
    release: str = ""
    architecture: str = ""
    sha256: str = ""
    """Of the image; empty for a kernel that is installed on the measured machine."""
    provenance: Table = field(default_factory=dict)
    """Where the kernel came from; the keys are those of its source."""
    modules: str | None = None
    """SHA-256 of the modules that a trial gets, or `none`; null: those that are installed on the machine."""
    unbuilt: str = ""
    """Why there is no kernel: it does not build."""
    sysctl: dict[str, str | int] = field(default_factory=dict)
    machine: dict[str, str | int] = field(default_factory=dict)
    scheduler: dict[str, str] = field(default_factory=dict)
    """Version and SHA-256 of its sched_ext scheduler."""


class HostRecord(Struct, kw_only=True, forbid_unknown_fields=True):
    """The host on which the run was started."""

    system: str = ""
    kernel: str = ""
    python: str = ""
    cpus: int | None = None
    cpu: str = ""
    machine: str = ""
    """Which machine it is: a hash of its machine ID (machine-id(5)) that reveals nothing else; may be empty."""
    load: float = 0.0
    architecture: str = ""
    """As printed by `uname -m`."""


class Disturbance(Struct, kw_only=True, forbid_unknown_fields=True):
    """Limits of the host's other work during a trial, resolved from the study's [host] and the machine's default."""

    max_wait_pct: float
    """Of the time that the guest's CPUs are ready to run, the per cent that they may wait for a CPU of the host."""
    repeats: int = 1
    """How often a disturbed trial is made again at most."""
    quiet_seconds: float = 10.0
    """How long the runner waits for a quiet host before a trial, at most."""
    between_bursts_seconds: float = 0.0
    """The same once the host has been quiet in this run; 0: no longer than before."""
    strict: bool = False
    """Whether the study declares it: a disturbed trial is void then. By default its last boot counts."""


class MemberRecord(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A machine of a fleet, as it was when the run began."""

    name: str
    """As in TrialRecord.member."""
    settings: Table = field(default_factory=dict)
    """The machine's settings that are this member's own; they come before those of the study."""
    machine: MachineRecord
    """What the machine is: kind, all settings, facts."""
    host: HostRecord = field(default_factory=HostRecord)
    clock_ahead: float = 0.0
    """Seconds that its clock was ahead of the controller's when the run began; 0 where the two cannot be distinguished."""


class FleetRecord(Struct, kw_only=True, forbid_unknown_fields=True):
    """The machines among which the blocks of a run are distributed."""

    kind: str
    """The adapter's name."""
    settings: Table = field(default_factory=dict)
    members: list[MemberRecord]
    """In the order in which blocks go round them."""


class Lock(Struct, kw_only=True, forbid_unknown_fields=True):
    """lock.json: everything resolved, so that the run can be understood and repeated years later."""

    schema: int = LOCK_SCHEMA
    kduel: str
    seed: int
    origin: str
    """The suite's name or the study file's path, as given."""
    directory: str = ""
    """Where the run was started: relative paths in the study are meant from here."""
    study: StudyHeader
    blocks: Blocks
    settle: Settle
    machine: MachineRecord
    contenders: list[Contender]
    kernels: list[KernelRecord]
    """One for each contender."""
    steps: list[Step]
    edition: int
    """Of the method that the run was planned by and is judged by: kduel.core.editions."""
    covariates: list[str] = field(default_factory=list)
    """What the machine measures on the host during each trial and the verdict uses, declared before the first trial."""
    host: HostRecord = field(default_factory=HostRecord)
    disturbance: Disturbance | None = None
    """What makes a trial `host-disturbed`; null: nothing does."""
    design: Design | None = None
    """The study's factors, where it has any."""
    bound: Bound | None = None
    """What single measurements should not exceed."""
    fleet: FleetRecord | None = None
    """The machines, where there are several; `machine` is the first one's then."""
    prepared: bool = True
    """Whether the machine was made ready: before that no facts and no trials but those of the exact part."""

    @property
    def hosts(self) -> list[str]:
        """The names of the fleet's members, in the order of the plan; none where the run has one machine."""
        return [member.name for member in self.fleet.members] if self.fleet else []

    def __post_init__(self) -> None:
        check_names(*(one.name for one in self.contenders), *(one.label for one in self.steps), *self.hosts)
        if len(self.kernels) != len(self.contenders):
            raise ValueError(f"{len(self.contenders)} contenders have {len(self.kernels)} kernels")


class TrialRecord(Struct, kw_only=True, forbid_unknown_fields=True):
    """trial.json: what is known of a trial besides its raw files."""

    schema: int = TRIAL_SCHEMA
    id: str
    block: int
    position: int
    contender: str
    status: TrialStatus
    void: Void | None = None
    """Why nothing of the trial may be used."""
    failed_steps: dict[str, str] = field(default_factory=dict)
    """By step label: why it gave no numbers."""
    started: str = ""
    """UTC, ISO 8601."""
    seconds: float = 0.0
    timings: dict[str, float] = field(default_factory=dict)
    facts: Table = field(default_factory=dict)
    """Of this boot alone; the keys are those of the machine's kind."""
    boot: int = 0
    steps: list[int] = field(default_factory=list)
    host: dict[str, HostStep] = field(default_factory=dict)
    """What the host did, by step label; empty where the machine does not record it, or before it did."""
    other_work_before: float | None = None
    """The share of the host's CPU time (0 to 1) that other programs took just before the boot, when no guest ran."""
    repeats: int = 0
    """How many earlier boots of the same planned trial were put aside, for a fault that is not the contender's."""
    member: str = ""
    """The member of the fleet that it ran on; empty where the run has one machine."""

    def __post_init__(self) -> None:
        check_names(self.id, self.contender, self.member)
        if (self.status == "void") != (self.void is not None):
            raise ValueError(
                f"the status is {self.status}, and there is {(self.void and self.void.code) or 'no reason'}"
            )

    @classmethod
    def of_unbooted(cls, planned: PlannedTrial, void: Void) -> Self:
        """Record of a planned trial that was not booted."""
        return cls(
            id=planned.id, block=planned.block, position=planned.position, contender=planned.contender, status="void",
            void=void, started=datetime.now(UTC).isoformat(timespec="milliseconds"), boot=planned.boot,
            steps=planned.steps, member=planned.host,
        )  # fmt: skip


def boot_seconds(records: Iterable[TrialRecord]) -> float:
    """Seconds that the boots of these trials took; one that several share has its time in the record of each."""
    return sum({(record.boot, record.repeats): record.seconds for record in records}.values())


def study_of(lock: Lock, text: str) -> Study:
    """The study that a run was made from; `text` is its study.toml."""
    return Study(
        about=lock.study, contenders=lock.contenders, machine=lock.machine.kind,
        machine_settings=lock.machine.settings, settle=lock.settle, blocks=lock.blocks, steps=lock.steps,
        design=lock.design, bound=lock.bound, text=text,
        host=host_of(lock) if lock.prepared else parse_study(text, "study.toml").host,
    )  # fmt: skip


def host_of(lock: Lock) -> HostTable:
    """The [host] of the study, as far as it made a difference to the run."""
    covariate, rule = OTHER_WORK in lock.covariates, lock.disturbance
    if rule is None or not rule.strict:
        return HostTable(covariate=covariate)
    return HostTable(
        max_wait=rule.max_wait_pct,
        repeats=rule.repeats,
        # A declared time is the only one.
        quiet_seconds=None if rule.between_bursts_seconds else rule.quiet_seconds,
        covariate=covariate,
    )


def document_bytes(document: object) -> bytes:
    """A document as KDuel's files have it: JSON with a line a key."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def read_lock(path: Path) -> Lock:
    """A lock.json. Raises InputError naming the file and the key."""
    lock = read_document(path, Lock, LOCK_SCHEMA)
    if not 1 <= lock.edition <= EDITION:
        raise InputError(
            f"{path}: the run was planned by edition {lock.edition} of the method, and this version knows {EDITION} at most",
            "Use the version of KDuel that made the run, or a later one.",
        )
    try:
        check_numbers(lock.study, lock.settle, lock.blocks, str(path))
    except InputError as error:
        # A rule for what users give: nobody gives it now.
        raise InputError(error.message, RESTORE) from error
    for what, names in (
        ("contenders", [one.name for one in lock.contenders]),
        ("steps", [one.label for one in lock.steps]),
    ):
        if not names or len(set(names)) < len(names):
            raise InputError(f"{path}: the {what} are {', '.join(names) or 'none'}", RESTORE)
    return lock


def check_steps(lock: Lock, path: Path) -> None:
    """Raises InputError naming the file where this version does not know a benchmark or a parameter of a step."""
    for step in lock.steps:
        try:
            benchmark(step.benchmark).read_parameters(step.parameters)
        except InputError as error:
            raise InputError(
                f"{path}: the step {step.label} is not one of this version ({full_version()}): {visible(error.message)}",
                f"Read the run with the version that made it (KDuel {visible(lock.kduel, 40)}), or with the plug-in that "
                "measured it; if the file was changed, restore it from a copy of the run.",
            ) from error


def read_trial(path: Path) -> TrialRecord:
    """A trial.json. Raises InputError naming the file and the key."""
    return read_document(path, TrialRecord, TRIAL_SCHEMA)


def read_turns(trial: Path) -> TrialTurns | None:
    """The record of turns in a trial's directory; None where there is none. Raises InputError naming the file and the key."""
    path = trial / TURNS_FILE
    return read_document(path, TrialTurns, TURNS_SCHEMA) if path.is_file() else None


def read_document(path: Path, kind: type[Typed], schema: int) -> Typed:
    """A JSON document with this schema. Raises InputError, naming file and key, for any other."""
    found = read_json(path, Table)
    version = found.get("schema")
    if version != schema and isinstance(version, int) and not isinstance(version, bool):
        writer = (
            f"KDuel {visible(found['kduel'], 40)}"
            if isinstance(found.get("kduel"), str)
            else "another version of KDuel"
        )
        raise InputError(
            f"{path} has schema {version} and was written by {writer}; this is {full_version()}, which reads schema {schema}",
            "Install the version that wrote it.",
        )
    if version != schema:
        raise InputError(f"{path}: schema is {visible(version, 40)!r}, not {schema}", RESTORE)
    try:
        return msgspec.convert(found, kind, strict=True)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: {visible(error)}", RESTORE) from error


def read_json(path: Path, kind: Any) -> Any:
    """A typed JSON file (`kind` is a type or a ready decoder). Raises InputError naming it."""
    decoder = kind if isinstance(kind, msgspec.json.Decoder) else msgspec.json.Decoder(kind)
    try:
        return decoder.decode(read_whole(path))
    except OSError as error:
        raise cannot_read(path, error, "Restore it from a copy of the run.") from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: {visible(error)}", RESTORE) from error
