"""The lint's one entry: every check over every verdict, and over the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kduel.core.experiment import Contender
from kduel.core.metric_results import SET_BY_HARNESS, Warning_
from kduel.core.results import Results
from kduel.core.samples import Samples
from kduel.judge.lint.case import cases
from kduel.judge.lint.confounds import Environment, declared_by, differences
from kduel.judge.lint.finding import catalogue
from kduel.judge.verdict.wording import not_judged_text


def examine(
    results: Results,
    samples: list[Samples],
    environments: Mapping[str, Sequence[Environment]],
    contenders: Sequence[Contender],
    declared: Sequence[str] = (),
) -> None:
    """Fill in `differences` and all warnings of `results`.

    `environments` has each contender's trials; `declared` are further keys that the study says differ.
    """
    for case in cases(results, samples):
        counted = results.machine.exact or (case.metric.exact and case.steady)
        for finding in catalogue().values():
            if finding.check is not None and not (counted and finding.noise):
                seen = case.with_levelled_machines if finding.levelled else case
                case.result.warnings.extend(map(finding.warning, finding.check(seen)))
        if case.result.by_harness:
            # What reads `verdict` alone must not take a setting of the benchmark for a proof that kernels are equal.
            case.result.verdict, case.result.withheld = "undecided", SET_BY_HARNESS
            case.result.decided_at = case.result.unseen_mode_pct = case.result.former_verdict = None
            case.result.blocks_more, case.result.told = None, not_judged_text(case.result)
    results.differences = differences(environments, declared_by(contenders, declared))
    results.warnings.extend(findings_of_run(results, samples))


def findings_of_run(results: Results, samples: list[Samples]) -> Iterator[Warning_]:
    """The findings about the run as a whole; `results` has its `differences`."""
    for finding in catalogue().values():
        if finding.check_run is not None:
            yield from map(finding.warning, finding.check_run(results, samples))
