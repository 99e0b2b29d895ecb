"""The kind of evidence that a run's values are, and the words that follow from it, for every format."""

from collections.abc import Sequence

from kduel.core.format import plain_number, ranged_over
from kduel.core.metric_results import COUNTS, SHARING, TOUCHED, TOUCHED_PAGES, MetricResult
from kduel.core.results import Results
from kduel.explain.compare import UNSEEN

ONCE = (
    "Each operation was counted once, under one condition: an exact difference may be another under other conditions that "
    "should not matter, or have the other sign. Without --single several are counted."
)

HINTS = "Verdicts on metrics that are not primary are hints, held to a false discovery rate."


class SampledEvidence:
    """Values that chance and the host have a part in: intervals say how sure a difference is."""

    label = "Timed"
    """The run's name beside that of its exact part."""
    varies = True
    """Whether another trial gives another value."""
    paired = True
    """Whether KDuel carried the trials out itself, block by block."""
    needs = "more block", "more blocks"
    """What an undecided metric lacks, one and many."""
    unstated = "not known"
    """In place of a fact that is not there."""

    def sureness(self, results: Results) -> str:
        """Sentence on the trust that values deserve which do not vary; empty where intervals say that."""
        return ""

    def method(self, results: Results) -> str:
        """Description of how verdicts are reached without statistics; empty where they are not."""
        return ""

    def silence(self, results: Results, metrics: Sequence[MetricResult]) -> list[str]:
        """Questions that these values cannot answer."""
        return []

    def bars(self, results: Results) -> str:
        """Meaning of the bars beside a value."""
        return f"bars: {plain_number(round(100 * (1 - results.study.alpha), 3))} % intervals, all together"

    def cells(self, count: int, apart: bool, hints: bool) -> str:
        """Sentence on how sure so many verdicts of a matrix are, where they stand `apart` from the run's own or are `hints`."""
        if not apart:
            return HINTS * hints
        return (
            "Exploratory: of the differences called in cells, about one in twenty is expected to be chance, so more may be decided "
            "than by the run's own verdicts, which hold for all primary comparisons together (false discovery rate of Benjamini "
            f"and Hochberg over {count} verdicts; the scheduler's counters, and those of single levels of domains, are families by themselves)."
        )


AGREEMENT = (
    "What a scheduler decides changes with the least cause, so conditions that should not matter are a sample: a difference is called where "
    "chance makes so many of them agree more rarely than the errors that the study allows, all primary comparisons together."
)


class CountedEvidence(SampledEvidence):
    """Values that an exact machine counted: a repetition gives the same."""

    label = "Counted on several CPUs"
    varies = False

    def sureness(self, results: Results) -> str:
        """Sentence on why a repetition would give the same, and that there was but one condition."""
        said = "Counted exactly on a deterministic machine: a repetition gives the same numbers"
        if results.machine.resolution:
            return f"{said}. {AGREEMENT}"
        said += ", so no statistics are needed."
        counted = [m for m in results.metrics if m.metric == m.unit in COUNTS and m.n]
        return f"{said} {ONCE}" if counted and not ranged_over(counted) else said

    def method(self, results: Results) -> str:
        """For a deterministic machine."""
        return (
            "The machine is deterministic: time in it advances with executed instructions, so one trial of each contender gives "
            "the number that every repetition would give. Values are compared as they are. They count work; they do not show how "
            "long a real processor takes for it." + (f" {AGREEMENT}" if results.machine.resolution else "")
        )

    def silence(self, results: Results, metrics: Sequence[MetricResult]) -> list[str]:
        """The time on a real processor, and why not."""
        units = {metric.unit for metric in metrics}
        if units and units.issubset(SHARING):
            why = (
                "cache lines that move are counted, and what goes to them, not time. Queues, waiting, retries and migrations do "
                "not count, nor what grows with the number of CPUs; a security module and the configuration add lines of their own."
            )
        elif units and units <= {TOUCHED, TOUCHED_PAGES}:
            why = (
                "lines and pages that a call touches are counted, each once, not time. The more there are, the more a call costs "
                "whose lines are not in the caches; no cache, no prefetching and no TLB is modelled."
            )
        elif results.machine.resolution:
            why = (
                "times are virtual; caches, threads that share a core, frequencies and sleep states are not in them."
            )
        else:
            why = f"instructions are counted, not time; {UNSEEN} do not count."
        return [f"How long it takes on a real processor: {why}"]

    def bars(self, results: Results) -> str:
        over = ranged_over(results.gating)
        return f"bars: range over {over}, exact" if over else "counted once, under one condition"

    def cells(self, count: int, apart: bool, hints: bool) -> str:
        """Sentence on how sure so many verdicts of a matrix are."""
        return (
            f"The {count} cells were counted on a deterministic machine: each holds for this one course of "
            "instructions, in which background work of the kernel may fall into any cell."
        )


class ImportedEvidence(SampledEvidence):
    """Values that were measured elsewhere, in trials that nothing pairs."""

    paired = False
    needs = "more trial of each contender", "more trials of each contender"
    unstated = "not stated in what was imported"


class ImportedCounts(ImportedEvidence, CountedEvidence):
    """Counts that were imported."""


KINDS = {
    (True, True): SampledEvidence(),
    (False, True): CountedEvidence(),
    (True, False): ImportedEvidence(),
    (False, False): ImportedCounts(),
}


def evidence(results: Results) -> SampledEvidence:
    """The kind of evidence of a run, or of a part of it."""
    return KINDS[results.machine.evidence.varies, results.paired]
