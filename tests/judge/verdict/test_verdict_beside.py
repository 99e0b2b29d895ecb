"""The statistics beside a verdict, against scipy.stats (which the program itself never imports)."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from kduel.judge.verdict import secondary as beside

SIZES = [6, 10, 14, 15, 20, 49, 51, 200]


def arms(size: int, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng([seed, size])
    return 100 + generator.normal(0, 2, size), 100.8 + generator.standard_t(3, size)


def tied(size: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(size)
    return generator.integers(1, 5, size).astype(float), generator.integers(1, 7, size).astype(float)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("made", [arms, tied])
def test_t_tests(size: int, made: object) -> None:
    before, after = made(size)  # type: ignore[operator]
    assert beside.paired_t(after - before) == pytest.approx(stats.ttest_rel(after, before).pvalue, rel=1e-9)
    assert beside.welch(before, after) == pytest.approx(
        stats.ttest_ind(before, after, equal_var=False).pvalue, rel=1e-9
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("made", [arms, tied])
def test_brown_forsythe(size: int, made: object) -> None:
    before, after = made(size)  # type: ignore[operator]
    expected = stats.levene(before, after, center="median").pvalue
    assert beside.brown_forsythe(before, after) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("size", SIZES)
def test_wilcoxon(size: int) -> None:
    before, after = arms(size)
    method = "exact" if size <= 50 else "asymptotic"
    expected = stats.wilcoxon(after - before, method=method, correction=False).pvalue
    assert beside.wilcoxon(after - before) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("size", [5, 8, 11])
def test_wilcoxon_with_ties_and_zeros_is_the_permutation_test_of_the_ranks(size: int) -> None:
    before, after = tied(size)
    gaps = (after - before)[after != before]
    ranks = stats.rankdata(np.abs(gaps))
    signs = 1 - 2 * ((np.arange(2**gaps.size)[:, None] >> np.arange(gaps.size)) & 1)
    observed = abs((np.sign(gaps) * ranks).sum())
    assert beside.wilcoxon(after - before) == pytest.approx(
        np.mean(np.abs(signs @ ranks) >= observed - 1e-9), rel=1e-9
    )


@pytest.mark.parametrize("size", SIZES)
def test_mann_whitney(size: int) -> None:
    before, after = arms(size)
    method = "exact" if 2 * size <= beside.RANKS_EXACT_UP_TO else "asymptotic"
    assert beside.mann_whitney(before, after) == pytest.approx(
        stats.mannwhitneyu(before, after, method=method).pvalue, rel=1e-9
    )


def test_mann_whitney_with_ties() -> None:
    before, after = tied(200)
    expected = stats.mannwhitneyu(before, after, method="asymptotic").pvalue
    assert beside.mann_whitney(before, after) == pytest.approx(expected, rel=1e-9)
    before, after = tied(9)
    generator = np.random.default_rng(1)
    ranks = stats.rankdata(np.concatenate([before, after]))
    sums = np.array([generator.permutation(ranks)[:9].sum() for _ in range(20_000)])
    expected = np.mean(np.abs(sums - 9 * 9.5) >= abs(ranks[9:].sum() - 9 * 9.5) - 1e-9)
    assert beside.mann_whitney(before, after) == pytest.approx(expected, abs=0.015)


@pytest.mark.parametrize("size", [2, 5, 6, 10, 14, 20, 200, 300])
def test_sign_flips(size: int) -> None:
    before, after = arms(size)
    gaps = after - before
    p = beside.sign_flips(gaps)
    if size <= 14:
        exact = stats.permutation_test((gaps,), np.mean, permutation_type="samples", n_resamples=np.inf).pvalue
        assert p == pytest.approx(exact, abs=1e-9)
        assert p is not None and p >= 2 ** (1 - size)
    else:
        # With so many pairs the permutation test and t agree; 9,999 random signs have an error of .005 at most.
        assert p == pytest.approx(beside.paired_t(gaps), abs=0.02)
    assert p == beside.sign_flips(gaps), "the same always"


def test_metrics_of_as_many_pairs_share_their_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    made, generator = [], np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda seed: made.append(seed) or generator(seed))
    for _ in range(3):
        beside.sign_flips(np.arange(23.0))
    assert len(made) == 1


def test_five_pairs_cannot_reach_five_per_cent() -> None:
    assert beside.sign_flips(np.array([1.0, 2, 3, 4, 5])) == pytest.approx(2 / 32)
    assert beside.sign_flips(np.array([1.0, 2, 3, 4, 5, 6])) == pytest.approx(2 / 64)


def test_cliffs_delta_is_mann_whitneys_u() -> None:
    for size in SIZES:
        before, after = tied(size)
        u = stats.mannwhitneyu(after, before).statistic
        assert beside.cliffs_delta(before, after) == pytest.approx(2 * u / size**2 - 1)


@pytest.mark.parametrize("size", [101, 150, 400])
def test_hodges_lehmann_by_halving_is_the_same(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for gaps in (arms(size)[0] - 100, np.subtract(*tied(size))):
        halved = beside.hodges_lehmann(gaps)
        with monkeypatch.context() as patch:
            patch.setattr(beside, "WALSH_MEANS_UP_TO", size)
            assert halved == pytest.approx(beside.hodges_lehmann(gaps), abs=1e-12)


@pytest.mark.parametrize(("size", "cut"), [(6, 0), (8, 3), (10, 8), (20, 52)])
def test_hodges_lehmann_interval_has_the_tables_rank(size: int, cut: int) -> None:
    """Critical values of the signed-rank test at .05, two-sided, as printed in any table: 0, 3, 8, 52."""
    assert beside.signed_rank_cut(size, 0.05) == cut
    gaps = arms(size)[0] - 100
    means = np.sort([(gaps[i] + gaps[j]) / 2 for i in range(size) for j in range(i, size)])
    middle, low, high = beside.hodges_lehmann(gaps) or (0, 0, 0)
    assert middle == pytest.approx(np.median(means))
    assert (low, high) == pytest.approx((means[cut], means[-1 - cut]))


def test_hodges_lehmann_intervals_hold_the_truth() -> None:
    generator = np.random.default_rng(5)
    for size in (6, 10, 60):
        held = 0
        for _ in range(1000):
            _, low, high = beside.hodges_lehmann(generator.standard_t(3, size)) or (0, 0, 0)
            held += low is not None and high is not None and low <= 0 <= high
        assert held / 1000 == pytest.approx(0.96, abs=0.022)


def test_too_few_values_have_no_statistics() -> None:
    one, none = np.array([1.0]), np.array([])
    assert (
        beside.paired_t(one) is beside.sign_flips(one) is beside.wilcoxon(one) is beside.hodges_lehmann(one) is None
    )
    assert beside.welch(one, one) is beside.mann_whitney(one, one) is beside.brown_forsythe(one, one) is None
    assert beside.cliffs_delta(none, one) is None
    assert beside.hodges_lehmann(np.arange(5.0)) == (2.0, None, None)


@pytest.mark.slow
def test_judging_does_not_import_scipy_stats() -> None:
    code = (
        "import sys; sys.path.insert(0, 'src'); import kduel.judge.verdict.judge, kduel.judge.verdict.calibrate, "
        "kduel.judge.verdict.sample_size, kduel.judge.verdict.interim; assert 'scipy.stats' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    code = (
        "import sys; sys.path.insert(0, 'src'); import kduel.cli.calibrate, kduel.cli.plan, kduel.judge.verdict.rule, "
        "kduel.judge.verdict.interim; assert not {'numpy', 'scipy', 'vl_convert'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_welch_has_no_unit() -> None:
    """Squares of squares of tiny values are 0 in floating point."""
    before, after = np.array([0.0, 0.0]), np.array([0.0, 1.0])
    for unit in (2.0**-445, 2.0**300):
        assert beside.welch(before * unit, after * unit) == beside.welch(before, after)
