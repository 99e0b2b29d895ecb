"""Results: the content of a report, as one typed document. Its JSON is the contract that scripts rely on.

Missing is null, never 0. Effects and intervals are in per cent of the baseline where `scale` is "ratio"; on the other
scales `effect` and its interval are in the metric's unit, and those in per cent are null, except for a metric counted
under several conditions, whose interval is the range over them."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct, field

from kduel.core.editions import EDITION
from kduel.core.experiment import Bound, Design, MachineRecord, Scope, Settle, TrialStatus, Void
from kduel.core.host import HostStep
from kduel.core.metric_results import AspectRanking, EffectResult, FindingResult, MetricResult
from kduel.core.samples import StepResult
from kduel.core.slices import Reducer
from kduel.core.tail_results import ShiftResult, TailResult
from kduel.core.turns import Turns
from kduel.core.validation import in_utc

SCHEMA = 2
"""Schema 1 called counts of instructions faster and slower."""


class ContenderResult(Struct, kw_only=True):
    """A contender as it was measured."""

    name: str
    kernel: str
    release: str | None = None
    sha256: str | None = None
    cmdline: str = ""
    scheduler: str = ""
    policy: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


class TrialResult(Struct, kw_only=True):
    """One trial: `directory` is relative to the run, and holds its raw files."""

    id: str
    block: int
    position: int
    contender: str
    status: TrialStatus
    void: Void | None = None
    """Why nothing of the trial may be used."""
    reason: str = ""
    """The same as text, `code: message`; else empty."""
    part: str = ""
    """The run that it comes from, where runs were merged; empty otherwise."""
    machine: str = ""
    """The machine that carried it out, where there are several."""
    started: str | None = None
    seconds: float | None = None
    directory: str | None = None
    failed_steps: dict[str, str] = field(default_factory=dict)
    findings: dict[str, str] = field(default_factory=dict)
    """What the kernel reported of trouble though the trial brought results: its name (warning, hang, kasan, ...) to the first
    line of each."""
    host: dict[str, HostStep] = field(default_factory=dict)
    """What the host did, by step label."""
    other_work_before: float | None = None
    """The share of the host's CPU time (0 to 1) that other programs took just before the boot, where the study measured it."""
    repeats: int = 0
    """How many earlier boots of the same planned trial were put aside and are in `repeated`."""


class Headline(Struct, kw_only=True):
    """A comparison in one sentence, as every report shows it."""

    baseline: str
    contender: str
    text: str


class Difference(Struct, kw_only=True):
    """A property in the captured environments that differs between the contenders."""

    group: str
    """config, cmdline, clocksource, mitigations, packages, hardware, sysctl, conditions, ..."""
    key: str
    values: dict[str, str | None]
    """By contender."""
    declared: bool
    """Whether the study declares that this differs."""


class SourceFile(Struct, kw_only=True):
    """A file that results were imported from."""

    name: str
    sha256: str
    format: str


class PartResult(Struct, kw_only=True):
    """A run that was merged with others."""

    name: str
    machine: str
    """What the machine is called; parts with one name were measured on one machine."""
    blocks: int
    """How many of its blocks are finished; in the merged run they follow those of the parts before."""
    seed: int
    started: str | None
    """UTC, ISO 8601: its first trial."""
    directory: str
    """Relative to the merged run; it is a run by itself."""


class StudyResult(Struct, kw_only=True):
    """The study as it was carried out. What an import does not state is null, or absent from its lists."""

    name: str = ""
    title: str = ""
    about: str = ""
    delta: float = 1.0
    """The smallest effect of interest, in per cent."""
    alpha: float = 0.05
    exact_first: str = ""
    """The suite that was counted on one CPU before the rest; empty where the study names none."""
    machines: Scope = "these"
    """What verdicts of several machines are about."""
    max: int | None = None
    """The most blocks."""
    fixed: int | None = None
    """The number of blocks, where it was fixed."""
    unit: Literal["boot", "load"] | None = None
    order: Literal["fixed", "shuffled"] | None = None
    slices: int = 1
    """In how many slices a step that stops by the clock was measured, at most."""
    reduce: Reducer = "better-half"
    """How slices became a trial's value."""
    carry_over: bool = False
    """Whether the contender of the trial before entered the intervals."""
    turns: Turns | None = None
    """Whether the guests of a block took turns: milliseconds, 0 for whole slices in turn; "off" or null: one boot after the
    other."""
    settle: Settle | None = None
    edition: int = field(default_factory=lambda: EDITION)
    """Of the method that the run was planned by and is judged by: the present one, unless it is older."""
    covariates: list[str] = field(default_factory=list)
    """What was measured on the host during each trial and enters the intervals."""
    design: Design | None = None
    """The factors, where it has any."""
    bound: Bound | None = None
    seed: int | None = None
    origin: str | None = None
    """The suite's name or the study file's path, as given."""
    text: str = ""
    """study.toml; of a suite with the contenders of the command line."""
    kduel: str | None = None
    """The version that carried it out, or imported it."""
    checksum: str | None = None
    """Of the run with all its raw files, SHA-256: cat trials/*/manifest.sha256 | sha256sum"""
    imported: bool = False
    imported_at: str | None = None
    """UTC, ISO 8601."""
    source: list[SourceFile] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    """What the imported files hold besides, and why it is not here."""
    parts: list[PartResult] = field(default_factory=list)
    """Of a merged run: the runs that it is made of."""

    @property
    def in_turns(self) -> bool:
        """True if the contenders of a block took turns, in guests of their own or in a boot that they shared."""
        return isinstance(self.turns, int)


class Results(Struct, kw_only=True):
    """A run, judged."""

    schema: int = SCHEMA
    judged_by: str | None = None
    """The version of KDuel that judged the run; null in documents of before it was kept."""
    study: StudyResult
    machine: MachineRecord
    contenders: list[ContenderResult]
    trials: list[TrialResult]
    metrics: list[MetricResult]
    """Each contender against the baseline. Of a study with factors they are cells against the first cell: all have the role
    `exploratory`, and intervals of that family; `effects` decide, with intervals of their own."""
    headlines: list[Headline] = field(default_factory=list)
    effects: list[EffectResult] = field(default_factory=list)
    """Of a study with factors: what decides, instead of single contenders against the baseline."""
    rankings: list[AspectRanking] = field(default_factory=list)
    """The contenders by aspect, where a run has three or more, or an aspect with several primary metrics."""
    tails: list[TailResult] = field(default_factory=list)
    """Of benchmarks that keep their single measurements."""
    shifts: list[ShiftResult] = field(default_factory=list)
    repeated: list[TrialResult] = field(default_factory=list)
    """Boots that were put aside and made again, for a fault that is not their contender's."""
    steps: list[StepResult] = field(default_factory=list)
    """The benchmarks with their parameters, in the order of the study."""
    differences: list[Difference] = field(default_factory=list)
    warnings: list[FindingResult] = field(default_factory=list)
    """Findings about the run as a whole."""
    blocks: list[int] = field(default_factory=list)
    environment: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By contender: what its first good trial captured."""
    exact: "Results | None" = None
    """What was counted exactly on one CPU, before the rest: a run of its own, in the directory `exact` of this one."""
    explanations: list[dict[str, Any]] = field(default_factory=list)
    """Where exact differences come from, as far as `kduel explain` was run: kduel.explain.compare.Explanation, or
    kduel.explain.sharing.compare.SharingExplanation; of a kept file that is `unreadable` its name, and `why`."""

    @property
    def parts(self) -> "list[Results]":
        """The runs that it consists of, in their order: what was counted before the rest, where anything was, and the rest."""
        return [self] if self.exact is None else [self.exact, self]

    @property
    def paired(self) -> bool:
        """True if KDuel carried the trials out itself, block by block; not so for an import."""
        return not self.study.imported

    @property
    def gating(self) -> list[MetricResult]:
        """The metrics that decide: the primary ones, or all where the study declared none; of a study with factors the effects."""
        judged = [one.result for one in self.effects] or self.metrics
        return [metric for metric in judged if metric.role == "primary"] or judged


def stated_date(environment: Mapping[str, Any]) -> str:
    """Time of measurement of a contender's imported values, by its conditions: as of `first_date`."""
    conditions = environment.get("conditions")
    return first_date([str(conditions.get("date") or "")]) if isinstance(conditions, dict) else ""


def first_date(dates: Iterable[str | None]) -> str:
    """The earliest of these: as of `in_utc`, or as it is stated where none is a date. Empty: unknown."""
    stated = list(filter(None, dates))
    return min(filter(None, map(in_utc, stated)), default=min(stated, default=""))
