"""Every code that a finding can have: its cause, its weight, what it means, what to do. docs/findings.md is made of it.

A finding is a `Warning_` of the results. The catalogue says what all findings of one code have in common; the
finding's own message has the evidence.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Code(StrEnum):
    """The codes, as scripts read them in the JSON of a report."""

    CONFOUNDS = "confounds"
    NOT_INTERLEAVED = "not-interleaved"
    CHANGED_AFTERWARDS = "changed-afterwards"
    CRASHES = "crashes"
    KERNEL_LOG = "kernel-log"
    FUTILE = "futile"
    MACHINE_OUT = "machine-out"
    MISSING_BY_ARM = "missing-by-arm"
    REPEATED_VALUES = "repeated-values"
    FIXED_BY_HARNESS = "fixed-by-harness"
    RARE_MODE = "rare-mode"
    ONE_TRIAL = "one-trial"
    ROBUST_DISAGREES = "robust-disagrees"
    MEANS_DISAGREE = "means-disagree"
    UNEQUAL_SPREAD = "unequal-spread"
    SINGLE_TRIAL = "single-trial"
    TOO_FEW = "too-few"
    TWO_MODES = "two-modes"
    DRIFT = "drift"
    AUTOCORRELATION = "autocorrelation"
    ORDER_EFFECT = "order-effect"
    FIRST_TRIAL = "first-trial"
    PAGE_CACHE = "page-cache"
    TIES = "ties"
    QUANTISED = "quantised"
    MAXIMUM = "maximum"
    UNRELIABLE = "unreliable"
    UNEQUAL_N = "unequal-n"
    CONFIG_DIFFERS = "config-differs"
    MACHINES_DISAGREE = "machines-disagree"
    MACHINES_DIFFER = "machines-differ"


class Cause(StrEnum):
    """What findings have in common: a report shows one note for each cause, with every metric it affects."""

    ARMS = "The contenders differ in more than the study declares"
    CONDUCT = "The contenders were not measured in turn"
    MISSING = "Results are missing"
    CHANGED = "Files of the run were changed afterwards"
    KERNEL = "A kernel reported trouble of its own"
    FUTILE = "The run could not decide anything any more"
    MACHINE_OUT = "A machine of the fleet did not finish its blocks"
    COPIED = "Values repeat"
    HARNESS = "The benchmark's settings fix the value"
    OUTLIERS = "A few trials carry the conclusion"
    SPREAD = "The contenders do not vary equally"
    TOO_FEW = "There are too few trials"
    MODES = "The boots fall into two groups"
    TIME = "The machine changed during the run"
    ORDER = "The place of a trial within its block matters"
    CACHE = "The storage benchmark measures memory"
    RESOLUTION = "The values are too coarse"
    STATISTIC = "The metric is a maximum"
    PRECISION = "The size of the effect is uncertain"
    CONFIG = "The kernels are configured differently"
    MACHINES = "The machines do not agree"


class FindingKind(Struct, frozen=True, kw_only=True):
    """What all findings of one code have in common."""

    code: Code
    cause: Cause
    weight: int
    """From 1 to 100: how much it matters to whoever reads the verdicts. A report shows the weightiest."""
    meaning: str
    """How it is detected, and what it does to a verdict."""
    remedy: str
    chance: bool = False
    """Whether it rests on a statistical test, so that clean data can raise it by chance (docs/lint-calibration.md)."""


CATALOGUE: tuple[FindingKind, ...] = (
    FindingKind(
        code=Code.CONFOUNDS,
        cause=Cause.ARMS,
        weight=100,
        meaning="The captured environments of the contenders differ in something that the study does not declare. A "
        "measured difference may come from it.",
        remedy="Make it equal, or declare it as what is compared.",
    ),
    FindingKind(
        code=Code.NOT_INTERLEAVED,
        cause=Cause.CONDUCT,
        weight=90,
        meaning="All trials of one contender came before all trials of another, or the results were imported and their "
        "order is unknown. Any change of the machine in between counts as a difference between the contenders.",
        remedy="Measure again in randomised blocks (`kduel run`).",
    ),
    FindingKind(
        code=Code.CHANGED_AFTERWARDS,
        cause=Cause.CHANGED,
        weight=99,
        meaning="Files of the run do not match the checksums that were stored when they were written. The verdicts are "
        "computed from the files as they are now.",
        remedy="Restore the run from a copy, or measure again; `kduel verify` lists the files.",
    ),
    FindingKind(
        code=Code.KERNEL_LOG,
        cause=Cause.KERNEL,
        weight=92,
        meaning="The console of valid trials holds a sign of trouble (a warning, an oops, a stall) for one contender and "
        "not, or less often, for another.",
        remedy="Read the console logs; repair the cause, or declare it as a part of what is compared.",
    ),
    FindingKind(
        code=Code.FUTILE,
        cause=Cause.FUTILE,
        weight=74,
        meaning="At the spread of the values no primary metric can be decided within the maximum number of blocks.",
        remedy="The message names the reason: host load, two groups of boots, or a delta that is too small.",
    ),
    FindingKind(
        code=Code.MACHINE_OUT,
        cause=Cause.MACHINE_OUT,
        weight=60,
        meaning="A machine of the fleet was lost, or quarantined for void or slow trials, and the others continued without "
        "it. The rule does not use the values that are compared; the complete blocks of the machine count.",
        remedy="The message has the reason. Repair the machine before the next run.",
    ),
    FindingKind(
        code=Code.CRASHES,
        cause=Cause.MISSING,
        weight=98,
        meaning="Void trials depend on the contender: Fisher's exact test is below .05, or two or more trials are void "
        "and all of them belong to one contender. The missing trials may be the slow ones.",
        remedy="Read the console logs of the void trials. That one contender fails is a result in itself.",
    ),
    FindingKind(
        code=Code.MISSING_BY_ARM,
        cause=Cause.MISSING,
        weight=96,
        meaning="As `crashes`, for one metric: its values are missing from valid trials, and which ones depends on the "
        "contender. Of an import in KDuel's CSV, the numbers of the trials show it: a number without a value here occurs in "
        "another metric of the contender, or in another contender.",
        remedy="Read the standard error of the step in the trials without a value; raise its time limit if it was cut off. "
        "If an import lacks trials that were never carried out, make the metric an import of its own, in which no trial "
        "number of one contender occurs in another.",
    ),
    FindingKind(
        code=Code.REPEATED_VALUES,
        cause=Cause.COPIED,
        weight=95,
        meaning="A sequence of three or more values occurs twice in the same order, in one contender or in both. Measured "
        "values do not repeat so; the number of matches that the resolution of the values explains is allowed for.",
        remedy="Check whether files were copied, or whether the benchmark printed a cached result.",
        chance=True,
    ),
    FindingKind(
        code=Code.FIXED_BY_HARNESS,
        cause=Cause.HARNESS,
        weight=88,
        meaning="The medians of all contenders lie within 0.5 % of a duration that the benchmark is configured with, or "
        "of a round number of seconds that hardly varies. The metric does not depend on the kernel.",
        remedy="Judge the work done in that time instead: operations, bytes, context switches.",
        chance=True,
    ),
    FindingKind(
        code=Code.RARE_MODE,
        cause=Cause.MODES,
        weight=86,
        meaning="The verdict is `equivalent`, but a few trials of one contender, and none of the other, lie far away from "
        "all others. A rare slow mode that only one contender has is a difference.",
        remedy="Read the logs of these trials, and measure more blocks, to estimate the share of slow boots.",
        chance=True,
    ),
    FindingKind(
        code=Code.ONE_TRIAL,
        cause=Cause.OUTLIERS,
        weight=84,
        meaning="One trial lies far from all others, and without it the effect would have the other sign, or another verdict.",
        remedy="Find out what happened in that trial; repeat the run, or use a median or a percentile.",
        chance=True,
    ),
    FindingKind(
        code=Code.ROBUST_DISAGREES,
        cause=Cause.OUTLIERS,
        weight=80,
        meaning="A 20 % trimmed t test or the signed-rank test, each at a stricter level of its own, would have found a "
        "difference where the verdict is undecided; or neither supports the difference that the verdict reports. These "
        "tests ignore outlying trials. They never decide, because they would also ignore a rare slow mode.",
        remedy="Examine the outlying trials: if they are disturbances of the host, remove the cause and repeat; if they "
        "belong to the kernel, the mean is the right measure.",
        chance=True,
    ),
    FindingKind(
        code=Code.MEANS_DISAGREE,
        cause=Cause.SPREAD,
        weight=78,
        meaning="The spreads differ (Brown-Forsythe test), and the arithmetic means disagree with the geometric "
        "means that the verdict compares. The geometric mean stands for a typical boot, the arithmetic mean for the total.",
        remedy="Decide which mean matters to you: total cost over many boots (arithmetic) or a typical boot (geometric).",
        chance=True,
    ),
    FindingKind(
        code=Code.UNEQUAL_SPREAD,
        cause=Cause.SPREAD,
        weight=60,
        meaning="One contender varies at least 1.1 times as much as the other (Brown-Forsythe test). That is a difference in "
        "predictability, whatever the means are.",
        remedy="Compare percentiles, and look for what happens only in the slow trials of the contender that varies more.",
        chance=True,
    ),
    FindingKind(
        code=Code.SINGLE_TRIAL,
        cause=Cause.TOO_FEW,
        weight=82,
        meaning="A contender was measured once: the difference may be chance.",
        remedy="Measure each contender at least six times, in random order.",
    ),
    FindingKind(
        code=Code.TOO_FEW,
        cause=Cause.TOO_FEW,
        weight=70,
        meaning="There are fewer blocks than a verdict, or than the verdict `equivalent`, requires.",
        remedy="Measure more blocks; resume an interrupted run.",
    ),
    FindingKind(
        code=Code.TWO_MODES,
        cause=Cause.MODES,
        weight=66,
        meaning="The trials of a contender fall into two groups far apart. Some property differs from boot to boot.",
        remedy="Compare the environments and logs of the two groups: memory placement, clock source, interrupts, CPU.",
        chance=True,
    ),
    FindingKind(
        code=Code.DRIFT,
        cause=Cause.TIME,
        weight=50,
        meaning="The values rise or fall over the run (rank correlation with time). Randomised blocks keep a drift out of "
        "the verdict, but it widens the interval.",
        remedy="Look for heat, a filling disk, or other work on the host.",
        chance=True,
    ),
    FindingKind(
        code=Code.AUTOCORRELATION,
        cause=Cause.TIME,
        weight=48,
        meaning="Successive trials are alike (lag-1 correlation of the ranks, after a linear drift is removed): a "
        "disturbance lasted longer than one trial. Random orders keep it out of the verdict.",
        remedy="Look for other work on the host during the run, heat, or frequency changes.",
        chance=True,
    ),
    FindingKind(
        code=Code.ORDER_EFFECT,
        cause=Cause.ORDER,
        weight=52,
        meaning="A trial's place within its block changes its value: the trial before it leaves something behind (heat, a "
        "full cache, a used disk). From ten blocks on it is a covariate of the interval; with fewer it widens the interval.",
        remedy="Let the machine cool down and come to rest between trials; discard caches.",
        chance=True,
    ),
    FindingKind(
        code=Code.FIRST_TRIAL,
        cause=Cause.TIME,
        weight=46,
        meaning="The first trial of the run, or of each contender where they were measured apart, lies further out than any "
        "other: a warm-up effect.",
        remedy="Add a trial before the first that is discarded, by a rule set beforehand.",
        chance=True,
    ),
    FindingKind(
        code=Code.PAGE_CACHE,
        cause=Cause.CACHE,
        weight=64,
        meaning="A storage benchmark reports a rate that no drive reaches: it reads from or writes to memory.",
        remedy="Use direct I/O, or more data than there is memory.",
    ),
    FindingKind(
        code=Code.TIES,
        cause=Cause.RESOLUTION,
        weight=42,
        meaning="Half of a contender's values or more are the same number. Intervals from such values are not reliable.",
        remedy="Measure for longer, or count something that happens more often.",
    ),
    FindingKind(
        code=Code.QUANTISED,
        cause=Cause.RESOLUTION,
        weight=40,
        meaning="The values come in steps above 10 % of the median. A smaller difference cannot be detected.",
        remedy="Measure for longer, or in a finer unit.",
    ),
    FindingKind(
        code=Code.MAXIMUM,
        cause=Cause.STATISTIC,
        weight=44,
        meaning="The metric is the largest sample of a trial: one sample decides it, and it grows with the time measured.",
        remedy="Make the 99th or 99.9th percentile the primary metric, and report the maximum as a further metric.",
    ),
    FindingKind(
        code=Code.UNRELIABLE,
        cause=Cause.PRECISION,
        weight=38,
        meaning="Imported results: the interval of a primary metric is wider than its effect, so that the effect alone, as "
        "published tables print it, shows neither its size nor, perhaps, its direction.",
        remedy="Do not quote the size without its interval, or measure more trials.",
    ),
    FindingKind(
        code=Code.UNEQUAL_N,
        cause=Cause.MISSING,
        weight=36,
        meaning="The contenders have different numbers of values; which ones are missing does not depend on the contender "
        "as far as is known.",
        remedy="Find out why values are missing.",
    ),
    FindingKind(
        code=Code.CONFIG_DIFFERS,
        cause=Cause.CONFIG,
        weight=20,
        meaning="The kernels' configurations differ; the message counts the options by topic. The verdicts compare these builds.",
        remedy="Build both kernels with one configuration if the versions alone are to be compared.",
    ),
    FindingKind(
        code=Code.MACHINES_DISAGREE,
        cause=Cause.MACHINES,
        weight=94,
        meaning="The effect on one machine differs significantly from that on the others, and would give another verdict: "
        "it has the other sign, or only one of the two lies within delta. The pooled verdict hides that.",
        remedy="Find out what is different about that machine; give a verdict for each machine, not one for all.",
        chance=True,
    ),
    FindingKind(
        code=Code.MACHINES_DIFFER,
        cause=Cause.MACHINES,
        weight=40,
        meaning="The effect on one machine differs significantly in size from that on the others, with the same verdict.",
        remedy="Quote the effect of each machine with the pooled one.",
        chance=True,
    ),
)
"""In the order of the documentation."""
BY_CODE: dict[str, FindingKind] = {str(finding.code): finding for finding in CATALOGUE}
