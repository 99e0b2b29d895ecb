"""Every finding: noticed where it was planted, with its evidence; silent on the same data without it."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
from flaws import PLANTED
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lint_runs import linted, noise, result_of, said, table

import kduel
from kduel.core.experiment import MachineRecord, TrialStatus
from kduel.core.results import ContenderResult, Results, StudyResult, TrialResult
from kduel.core.samples import LARGEST, SMALLEST, Samples, within_reason
from kduel.judge.lint import examine
from kduel.judge.lint.examine import findings_of_run
from kduel.judge.lint.finding import Cause, catalogue
from kduel.judge.lint.statistics import outlier, t_two_sided
from kduel.judge.verdict.secondary import trimmed_mean, trimmed_t
from kduel.judge.verdict.voids import fisher
from kduel.store.imported.support.names import aspect_of

OLD, NEW = noise(12), noise(12, seed=8)


def test_clean_data_are_left_in_peace() -> None:
    results = linted(table(OLD, NEW))
    assert results.metrics[0].verdict == "equivalent"
    assert results.metrics[0].warnings == [] and results.warnings == []


def test_a_maximum_is_a_hint_and_no_number_of_blocks_decides_it() -> None:
    short = noise(6), noise(6, seed=8)
    hint, other = (linted(table(*short, primary=False, statistic=what)).metrics[0] for what in ("max", "p99"))
    assert other.blocks_more and "would decide it" in other.told
    assert hint.blocks_more is None and "would decide it" not in hint.told
    assert linted(table(*short, statistic="max")).metrics[0].blocks_more, "a study may declare it primary"


class TestFixedByHarness:
    def test_a_declared_limit_is_noticed_within_half_a_per_cent(self) -> None:
        found = said(table(OLD, NEW, fixed_at=1004.0))
        assert "1,004 events/s, which the harness itself sets" in found["fixed-by-harness"]
        assert "fixed-by-harness" not in said(table(OLD, NEW, fixed_at=1006.0))

    @pytest.mark.parametrize(("level", "unit"), [(10.0037, "s"), (10007.0, "ms"), (5.01e6, "us"), (60.1, "s")])
    def test_a_round_time_that_hardly_moves_is_noticed(self, level: float, unit: str) -> None:
        arms = noise(10, level, 0.0004), noise(10, level, 0.002, seed=9)
        assert "fixed-by-harness" in said(table(*arms, unit=unit, better="lower"))

    @pytest.mark.parametrize(
        ("level", "unit", "cv"),
        [(10.3, "s", 0.0004), (10.0, "s", 0.02), (10.0, "events/s", 0.0004), (0.5, "s", 0.0004), (7.0, "s", 0.0004)],
    )
    def test_other_values_are_left_in_peace(self, level: float, unit: str, cv: float) -> None:
        arms = noise(10, level, cv), noise(10, level, cv, seed=9)
        assert "fixed-by-harness" not in said(table(*arms, unit=unit, better="lower"))

    def test_no_number_of_blocks_is_said_to_decide_it(self) -> None:
        """It is not judged; beside that stood: about 5 more blocks would decide it."""
        short = noise(6), noise(6, seed=8)
        (judged,) = linted(table(*short)).metrics
        assert judged.verdict == "undecided" and judged.blocks_more and "would decide it" in judged.told
        (fixed,) = linted(table(*short, fixed_at=1000.0)).metrics
        assert fixed.blocks_more is None
        assert fixed.told.startswith("Not judged, as it is set by the benchmark itself: ")
        assert "ndecided" not in fixed.told and "would decide it" not in fixed.told

    def test_a_limit_in_one_arm_only_is_no_limit(self) -> None:
        assert "fixed-by-harness" not in said(table(noise(10, 10.0, 0.001), noise(10, 10.6, 0.001), unit="s"))


class TestBeyondHistogram:
    def test_trials_whose_value_is_left_out_are_named(self) -> None:
        samples = table([None, *OLD[1:]], [None, None, *NEW[2:]], better="lower", unit="us")
        assert "beyond-histogram" not in said(samples)
        samples.beyond = {"old": [1], "new": [1, 2]}
        found = said(samples)
        assert "In 1 trial of old and 2 trials of new the value lies beyond" in found["beyond-histogram"]
        assert "missing-by-arm" not in found


class TestShape:
    def test_half_equal_values_are_ties(self) -> None:
        assert "6 of 12 values of old are 7" in said(table([7] * 6 + [5, 6, 8, 9, 10, 11], NEW, unit="count"))["ties"]
        assert "ties" not in said(table([7] * 5 + [4, 5, 6, 8, 9, 10, 11], NEW, unit="count"))

    def test_a_step_above_a_tenth_of_the_median_is_coarse(self) -> None:
        coarse = [4, 5, 6, 4, 7, 5, 6, 8, 4, 5]
        assert "steps of 1, 20 % of the median 5" in said(table(coarse, coarse[::-1], unit="count"))["quantised"]
        fine = [value + 20 for value in coarse]
        assert "quantised" not in said(table(fine, fine[::-1], unit="count"))

    def test_sizes_that_never_vary_are_neither(self) -> None:
        found = said(table([1000] * 12, [1001] * 12, unit="B", better="lower"))
        assert not {"ties", "quantised", "two-modes", "drift", "fixed-by-harness"} & set(found)

    def test_times_that_never_vary_are_ties(self) -> None:
        assert "ties" in said(table([0.01] * 12, [0.02] * 12, unit="s", better="lower"))

    def test_a_maximum_is_advised_against(self) -> None:
        assert "99.9th percentile" in said(table(OLD, NEW, statistic="max"))["maximum"]
        assert "maximum" not in said(table(OLD, NEW, statistic="p99"))

    @pytest.mark.parametrize("count", [10, 20, 200])
    def test_two_modes_between_boots_are_noticed(self, count: int) -> None:
        slow = noise(count)
        slow[: count * 3 // 10] *= 1.08
        message = said(table(np.random.default_rng(3).permutation(slow), noise(count, seed=8)))["two-modes"]
        assert f"{count - count * 3 // 10} around" in message and f"{count * 3 // 10} around" in message

    def test_one_outlier_is_no_mode(self) -> None:
        slow = OLD.copy()
        slow[4] *= 1.2
        assert "two-modes" not in said(table(slow, NEW))


class TestTime:
    ramp = np.linspace(0, 1, 12)

    def test_drift_is_noticed_and_what_it_means_depends_on_the_blocks(self) -> None:
        arms = OLD * (1 + 0.03 * self.ramp), NEW * (1 + 0.03 * self.ramp)
        assert "blocks keep it out" in said(table(*arms))["drift"]
        assert "cannot be distinguished" in said(table(*arms, paired=False))["drift"]
        assert "+2" in said(table(*arms))["drift"] or "+3" in said(table(*arms))["drift"]

    def test_a_difference_between_the_arms_is_no_drift(self) -> None:
        assert "drift" not in said(table(OLD, NEW * 1.5))

    def test_the_runs_first_trial_is_noticed(self) -> None:
        samples = table(OLD, NEW)
        first = next(name for name, order in samples.order.items() if order[0] == 0)
        samples.values[first][0] = 900.0
        assert f"900 ({first})" in said(samples)["first-trial"]
        other = table(OLD, NEW)
        other.values["new" if first == "old" else "old"][0] = 900.0
        assert "first-trial" not in said(other), "the second trial is not the first"

    def test_of_arms_measured_apart_the_first_of_each_counts(self) -> None:
        old, new = OLD.copy(), NEW.copy()
        old[0] *= 0.97
        new[0] *= 0.97
        assert "first-trial" in said(table(old, new, paired=False))
        assert "first-trial" not in said(table(OLD, NEW, paired=False))


class TestOneTrial:
    def test_a_flipped_sign_is_noticed(self) -> None:
        new = noise(12, 990, seed=8)
        new[5] = 1300
        message = said(table(OLD, new))["one-trial"]
        assert "block 6" in message and "1,300" in message and "instead of" in message
        assert "trial 6 of new (1,300 events/s)" in said(table(OLD, new, paired=False))["one-trial"]

    def test_a_verdict_that_one_trial_hides_is_noticed(self) -> None:
        new = noise(12, 1030, seed=8)
        new[5] = 700
        message = said(table(OLD, new))["one-trial"]
        assert "the verdict would be faster instead of undecided" in message

    def test_an_equivalence_that_one_trial_hides_is_noticed(self) -> None:
        new = NEW.copy()
        new[5] = 1100
        assert "the verdict would be equivalent instead of undecided" in said(table(OLD, new))["one-trial"]

    def test_an_outlier_that_changes_nothing_is_left_in_peace(self) -> None:
        new = noise(12, 1200, seed=8)
        new[5] = 1300
        assert "one-trial" not in said(table(OLD, new))

    def test_without_an_outlier_a_narrow_decision_is_left_in_peace(self) -> None:
        for shift in np.linspace(1.0, 1.02, 21):
            assert "one-trial" not in said(table(OLD, NEW * shift))


def unrun(samples: Samples) -> Samples:
    """The same run, interrupted before the last block's trial of the second contender."""
    samples.order["new"][-1] = None
    return samples


class TestSize:
    def test_one_trial_and_too_few_are_told(self) -> None:
        assert "n = 1" in said(table([5.0], [6.0]))["single-trial"]
        assert "too-few" not in said(table([5.0], [6.0]))
        for count in (2, 3):
            assert "too few for any verdict" in said(table(OLD[:count], NEW[:count]))["too-few"]
        assert "equivalence takes 10" in said(table(OLD[:6], NEW[:6]))["too-few"]
        assert "too-few" not in said(table(OLD, NEW))

    def test_unequal_numbers_are_told(self) -> None:
        assert "old has 11 values and new 12" in said(table([*OLD[:11], None], NEW))["unequal-n"]

    def test_a_trial_that_was_not_carried_out_yet_is_no_missing_result(self) -> None:
        """The run was interrupted between two trials of a block: nothing of the other contender is lost."""
        samples = table(OLD, [*NEW[:11], None])
        assert samples.order["new"][-1] is not None
        assert "unequal-n" in said(samples)
        unrun(samples)
        assert not {"unequal-n", "missing-by-arm"} & said(samples).keys()
        assert (
            "old has 11 values and new 10"
            in said(unrun(table([*OLD[:11], 1.0], [*NEW[:10], None, None])))["unequal-n"]
        )

    def test_missing_values_of_one_contender_are_a_finding(self) -> None:
        missing = [*OLD[:10], None, None]
        found = said(table(missing, NEW))
        assert "0 of 12 valid trials of new gave no value, and 2 of 12 of old" in found["missing-by-arm"]
        assert "unequal-n" not in found, "one cause, told once"
        assert "missing-by-arm" not in said(table(missing, [*NEW[:11], None]))

    def test_values_that_void_trials_did_not_give_are_told_of_the_run(self) -> None:
        samples = table([*OLD[:10], None, None], NEW)
        trials = [
            TrialResult(id=f"{name}{n}", block=n, position=n, contender=name, status="void" if void else "ok")
            for name in ("old", "new")
            for n in range(1, 13)
            for void in [name == "old" and n > 10]
        ]
        results = linted(samples, trials=trials)
        assert [w.code for w in results.warnings] == ["crashes"]
        assert [w.code for w in results.metrics[0].warnings] == ["unequal-n"]


class TestHeadline:
    def test_an_interval_wider_than_the_effect_is_told(self) -> None:
        wild = noise(12, 1050, 0.12), noise(12, 1000, 0.12, seed=8)
        assert "Not even its direction" in said(table(*wild, paired=False))["unreliable"]
        assert "unreliable" not in said(table(*wild)), "a run's own report never shows an effect without its interval"
        assert "unreliable" not in said(table(*wild, paired=False, primary=False)), "nobody makes a headline of it"
        assert "unreliable" not in said(table(OLD, NEW * 1.1, paired=False)), "the interval is narrow"
        assert "unreliable" not in said(table(OLD, NEW, paired=False)), "there is no effect to quote"

    @pytest.mark.parametrize(
        ("benchmark", "metric", "unit", "level", "noticed"),
        [
            ("sysbench-fileio", "throughput", "MiB/s", 25023, True),
            ("fio-seqread", "bandwidth", "GB/s", 21.0, True),
            ("page-cache-read", "read", "MiB/s", 25023, True),
            ("sysbench-fileio", "throughput", "MiB/s", 7272, False),
            ("sysbench-memory-read-1t", "throughput", "MiB/s", 25023, False),
            ("sysbench-memory", "throughput", "MiB/s", 25023, False),
            ("fileio", "throughput", "ops/s", 25023e6, False),
        ],
    )
    def test_storage_faster_than_any_drive_is_memory(
        self, benchmark: str, metric: str, unit: str, level: float, noticed: bool
    ) -> None:
        """The aspects are those that an import without a column for them gives these names."""
        aspect = aspect_of(benchmark, metric)
        found = said(table(noise(10, level), noise(10, level, seed=8), unit=unit, benchmark=benchmark, aspect=aspect))
        assert ("page-cache" in found) is noticed


def test_exact_numbers_know_no_chance() -> None:
    results = linted(table([100.0], [101.0], statistic="max"), exact=True)
    assert {w.code for w in results.metrics[0].warnings} == {"maximum"}


class TestConduct:
    def run(self, statuses: dict[str, list[TrialStatus]]) -> Results:
        trials = [
            TrialResult(id=f"{name}{n}", block=n, position=n, contender=name, status=status)
            for name, each in statuses.items()
            for n, status in enumerate(each)
        ]
        contenders = [ContenderResult(name=name, kernel=name) for name in statuses]
        return Results(
            study=StudyResult(edition=2), machine=MachineRecord(), contenders=contenders, trials=trials, metrics=[]
        )

    def test_a_contender_that_crashes_more_often_is_a_finding(self) -> None:
        (found,) = findings_of_run(self.run({"old": ["ok"] * 10, "new": ["void"] * 5 + ["ok"] * 5}), [])
        assert "5 of 10 trials of new are void, and 0 of 10 of old" in found.message and "0.033" in found.message
        (found,) = findings_of_run(self.run({"old": ["ok"] * 10, "new": ["void"] * 2 + ["ok"] * 8}), [])
        assert "all of one contender" in found.message, (
            "the slowest fifth of twenty boots is too few for Fisher's test"
        )
        assert not list(findings_of_run(self.run({"old": ["ok"] * 10, "new": ["void"] + ["ok"] * 9}), []))
        assert not list(
            findings_of_run(self.run({"old": ["void"] + ["ok"] * 9, "new": ["void"] * 4 + ["ok"] * 6}), [])
        )
        assert not list(
            findings_of_run(self.run({"old": ["void"] * 5 + ["ok"] * 5, "new": ["void"] * 5 + ["ok"] * 5}), [])
        )
        assert not list(findings_of_run(self.run({}), []))

    def test_arms_one_after_the_other_are_told(self) -> None:
        samples = table(OLD, NEW)
        assert not list(findings_of_run(self.run({}), [samples]))
        samples.order = {"old": list(range(12)), "new": list(range(12, 24))}
        (found,) = findings_of_run(self.run({}), [samples])
        assert "All trials of old (up to number 12) preceded all of new (from number 13)" in found.message
        samples.order = {"old": list(range(12, 24)), "new": list(range(12))}
        (found,) = findings_of_run(self.run({}), [samples])
        assert "All trials of new" in found.message

    def test_imported_runs_say_so(self) -> None:
        results = linted(table(OLD, NEW, paired=False), imported=True)
        assert [w.code for w in results.warnings] == ["not-interleaved"]
        assert results.warnings[0].message.startswith("Imported")


class TestChance:
    def test_against_scipy(self) -> None:
        from scipy.stats import fisher_exact, t

        for statistic, freedom in ((0.0, 3), (2.2, 7.5), (-4.0, 20)):
            assert t_two_sided(statistic, freedom) == pytest.approx(2 * t.sf(abs(statistic), freedom))
        for a, n, b, m in ((0, 10, 5, 10), (3, 7, 4, 30), (0, 5, 0, 5), (5, 5, 0, 5), (1, 200, 9, 100)):
            expected = fisher_exact([[a, n - a], [b, m - b]]).pvalue
            assert fisher(a, n, b, m) == pytest.approx(expected)

    def test_the_outlier_of_a_sample(self) -> None:
        values = np.array([0.0] * 9 + [1.0]) + np.linspace(-0.01, 0.01, 10)
        assert outlier(values)[0] == 9 and outlier(values)[1] < 1e-5
        # Grubbs' table: the two-sided critical value at .05 for ten values is 2.290, in heavy tails that is nothing.
        base = noise(9, 0.0 + 100, 0.01)
        low, high = 100.0, 110.0
        for _ in range(60):
            middle = (low + high) / 2
            both = np.append(base, middle)
            inside = (middle - both.mean()) / both.std(ddof=1) < 2.290
            low, high = (middle, high) if inside else (low, middle)
        assert outlier(np.append(base, low))[1] > 0.05
        far = np.abs(np.append(base, low) - np.median(np.append(base, low)))
        assert outlier(np.append(base, low))[1] == pytest.approx((np.sort(far)[-2] / far.max()) ** 3)
        assert outlier(np.ones(5))[1] == 1.0 and outlier(np.array([1.0, 2.0]))[1] == 1.0


VALUES = st.lists(
    st.none()
    | st.integers(-3, 3)
    | st.floats(-1e150, 1e150, allow_nan=False).filter(within_reason)
    | st.floats(99, 101)
    | st.sampled_from([SMALLEST, LARGEST]),
    min_size=1,
    max_size=14,
)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@settings(max_examples=200, deadline=None)
@given(old=VALUES, new=VALUES, paired=st.booleans(), unit=st.sampled_from(["s", "B", "MiB/s"]))
@example(
    old=[None] * 7 + [0],
    new=[None, None, 0, 0, 0, 18698413372202.0, 18698413716766.0, 2e-150],
    paired=False,
    unit="s",
)
@example(old=[0.0] * 5, new=[0.0, 0.0, 0.0, 0.0, 1e-150], paired=False, unit="s")
def test_whatever_was_measured_is_examined_without_falling_over(
    old: list[float | None], new: list[float | None], paired: bool, unit: str
) -> None:
    count = min(len(old), len(new))
    samples = table(old[:count], new[:count], paired=paired, unit=unit, benchmark="fileio")
    results = Results(
        study=StudyResult(edition=2), machine=MachineRecord(), contenders=[], trials=[], metrics=[result_of(samples)]
    )
    examine(results, [samples], {}, [])
    for warning in results.metrics[0].warnings:
        assert "nan" not in warning.message and "inf" not in warning.message.replace("interval", "")


def test_names_that_read_alike_are_two_metrics() -> None:
    """`a/b` + `c` and `a` + `b/c` shared one table, so that the second had the first one's findings."""
    tied = [500.0] * 10 + [501.0, 502.0]
    tables = [table(tied, tied, benchmark="a/b"), table(OLD, NEW, benchmark="a")]
    for samples, name in zip(tables, ("c", "b/c"), strict=True):
        samples.metric = msgspec.structs.replace(samples.metric, name=name)
    first, second = linted(*tables).metrics
    assert "ties" in {warning.code for warning in first.warnings}
    assert second.warnings == []


def test_each_finding_is_a_file_that_says_all_of_it() -> None:
    folder = Path(kduel.__file__).parent / "judge/lint/findings"
    files = {path.stem.replace("_", "-") for path in folder.glob("*.py")} - {"--init--"}
    assert files == catalogue().keys()
    for finding in catalogue().values():
        assert 1 <= finding.weight <= 100 and finding.meaning.endswith(".") and finding.remedy.endswith(".")
        assert finding.cause in list(Cause) or sum(one.cause == finding.cause for one in catalogue().values()) == 1
    source = "".join(path.read_text() for path in Path(kduel.__file__).parent.rglob("*.py"))
    assert not re.findall(r"FindingResult\(\s*code=\"", source), "a finding is raised by its plug-in"


def test_each_finding_that_chance_can_raise_has_a_planted_flaw() -> None:
    """A file that was forgotten left the finding's rate of detection and of false alarms uncounted."""
    of_merged_runs = {"machines-differ", "machines-disagree", "machines-vary"}  # test_strata.py
    of_a_known_limit = {"fixed-by-harness"}
    uncounted = {name for name, finding in catalogue().items() if finding.chance} - PLANTED.keys()
    assert uncounted == of_merged_runs | of_a_known_limit


class TestSecondaryTests:
    """Told when they would have said otherwise; the verdict stays what it is."""

    def test_outliers_that_hide_a_difference(self) -> None:
        new = noise(20, 1015, seed=8)
        new[2] = 400
        old = noise(20)
        message = said(table(old, new))["robust-disagrees"]
        assert "would have found a difference, +1.5" in message and "3" in message
        assert result_of(table(old, new)).verdict == "undecided"

    def test_the_arithmetic_mean_under_unequal_spread(self) -> None:
        wild = np.random.default_rng(4).normal(size=100)
        new = 1000 * np.exp(0.8 * (wild - wild.mean()) / wild.std() - 0.32)
        old = noise(100, 1000, 0.02)
        found = said(table(old, new))
        assert "unequal-spread" in found
        assert "geometric means (−2" in found["means-disagree"] and "arithmetic means" in found["means-disagree"]

    def test_the_trimmed_mean_and_its_test(self) -> None:
        from scipy.stats import t as student
        from scipy.stats import trim_mean, ttest_ind

        values = np.random.default_rng(2).standard_t(3, 17) + 0.5
        assert trimmed_mean(values) == pytest.approx(trim_mean(values, 0.2))
        # Against its mirror image the difference is twice the mean, its error the square root of two times the error.
        statistic = ttest_ind(values, -values, equal_var=False, trim=0.2).statistic / np.sqrt(2)
        assert trimmed_t(values) == pytest.approx(2 * student.sf(abs(statistic), 17 - 2 * 3 - 1))
        assert trimmed_t(np.ones(6)) == 0.0
        assert trimmed_t(np.zeros(6)) == 1.0
        assert trimmed_t(np.array([1.0, 2.0, 3.0])) is None


class TestSpreadsOfTwoValues:
    @pytest.mark.parametrize(("low", "step", "shift"), [(100, 0.01, 1), (10, 1, 10), (1000, 1, 7), (50, 1, 51)])
    @pytest.mark.parametrize("paired", [True, False])
    def test_two_values_in_turn_give_no_test(self, low: float, step: float, shift: float, paired: bool) -> None:
        """Every value is as far from the median as any other: there is no noise to hold a difference against."""
        old, new = ([round(level + step * (n % 2), 3) for n in range(20)] for level in (low, low + shift))
        assert "unequal-spread" not in said(table(old, new, paired=paired, better="lower"))

    def test_a_ratio_of_one_is_no_finding_however_sure(self) -> None:
        old, new = noise(6000), noise(6000, cv=0.0052, seed=8)
        assert "unequal-spread" not in said(table(old, new, paired=False))
        wider = noise(6000, cv=0.006, seed=8)
        assert "1.2 times as much" in said(table(old, wider, paired=False))["unequal-spread"]
