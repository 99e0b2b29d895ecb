"""The type of a finding: each file in `findings/` is one, with its check, its cause, what it means and what to do."""

from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import cache

from msgspec import Struct

from kduel.core.evidence import Evidence
from kduel.core.metric_results import FindingResult
from kduel.core.plugins import plugins
from kduel.core.results import Results
from kduel.core.samples import Samples
from kduel.judge.lint.case import Case


class Cause(StrEnum):
    """Causes that several findings share: a report shows one note for each cause, with every metric it affects."""

    MISSING = "Results are missing"
    OUTLIERS = "A few trials carry the conclusion"
    SPREAD = "The contenders do not vary equally"
    TOO_FEW = "There are too few trials"
    MODES = "The boots fall into two groups"
    TIME = "The machine changed during the run"
    COPIED = "Values repeat"
    RESOLUTION = "The values are too coarse"
    MACHINES = "The machines do not agree"
    ORDER = "The place of a trial within its block matters"
    TURNS = "The contenders did not take turns evenly"


class Finding(Struct, frozen=True, kw_only=True):
    """A finding, with what all its occurrences have in common; their messages have the evidence."""

    name: str
    """The code, as scripts read it in the JSON of a report."""
    cause: str
    """One of `Cause`, or a sentence of its own."""
    weight: int
    """From 1 to 100: how much it matters to whoever reads the verdicts. A report shows the weightiest."""
    meaning: str
    """How it is detected, and what it does to a verdict."""
    remedy: str
    check: Callable[[Case], Iterator[str]] | None = None
    """Yields a message for one verdict."""
    check_run: Callable[[Results, list[Samples]], Iterator[str]] | None = None
    """Yields messages about the run as a whole. A finding without any check is raised elsewhere, by `warning`."""
    chance: bool = False
    """Whether it rests on a statistical test, so that clean data can raise it by chance (docs/evidence/lint-calibration.md)."""
    least: Evidence = Evidence.COUNTED
    """The evidence with the least part of chance that it applies to; none where it is not about chance."""
    levelled: bool = False
    """Whether it looks for what differs within an arm. Where several machines measured it then sees each machine's values at
    one level, since the machines' own levels would be taken for modes and drift."""
    undecided: str = ""
    """Why a verdict with this finding is undecided and what to do, as a clause; empty where it does not explain that."""

    def warning(self, message: str) -> FindingResult:
        return FindingResult(code=self.name, message=message)


@cache
def catalogue() -> dict[str, Finding]:
    """All findings by code, the weightiest first: the order in which a verdict lists them."""
    found: list[Finding] = list(plugins("findings").values())
    return {finding.name: finding for finding in sorted(found, key=lambda finding: (-finding.weight, finding.name))}
