"""The lint's one entry: every check over every verdict, and over the run."""

from collections.abc import Iterator, Mapping, Sequence

from kduel.core.experiment import Contender
from kduel.core.metric_results import HARNESS, FindingResult, MetricResult
from kduel.core.results import Results
from kduel.core.samples import Samples
from kduel.judge.lint.case import cases
from kduel.judge.lint.confounds import Environment, declared_by, differences
from kduel.judge.lint.finding import catalogue
from kduel.judge.verdict.wording import withhold


def examine(
    results: Results,
    samples: list[Samples],
    environments: Mapping[str, Sequence[Environment]],
    contenders: Sequence[Contender],
    declared: Sequence[str] = (),
) -> None:
    """Fill in `differences` and all warnings of `results`. `declared` are further keys that the study says differ."""
    for case in cases(results, samples):
        for finding in catalogue().values():
            seen = case.with_levelled_machines if finding.levelled else case
            if finding.check is not None and seen.evidence >= finding.least:
                case.result.warnings.extend(map(finding.warning, finding.check(seen)))
    # Give the effects of factors the finding that the benchmark sets the metric, where it does so in every cell.
    places = results.study.design.steps if results.study.design else {}
    cells: dict[tuple[str, str], list[MetricResult]] = {}
    for metric in results.metrics if results.effects else ():
        place = places.get(metric.benchmark)
        cells.setdefault((place.family if place else metric.benchmark, metric.metric), []).append(metric)
    for one in results.effects:
        found = cells.get((one.result.benchmark, one.result.metric), [])
        if found and all(metric.by_harness for metric in found):
            one.result.warnings += [warning for warning in found[0].warnings if warning.code == HARNESS]
    for result in (*results.metrics, *(one.result for one in results.effects)):
        withhold(result)
    results.differences = differences(environments, declared_by(contenders, declared))
    results.warnings.extend(findings_of_run(results, samples))


def findings_of_run(results: Results, samples: list[Samples]) -> Iterator[FindingResult]:
    """The findings about the run as a whole; `results` has its `differences`."""
    for finding in catalogue().values():
        if finding.check_run is not None:
            yield from map(finding.warning, finding.check_run(results, samples))
