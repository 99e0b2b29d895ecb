"""The lint's one entry: every check over every verdict, and over the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from kduel.core.experiment import Contender
from kduel.core.results import Results, Warning_
from kduel.core.samples import Samples
from kduel.judge.lint.case import Case, cases
from kduel.judge.lint.confounds import Environment, declared_by, differences, undeclared
from kduel.judge.lint.copies import repeated_values
from kduel.judge.lint.distribution import maximum, rare_mode, ties, two_modes
from kduel.judge.lint.drift import autocorrelation, drift, first_trial
from kduel.judge.lint.execution import crashes, not_interleaved
from kduel.judge.lint.harness import fixed_by_harness
from kduel.judge.lint.influence import one_trial
from kduel.judge.lint.kernel_log import kernel_reports
from kduel.judge.lint.machines import machines_disagree
from kduel.judge.lint.missing import missing
from kduel.judge.lint.order import order_effect
from kduel.judge.lint.reporting import page_cache, unreliable
from kduel.judge.lint.sample_size import single_trial, too_few
from kduel.judge.lint.secondary import robust_disagrees
from kduel.judge.lint.spread import unequal_spread

CHECKS: tuple[Callable[[Case], Iterator[Warning_]], ...] = (
    single_trial,
    fixed_by_harness,
    repeated_values,
    rare_mode,
    one_trial,
    robust_disagrees,
    unequal_spread,
    maximum,
    page_cache,
    unreliable,
    ties,
    two_modes,
    first_trial,
    drift,
    autocorrelation,
    order_effect,
    machines_disagree,
    missing,
    too_few,
)
"""In the order in which a verdict lists what they find."""
LEVELLED = {one_trial, rare_mode, unequal_spread, two_modes, first_trial, drift, autocorrelation}
"""They look for what differs within an arm. Where several machines measured they see each machine's values at one level,
since the machines' own levels would be taken for modes and drift."""
NOISE_ALONE = {
    single_trial,
    repeated_values,
    rare_mode,
    one_trial,
    robust_disagrees,
    unequal_spread,
    unreliable,
    first_trial,
    drift,
    autocorrelation,
    order_effect,
    too_few,
}
"""They are about chance, and do not apply where numbers are exact."""


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
    exact = results.machine.exact
    for case in cases(results, samples):
        for check in CHECKS:
            counted = exact or (case.metric.exact and case.steady)
            if not (counted and check in NOISE_ALONE):
                case.result.warnings.extend(check(case.levelled if check in LEVELLED else case))
    results.differences = differences(environments, declared_by(contenders, declared))
    results.warnings.extend(not_interleaved(results, samples))
    results.warnings.extend(undeclared(results.differences))
    results.warnings.extend(crashes(results))
    results.warnings.extend(kernel_reports(results))
