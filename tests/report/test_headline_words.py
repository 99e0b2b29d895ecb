"""Sentences beside verdicts that hold nothing back and promise nothing: how many are undecided or not judged, what more blocks
would do, and what repeats."""

from __future__ import annotations

import re

from examples import rough, simulated
from pages import ROOT
from verdict_tables import table

from kduel.analysis.matrix import shape
from kduel.benchmarks.kload import PLUGIN as KLOAD
from kduel.core.experiment import RESOLUTION
from kduel.core.metric_results import HARNESS, FindingResult, MetricResult, Verdict
from kduel.core.results import ContenderResult
from kduel.judge.evaluate import judge_path
from kduel.judge.verdict.headline import headline, headline_of
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import Rule
from kduel.report import report_format
from kduel.report.content.caveats import caveats
from kduel.report.content.digest import digest
from kduel.report.page.matrix import matrix_part


def metric(verdict: Verdict, name: str, *, small: bool = False, harness: bool = False) -> MetricResult:
    made = rough("bench", name, "u", "higher", {"a": [1.0, 1.1], "b": [1.0, 1.2]}, baseline="a", contender="b")
    made.verdict, made.below_delta = verdict, small
    made.warnings = [FindingResult(code=HARNESS, message="set")] if harness else []
    return made


def test_a_difference_too_small_to_matter_hides_no_undecided_metric() -> None:
    one = metric("faster", "m0", small=True)
    said = headline([one, *(metric("undecided", f"m{n}") for n in range(1, 7))], "a", "b", "primary metric", 1.0)
    assert (
        said
        == "No difference that matters shown between b and a: too small to matter in 1 of 7 primary metrics, undecided in 6"
    )


def test_a_count_of_metrics_says_which_are_not_judged() -> None:
    results = simulated(metrics=0)
    results.contenders = [ContenderResult(name=name, kernel=name) for name in "ab"]
    results.metrics = [metric("slower", "m0"), metric("undecided", "m1"), metric("undecided", "m2", harness=True)]
    said = headline_of(results, "a", "b")
    assert said == "b is slower than a in 1 of 2 primary metrics (1 more set by the benchmark)"


def test_equal_rates_over_time_are_not_exactly_equal() -> None:
    for unit in ("fps", "MB/s", "s"):
        samples = table([5.0] * 12, [5.0] * 12, unit=unit)
        (found,) = judge([samples], Rule.of_edition(2, max_blocks=12))
        assert found.verdict == "undecided", unit
    (found,) = judge([table([5.0] * 12, [5.0] * 12, unit="modules")], Rule.of_edition(2, max_blocks=12))
    assert found.verdict == "equal"


def test_what_the_clock_does_not_resolve_is_not_exactly_equal() -> None:
    """45.604 us against 45.776 us on exact CPUs that resolve 40 us."""
    made = [table([45.604], [after], unit="us", counted=True) for after in (45.776, 45.604)]
    for number, one in enumerate(made):
        one.benchmark, one.resolution = f"wakeup-{number}", 40.0
    results = simulated(metrics=0)
    results.machine.exact, results.machine.facts[RESOLUTION] = True, 40_000
    results.contenders = [ContenderResult(name=name, kernel=name) for name in made[0].values]
    results.metrics = judge(made, Rule.of_edition(2))
    (said,) = digest(results).comparisons
    assert [line.partition("/")[0] for line in said.can] == [
        "Exactly equal: wakeup-1", "Equal within the machine's resolution: wakeup-0"
    ]  # fmt: skip
    (real,) = (line for line in said.cannot if line.startswith("How long it takes on a real processor"))
    assert "virtual" in real and "instructions are counted" not in real


def test_the_wall_time_of_a_load_is_no_maximum_of_samples() -> None:
    (wall,) = (one for one in KLOAD.metrics(KLOAD.Parameters()) if one.name == "wall")
    assert wall.statistic == "value"


def test_too_few_values_for_a_verdict_promise_none() -> None:
    samples = table([10.0, 10.1, 10.05], [11.0, 11.2, 11.1])
    (found,) = judge([samples], Rule.of_edition(2, max_blocks=20))
    assert found.told.startswith("Too early: 3 values") and "would decide" not in found.told


def test_an_import_has_trials_and_no_boots() -> None:
    results = judge_path(ROOT / "studies/published/generations.csv")
    for name in ("text", "markdown", "summary", "mail", "html", "latex"):
        assert not re.search(r"\bof\s+boots\b", report_format(name).render(results)), name


def test_means_that_say_another_size_than_the_change_are_named() -> None:
    results = simulated(metrics=1)
    (one,) = results.metrics
    one.effect_pct, one.ci_low_pct, one.ci_high_pct = 2.0, -10.0, 15.0
    one.baseline_mean, one.mean = 416.0, 445.0
    assert any("geometric" in said and "+6.97 %" in said for said in caveats(results))
    one.mean = 416.0 * 1.021
    assert not any("geometric" in said for said in caveats(results))


def test_a_matrix_has_the_runs_own_verdicts() -> None:
    results = judge_path(ROOT / "studies/published/policies.csv")
    found = shape(results)
    assert found is not None and not found.apart and len(found.judged) == len(results.metrics) == 108
    own = {(m.contender, m.benchmark, m.metric): m.verdict for m in results.metrics}
    for one in found.judged:
        assert one.result.verdict == own[one.pair.contender, one.place.label, one.result.metric]
    part = matrix_part(results)
    assert part is not None and "hints" not in part.sure
    results.metrics[0].role = "exploratory"
    part, hints = matrix_part(results), "Verdicts on metrics that are not primary are hints"
    assert part is not None and hints in part.sure and hints in report_format("matrix").render(results)
    results.metrics.pop()
    part, found = matrix_part(results), shape(results)
    assert found is not None and found.apart and len(found.judged) == 108, "judged anew where the run lacks one"
    assert part is not None and part.exploratory and "false discovery" in part.sure
