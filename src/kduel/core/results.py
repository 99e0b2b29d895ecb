"""Results: the content of a report, as one typed document. Its JSON is the contract that scripts rely on.

Missing is null, never 0. Effects and intervals are in per cent of the baseline where `scale` is "ratio"; on the other
scales `effect` and its interval are in the metric's unit, and those in per cent are null, except for a metric counted
under several conditions, whose interval is the range over them.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from kduel.core.experiment import (
    EDITION,
    Aspect,
    Better,
    Bound,
    Design,
    MachineRecord,
    Scope,
    Settle,
    Statistic,
    TrialStatus,
    Void,
)
from kduel.core.host import HostStep
from kduel.core.samples import Mode, StepResult
from kduel.core.slices import Components, Reducer, SliceValue

SCHEMA = 2
"""Schema 1 called counts of instructions faster and slower."""

Verdict = Literal[
    "faster", "slower", "higher", "lower", "equivalent", "equal", "different", "more", "fewer", "undecided"
]
Scale = Literal["ratio", "difference", "exact"]
COUNTED = "instructions"
"""A unit of path length: fewer of them is no time."""
SHARED = "lines"
"""A unit of sharing: the cache lines that CPUs fight over. Fewer of them is no time either."""
COUNTS = (COUNTED, SHARED)
"""Units of what a deterministic machine counts. Each is the name of the metric of the usual call, too."""
BYTES = ("B", "kB", "KiB", "MB", "MiB", "GiB")
HARNESS = "fixed-by-harness"
"""The code of the finding that a metric is set by the harness and not by the kernel."""


class Warning_(Struct, kw_only=True):  # noqa: N801 - Warning is a builtin
    """A finding of the lint: `code` for scripts, `message` with its evidence for people."""

    code: str
    message: str


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
    repeats: int = 0
    """How many earlier boots of the same planned trial were put aside and are in `repeated`."""


class ConditionResult(Struct, frozen=True, kw_only=True):
    """Counts of baseline and contender under one condition that must not matter."""

    name: str
    block: int
    baseline: float
    contender: float

    @property
    def difference(self) -> float:
        """The contender's count less the baseline's."""
        return self.contender - self.baseline


class MachineEffect(Struct, kw_only=True):
    """A metric's effect on one machine. Numbers are in per cent on the ratio scale, else in the metric's unit."""

    machine: str
    n: int
    """Complete pairs."""
    effect: float
    low: float | None
    high: float | None
    """Of its interval at the level of the verdict's; null where it has too few pairs for one."""
    others: float | None
    """The effect on the other machines that do not differ, each counted by its blocks; null where it is the only one."""
    differs: bool
    """Whether its effect differs from that of the others beyond chance, all machines together at the verdict's level."""
    contradicts: bool
    """Whether it differs so that it would have another verdict: another sign, or only one of the two within delta."""


class MachinesResult(Struct, kw_only=True):
    """One metric of one contender on several machines. Numbers as in MachineEffect."""

    scope: Scope
    """What the verdict is about."""
    effects: list[MachineEffect]
    pooled: float
    """The effect on these machines, each counted by its blocks."""
    low: float | None
    high: float | None
    spread: float | None
    """The standard deviation of the true effects between machines, estimated; null where nothing is known of it."""
    spread_low: float | None
    spread_high: float | None
    """Of its interval at 1 - alpha of the study: it is shown, and decides nothing."""

    @property
    def contradicting(self) -> list[str]:
        """The machines that contradict the others."""
        return [one.machine for one in self.effects if one.contradicts]


TOO_SMALL = "too small to matter"


class MetricResult(Struct, kw_only=True):
    """One metric, one contender against the baseline."""

    benchmark: str
    metric: str
    unit: str
    better: Better
    role: Literal["primary", "exploratory"]
    about: str = ""
    group: str = ""
    statistic: Statistic = "value"
    aspect: Aspect = ""
    """What the metric measures."""
    baseline: str
    contender: str
    n: int
    """Complete pairs (blocks in which both contenders gave a value)."""
    baseline_mean: float | None
    """Over blocks. Of a metric counted under `conditions`: under the condition with the median difference; so are `mean` and
    both medians."""
    baseline_sd: float | None
    mean: float | None
    sd: float | None
    baseline_median: float | None = None
    median: float | None = None
    scale: Scale = "ratio"
    effect_pct: float | None
    """In per cent: of a ratio, or an exact change as a share of `baseline_mean` (null where a value of the baseline is 0). The
    bounds of an exact change are its range over conditions, or over blocks; both are the effect where it has one value."""
    ci_low_pct: float | None
    ci_high_pct: float | None
    effect: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    verdict: Verdict
    """`more` and `fewer` are counts, of instructions or the like: they are no time."""
    told: str = ""
    """The verdict in plain words, with what can and cannot be concluded."""
    below_delta: bool = False
    """Excludes 0 yet lies inside the smallest effect of interest: real, but too small to matter here."""
    decided_at: int | None = None
    """The number of blocks at the first look that decided; null while undecided."""
    former_verdict: Verdict | None = None
    """For undecided: what an earlier look decided and the last interval does not show any more."""
    former_at: int | None = None
    """The number of blocks at that look."""
    contradicted: bool = False
    """For undecided: the last interval shows another verdict than that look, so that a new run must tell."""
    withheld: str = ""
    """For undecided: why a verdict that the interval shows is not given (trials that are missing for one contender)."""
    confounded: bool = False
    """For undecided: in all complete pairs the contenders had one order, so that order and kernel cannot be distinguished."""
    blocks_more: int | None = None
    """For undecided: about how many more blocks would decide it if effect and spread stay as measured; null if unknown."""
    mde_pct: float | None = None
    """What this run would have found with 80 % power."""
    unseen_mode_pct: float | None = None
    """For equivalent: the largest share of boots in an unseen slow mode that cannot be excluded."""
    q_value: float | None = None
    """Exploratory metrics: Benjamini-Hochberg."""
    beside: dict[str, float | None] = field(default_factory=dict)
    """Shown, never deciding: p_permutation, p_wilcoxon, hodges_lehmann_pct (with _low, _high), cliffs_delta, a12,
    p_brown_forsythe, ..."""
    warnings: list[Warning_] = field(default_factory=list)
    conditions: list[ConditionResult] = field(default_factory=list)
    """Counted metrics: each condition under which both contenders were counted. The interval is the range over them, and the
    effect is the median of their differences."""
    modes: dict[str, list[Mode]] = field(default_factory=dict)
    """By contender: the values about which single measurements lie, the most frequent first."""
    machines: MachinesResult | None = None
    """Where several machines measured: the effect on each, and how much they differ."""
    values: dict[str, list[float | None]] = field(default_factory=dict)
    """By contender, in the order of `blocks` of the run."""
    slices: dict[str, list[list[SliceValue]]] = field(default_factory=dict)
    """By contender, in the order of `blocks`: the slices of each trial; empty for a metric that was measured in one piece."""
    components: Components | None = None
    """Where the spread of both contenders comes from; null for fewer than three complete blocks."""

    @property
    def more_or_fewer(self) -> str:
        """`more` or `fewer`, for a difference in counts: they are no time. Else empty."""
        return self.verdict if self.verdict in ("more", "fewer") else ""

    @property
    def decided(self) -> bool:
        """True if there is a verdict."""
        return self.verdict != "undecided"

    @property
    def depends(self) -> bool:
        """True if conditions that must not matter decide which way an exact difference goes."""
        return self.scale == "exact" and self.verdict == "undecided" and self.ci_low != self.ci_high

    @property
    def agreeing(self) -> list[ConditionResult]:
        """The conditions under which the difference has the sign of the effect."""
        return [one for one in self.conditions if one.difference * (self.effect or 0) > 0]

    @property
    def word(self) -> str:
        """The verdict as it is reported: sizes are no faster or slower."""
        if self.depends:
            return "depends"
        if self.unit in BYTES and self.verdict in ("faster", "slower"):
            return "larger" if ((self.effect_pct if self.scale == "ratio" else self.effect) or 0) > 0 else "smaller"
        return self.verdict

    @property
    def size(self) -> str:
        """`too small to matter`, for a difference that lies inside the smallest effect of interest. Else empty."""
        return TOO_SMALL if self.below_delta else ""

    @property
    def was(self) -> str:
        """`was equivalent after 10 blocks`, for a verdict of an earlier look that the last interval does not show."""
        if self.former_verdict is None or self.former_at is None:
            return ""
        return f"was {self.former_verdict} after {self.former_at} blocks"

    @property
    def by_harness(self) -> bool:
        """True if the lint found that the benchmark's own way fixes this metric."""
        return any(warning.code == HARNESS for warning in self.warnings)


class Headline(Struct, kw_only=True):
    """A comparison in one sentence, as every report shows it."""

    baseline: str
    contender: str
    text: str


EffectKind = Literal["main", "interaction", "simple"]


class EffectResult(Struct, kw_only=True):
    """An effect of a study's factors, with its verdict."""

    name: str
    kind: EffectKind
    """main: over all levels of the other factors; simple: at one level of another; interaction: how the effect of one factor
    depends on the level of another."""
    factors: list[str]
    """One, or those that interact. `references` and `levels` run parallel: the levels that are compared."""
    references: list[str]
    levels: list[str]
    at: dict[str, str] = field(default_factory=dict)
    """Of a simple effect: the other factor's level."""
    aliases: list[str] = field(default_factory=list)
    """Other effects that a fraction cannot tell from this one."""
    result: MetricResult
    """Its arms are means over cells (geometric ones on the ratio scale); of an interaction they are ratios."""


class QuantileResult(Struct, kw_only=True):
    """The value that a share of all measurements does not exceed: of the mean distribution over boots. null: the data do not reach so
    far."""

    share: float
    value: float | None
    low: float | None
    high: float | None


class BoundResult(Struct, kw_only=True):
    """Verdict on a bound, by the share of measurements that exceed it; the largest one decides nothing."""

    limit: float
    """In the unit of the measurements."""
    share: float
    """Of the measurements, how many may exceed it."""
    exceeding: int
    samples: int
    verdict: Literal["holds", "violated", "undecided"]
    level: float
    """1 less the coverage of the interval: over all contenders and benchmarks that the bound is about, and all looks, together."""
    estimate: float | None = None
    """The share that exceeds it: the mean over boots."""
    low: float | None = None
    high: float | None = None
    reason: str = ""
    """Of undecided, where it is known."""


class ReturnLevelResult(Struct, kw_only=True):
    """A model of the tail: the level that a share of all measurements exceeds. null where there is none, for a `reason`."""

    share: float
    threshold: float | None = None
    """Above it excesses are fitted by a generalised Pareto distribution."""
    excesses: int | None = None
    shape: float | None = None
    scale: float | None = None
    level: float | None = None
    low: float | None = None
    high: float | None = None
    distance: float | None = None
    """The largest distance between the fitted and the counted distribution of the excesses."""
    other_level: float | None = None
    """The level by a fit to the upper half of the excesses."""
    reason: str = ""


class TailResult(Struct, kw_only=True):
    """The single measurements of one contender over its boots."""

    benchmark: str
    metric: str
    unit: str
    contender: str
    boots: int
    samples: int
    largest: float | None
    level: float
    """1 less the coverage of each interval."""
    quantiles: list[QuantileResult] = field(default_factory=list)
    survival: list[tuple[float, float]] = field(default_factory=list)
    """Values, and the share of measurements above each."""
    bound: BoundResult | None = None
    return_level: ReturnLevelResult | None = None


class ShiftPoint(Struct, kw_only=True):
    """The change of one quantile."""

    share: float
    effect_pct: float | None
    low_pct: float | None
    high_pct: float | None
    verdict: Verdict


class ShiftResult(Struct, kw_only=True):
    """Change of a contender's quantiles within boots against the baseline's; intervals hold for all points together."""

    benchmark: str
    metric: str
    baseline: str
    contender: str
    points: list[ShiftPoint] = field(default_factory=list)


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
    settle: Settle | None = None
    edition: int = EDITION
    """Of the method that the run was planned by and is judged by."""
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
    headlines: list[Headline] = field(default_factory=list)
    effects: list[EffectResult] = field(default_factory=list)
    """Of a study with factors: what decides, instead of single contenders against the baseline."""
    tails: list[TailResult] = field(default_factory=list)
    """Of benchmarks that keep their single measurements."""
    shifts: list[ShiftResult] = field(default_factory=list)
    repeated: list[TrialResult] = field(default_factory=list)
    """Boots that were put aside and made again, for a fault that is not their contender's."""
    steps: list[StepResult] = field(default_factory=list)
    """The benchmarks with their parameters, in the order of the study."""
    differences: list[Difference] = field(default_factory=list)
    warnings: list[Warning_] = field(default_factory=list)
    """Findings about the run as a whole."""
    blocks: list[int] = field(default_factory=list)
    environment: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By contender: what its first good trial captured."""
    exact: Results | None = None
    """What was counted exactly on one CPU, before the rest: a run of its own, in the directory `exact` of this one."""
    explanations: list[dict[str, Any]] = field(default_factory=list)
    """Where exact differences come from, as far as `kduel explain` was run: kduel.explain.compare.Explanation, or
    kduel.explain.sharing.compare.SharingExplanation."""

    @property
    def gating(self) -> list[MetricResult]:
        """The metrics that decide: the primary ones, or all where the study declared none; of a study with factors the effects."""
        judged = [one.result for one in self.effects] or self.metrics
        return [metric for metric in judged if metric.role == "primary"] or judged
