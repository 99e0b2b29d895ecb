"""Results of one metric: its verdict with the evidence, by condition and by machine, and its factors' effects."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, field

from kduel.core.experiment import Aspect, Better, Role, Scope, Statistic
from kduel.core.samples import Mode
from kduel.core.slices import Components, SliceValue

Verdict = Literal[
    "faster", "slower", "higher", "lower", "equivalent", "equal", "different", "more", "fewer", "undecided"
]
Scale = Literal["ratio", "difference", "exact"]
COUNTED = "instructions"
"""A unit of path length: fewer of them is no time."""
SHARED = "lines"
"""A unit of sharing: the cache lines that CPUs fight over. Fewer of them is no time either."""
TOUCHED, TOUCHED_PAGES = "touched-lines", "touched-pages"
"""Units of what an operation touches in the kernel, each once. How long that takes depends on what the caches hold."""
ACCESSES, LOCKED = "lines-accesses", "lines-locked"
"""Units of the weight of shared lines: how much an operation does to them."""
SHARING = (SHARED, ACCESSES, LOCKED)
COUNTS = (COUNTED, TOUCHED, TOUCHED_PAGES, *SHARING)
"""Units of what a deterministic machine counts. Each is the name of the metric of the usual call, too."""
BYTES = ("B", "kB", "KiB", "MB", "MiB", "GiB")
HARNESS = "fixed-by-harness"
"""The code of the finding that a metric is set by the harness and not by the kernel."""
SET_BY_HARNESS = "set by the benchmark itself"
NOT_JUDGED = "not judged"
"""Instead of the verdict on what is set by the benchmark itself: no headline counts it."""


class FindingResult(Struct, kw_only=True):
    """A finding of the lint: `code` for scripts, `message` with its evidence for people."""

    code: str
    message: str


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

    @property
    def rest(self) -> str:
        """Words for those that a machine of these is set against."""
        return "the other" if len(self.effects) == 2 else "the others"


TOO_SMALL = "too small to matter"
CONTRADICTED = "machines contradict each other"
NO_ONE_VERDICT = "no one verdict holds for all machines"


class MetricResult(Struct, kw_only=True):
    """One metric, one contender against the baseline."""

    benchmark: str
    metric: str
    unit: str
    better: Better
    role: Role
    about: str = ""
    group: str = ""
    statistic: Statistic = "value"
    aspect: Aspect = ""
    """What the metric measures."""
    words: str = ""
    """What is done, as a sentence names it; empty where `benchmark` says it."""
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
    scheduled: bool = False
    """Whether a scheduler decided what exact CPUs did: conditions are then a sample, and may agree by chance."""
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
    """The number of blocks at the first look that decided; null while undecided, except where the verdict is `withheld` for what the
    benchmark sets or for machines that contradict each other: the run ended there."""
    former_verdict: Verdict | None = None
    """For undecided: what an earlier look decided and the last interval does not show any more."""
    former_at: int | None = None
    """The number of blocks at that look."""
    contradicted: bool = False
    """For undecided: the last interval shows another verdict than that look, so that a new run must tell."""
    withheld: str = ""
    """For undecided: why a verdict that the interval shows is not given (values that are missing, as they depend on the contender, or as
    they are large; so few conditions that they agree by chance; the benchmark's own settings; machines that contradict each other)."""
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
    warnings: list[FindingResult] = field(default_factory=list)
    conditions: list[ConditionResult] = field(default_factory=list)
    """Counted metrics: each condition under which both contenders were counted. The interval is the range over them, and the
    effect is the median of their differences."""
    resolution: float = 0.0
    """Of the exact machine's clock, in the metric's unit: a difference that is not larger counts as none."""
    modes: dict[str, list[Mode]] = field(default_factory=dict)
    """By contender: the values about which single measurements lie, the most frequent first."""
    machines: MachinesResult | None = None
    """Where several machines measured: the effect on each, and how much they differ."""
    values: dict[str, list[float | None]] = field(default_factory=dict)
    """By contender, in the order of `blocks` of the run."""
    beyond: dict[str, list[int]] = field(default_factory=dict)
    """By contender, the blocks in which the value lies beyond the benchmark's histogram, so that it is missing because it is large."""
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
    def torn(self) -> bool:
        """True if the verdict was taken back as a machine would have another one than the others."""
        return self.withheld == CONTRADICTED

    @property
    def claimed(self) -> bool:
        """True if the verdict may be said of the kernels: there is one, and it is not withheld. Every label, colour, count and
        status goes by this."""
        return self.decided and not self.withheld and not self.by_harness

    @property
    def hint(self) -> bool:
        """True if it is exploratory and chance has a part in it, as in what exact CPUs scheduled: its claim is no verdict of the study's."""
        return self.role != "primary" and (self.scale != "exact" or self.scheduled)

    @property
    def settled(self) -> bool:
        """True if a run need not go on for it: there is a verdict, or one that was taken back, or only the same would come."""
        taken_back = self.withheld in (SET_BY_HARNESS, CONTRADICTED) and self.decided_at is not None
        return self.decided or taken_back or (self.few and not self.conditions)

    @property
    def depends(self) -> bool:
        """True if conditions that must not matter decide which way an exact difference goes."""
        return (
            self.scale == "exact"
            and self.verdict == "undecided"
            and self.ci_low != self.ci_high
            and not self.withheld
        )

    @property
    def few(self) -> bool:
        """True if chance makes so few conditions of exact CPUs agree too often for a verdict."""
        return self.scale == "exact" and bool(self.withheld) and not self.by_harness

    @property
    def open(self) -> bool:
        """True if more trials may decide it: neither the benchmark sets it, nor do conditions decide."""
        return not (self.decided or self.by_harness or (self.conditions and not self.withheld))

    @property
    def within_resolution(self) -> bool:
        """True if the values differ, by no more than the exact machine's clock resolves."""
        return bool(self.verdict == "equal" and self.resolution and self.mean != self.baseline_mean)

    @property
    def pairs(self) -> list[tuple[float, float]]:
        """The values of baseline and contender under each condition."""
        return [(one.baseline, one.contender) for one in self.conditions]

    @property
    def agreeing(self) -> list[ConditionResult]:
        """The conditions under which the difference has the sign of the effect, and is resolved."""
        effect = self.effect or 0
        return [
            one for one in self.conditions if one.difference * effect > 0 and abs(one.difference) > self.resolution
        ]

    @property
    def word(self) -> str:
        """The verdict as it is reported: sizes are no faster or slower, and what the benchmark sets is not judged."""
        if self.by_harness:
            return NOT_JUDGED
        if self.depends:
            return "depends"
        if self.unit in BYTES and self.verdict in ("faster", "slower"):
            return "larger" if ((self.effect_pct if self.scale == "ratio" else self.effect) or 0) > 0 else "smaller"
        if self.statistic == "sd" and self.verdict in ("faster", "slower"):
            return "steadier" if self.verdict == "faster" else "less steady"
        return self.verdict

    @property
    def status(self) -> str:
        """The verdict for programs: that of the rule, or `not judged`, which is no proof that the kernels are equal."""
        return NOT_JUDGED if self.by_harness else self.verdict

    @property
    def size(self) -> str:
        """`too small to matter`, for a difference that lies inside the smallest effect of interest. Else empty."""
        return TOO_SMALL if self.below_delta and not self.by_harness else ""

    @property
    def label(self) -> str:
        """`slower`, `slower, too small to matter`: the word with its size."""
        return ", ".join(filter(None, (self.word, self.size)))

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


class Rank(Struct, frozen=True, kw_only=True):
    """The ranks that the intervals leave to a contender: 1 and more than the number of those shown to be better, up to the
    number of those not shown to be worse."""

    contender: str
    first: int | None
    last: int | None
    """Both null where the contender cannot be ranked, for a `reason`."""
    reason: str = ""


class AspectRanking(Struct, kw_only=True):
    """One aspect. Its value of a boot is the geometric mean of the metrics in that boot; times and sizes enter as their inverse, so
    that higher is better."""

    aspect: Aspect
    metrics: list[str]
    """BENCHMARK/METRIC of each primary metric that enters."""
    left_out: list[str] = field(default_factory=list)
    """The aspect's other primary metrics: set by the benchmark itself, or without ratios."""
    ranks: list[Rank]
    """All contenders with the baseline, the best first; last those without a rank."""
    results: list[MetricResult]
    """Each contender against the baseline, in the order of the contenders. Shown beside the primary metrics, never deciding."""


def conditions_of(metrics: Sequence[MetricResult], blocks: Sequence[int]) -> dict[str, list[dict[str, float]]]:
    """One metric's values under each condition, by contender, parallel to the blocks."""
    found: dict[str, list[dict[str, float]]] = {}
    for metric in metrics:
        for one in metric.conditions:
            for name, value in ((metric.baseline, one.baseline), (metric.contender, one.contender)):
                found.setdefault(name, [{} for _ in blocks])[blocks.index(one.block)][one.name] = value
    return found
