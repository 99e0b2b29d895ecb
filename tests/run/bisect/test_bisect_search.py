"""The search under noise: on simulated measurements, and its model against a direct calculation."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs
from noisy_commits import SCENES, Simulated, linear

from kduel.core.errors import InputError, NotMeasuredError
from kduel.report.campaigns.page import text
from kduel.run.bisect import posterior
from kduel.run.bisect.history import History
from kduel.run.bisect.noisy import Search
from kduel.run.bisect.outcome import Reading, difference, interval
from kduel.run.bisect.posterior import RATIOS, SCALES, VARIANCES, Model
from kduel.run.bisect.show import MeasurementNotes, as_text, page_of, title
from kduel.run.bisect.terms import SearchSettings, Unmeasurable

QUICK = SearchSettings(confirm=0, negligible=0.001, most=1500)


def log_evidence(
    z: np.ndarray, y: np.ndarray, blocks: np.ndarray, ratio: float, scale: float, variance: float
) -> float:
    """The marginal likelihood, but for a constant, by the whole covariance matrix; scale 0 is no change."""
    same = blocks[:, None] == blocks[None, :]
    whole = np.diag(variance**z) + ratio * same + scale**2 * np.outer(z, z)
    inverse = np.linalg.inv(whole)
    ones = np.ones(len(y))
    level = ones @ inverse @ ones
    rest = y @ inverse @ y - (ones @ inverse @ y) ** 2 / level
    return float(-0.5 * np.linalg.slogdet(whole)[1] - 0.5 * np.log(level) - 0.5 * (len(y) - 1) * np.log(rest))


def test_with_normal_noise_the_posterior_is_that_of_the_whole_covariance_matrix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(posterior, "FREEDOM", 1e9)
    random = np.random.default_rng(5)
    history = linear(6)
    plan = [[0, 6, 3], [6, 2, 0, 3], [4, 0, 6]]
    model = Model(6)
    rows, values, blocks = [], [], []
    for number, block in enumerate(plan):
        own = [history.row((history.good, *history.commits)[place]) for place in block]
        seen = [10 + 2 * (place >= 3) + 3 * number + random.normal() for place in block]
        model = model.with_block(own, seen)
        rows += own
        values += seen
        blocks += [number] * len(block)
    z, y, b = np.array(rows), np.array(values), np.array(blocks)
    # With ratios of 1e3 and more the inverse of the matrix is not exact.
    grid = [(float(ratio), float(variance)) for ratio in RATIOS.ravel() for variance in VARIANCES.ravel()]

    def total(scales: tuple[float, ...]) -> list[float]:
        found = [[log_evidence(z[:, k], y, b, r, s, v) for r, v in grid for s in scales] for k in range(6)]
        return [float(np.logaddexp.reduce(one)) - np.log(len(scales)) for one in found]

    each = total(SCALES)
    both = np.logaddexp.reduce(each)
    found = model.evidence()
    assert found.probability == pytest.approx(np.exp(np.array(each) - both), rel=1e-4)
    assert found.log_bayes == pytest.approx(both - np.logaddexp.reduce(total((0.0,))), rel=1e-4)


def test_one_value_far_off_does_not_move_the_culprit() -> None:
    history = linear(4)
    places = {history.good: 0, **{commit: place for place, commit in enumerate(history.commits, 1)}}
    random = np.random.default_rng(8)
    model = Model(4)
    for block in range(4):
        values = [10 + 3 * (place >= 3) + random.normal(0, 0.5) for place in places.values()]
        if block == 0:
            values[2] += 10
        model = model.with_block([history.row(commit) for commit in places], values)
    assert model.evidence().probability[2] > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES)
def test_the_set_holds_the_culprit(scene: str) -> None:
    runs = [Simulated(24, 2.0, scene, seed, QUICK) for seed in range(12)]
    # 95 % of 12 runs: fewer than 9 would come by chance in fewer than one in 100.
    assert sum(run.holds for run in runs) >= 9
    # A fixed number of boots at each of the five commits, with both ends beside, takes 80 and more at this error.
    assert np.mean([run.measurements for run in runs]) < (70 if scene == "two changes" else 45)


@pytest.mark.slow
def test_one_search_in_twenty_at_most_finds_a_change_that_is_not_there() -> None:
    settings = SearchSettings(confirm=0, negligible=0.5, most=60)
    found = [bool(Simulated(16, 0.0, "steady", seed, settings).outcome.set) for seed in range(40)]
    assert sum(found) <= 5


def test_ends_that_do_not_differ_are_told() -> None:
    run = Simulated(16, 0.0, "steady", 3, SearchSettings(negligible=2.0))
    assert run.outcome.set == []
    assert "differ by less than 2 %" in run.outcome.why
    assert run.outcome.effect is not None and run.outcome.effect.is_within(2.0)


def outcome_of(levels: list[float], spread: float = 0.1, **settings: float) -> tuple[Search, list[str]]:
    history = linear(len(levels) - 1)
    random = np.random.default_rng(1)
    order = [history.good, *history.commits]
    search = Search(
        history,
        "m",
        lambda commit, _: float(levels[order.index(commit)] + random.normal(0, spread)),
        SearchSettings(**settings),  # type: ignore[arg-type]
        lambda _: None,
    )
    return search, order


@pytest.mark.parametrize(
    ("levels", "culprit"),
    [
        ([100.0] * 5 + [110.0] * 4 + [104.0] * 6, 5),  # a step there and part of the way back
        ([100.0] * 5 + [104.0] * 4 + [110.0] * 6, 9),  # two steps, the second one larger
        ([100.0] * 5 + [110.0] * 4 + [100.0] * 6, 5),  # there and back: the ends are alike
    ],
)
def test_two_changes_are_told_with_the_levels_of_the_segments(levels: list[float], culprit: int) -> None:
    search, order = outcome_of(levels)
    found = search.run()
    assert found.set in ([order[culprit]], [order[9]])
    assert any(one.change.is_beyond(2.0) for one in found.segments)
    about = MeasurementNotes(subject="a command", host="this", reproduce="kduel bisect", subjects={})
    first = page_of(found, about).sections[0]
    for said in (as_text(found, about), " ".join(first.sentences)):
        assert "Another change, " in said, "a page answers as the text does"


def test_exact_values_are_found_with_few_measurements_and_confirmed() -> None:
    search, order = outcome_of([100.0] * 9 + [103.0] * 8, spread=0.0)
    found = search.run()
    assert found.set == [order[9]]
    assert found.confirmed is True
    assert found.effect is not None and found.effect.mean == pytest.approx(3.0)
    # Heavy tails and a variance of its own behind the culprit cost measurements where nothing varies.
    assert search.measurement_count < 80
    about = MeasurementNotes(subject="a command", host="this", reproduce="kduel bisect", subjects={})
    sure, doubted = (
        " ".join(as_text(one, about).split()) for one in (found, structs.replace(found, confirmed=False))
    )
    assert "not confirmed" not in sure and ", probably but not confirmed, made m 3 % higher (" in doubted
    assert "did NOT differ clearly" in doubted
    first = page_of(found, about).sections[0]
    assert first.lead.startswith(f"Commit {order[9][:12]} made m 3 % higher"), "which commit, and by how much"
    assert first.lead.endswith("); higher is the bad side of this search."), (
        "no better side is known of what a command prints"
    )
    known = structs.replace(about, what="pipe time (us)", better="lower")
    assert f"Commit {order[9][:12]} made pipe time (us) 3 % higher (" in page_of(found, known).sections[0].lead
    assert page_of(found, known).sections[0].lead.endswith("), which is worse.")
    assert "99" in first.sure[0] and first.command == f"git show {order[9][:12]}", "how sure, what next"
    assert text(page_of(found, about)).count("Next:") <= 1 and "Next" not in first.step, "the page says it"
    many = page_of(structs.replace(found, set=order[7:10], confirmed=False), about).sections[0]
    assert len(many.bullets) == 3 and "--seed" in many.sentences[-1], "more of --confirm may measure nothing more"
    unknown = structs.replace(found, set=[], why="no change was established in 40 measurements")
    for said in (page_of(unknown, about).sections[0].lead, as_text(unknown, about).splitlines()[0], title(unknown)):
        assert "othing found" in said, "not that there is nothing"
    assert unknown.why in page_of(unknown, about).sections[0].lead


def test_a_level_of_zero_has_no_effect_in_per_cent() -> None:
    search, _ = outcome_of([0.0] * 6, spread=0.0)
    found = search.run()
    assert found.set == [] and found.effect is None
    assert search.measurement_count < 20
    search, order = outcome_of([0.0] * 3 + [4.0] * 3, spread=0.0)
    found = search.run()
    assert found.set == [order[3]] and found.effect is None


def test_commits_that_cannot_be_measured_stay_in_the_set() -> None:
    history = linear(10)
    random = np.random.default_rng(2)

    def measure(commit: str, _: int) -> float:
        place = (history.good, *history.commits).index(commit)
        if place in (4, 5, 6):
            raise Unmeasurable("does not build")
        return 100 + 5 * (place >= 5) + float(random.normal(0, 0.2))

    found = Search(history, "m", measure, SearchSettings(), lambda _: None).run()
    assert set(found.set) == set(history.commits[3:7])
    assert found.confirmed is True
    assert {level.commit for level in found.levels if level.status.startswith("skipped")} <= set(history.commits[3:6])


def test_an_end_that_cannot_be_measured_is_an_error_before_anything_else_is_measured() -> None:
    tried: list[str] = []

    def measure(commit: str, _: int) -> float:
        tried.append(commit)
        raise Unmeasurable("the command printed nothing")

    history = linear(30)
    with pytest.raises(NotMeasuredError, match="an end of the search"):
        Search(history, "m", measure, SearchSettings(), lambda _: None).run()
    assert tried in ([history.good], [history.bad])


def merged() -> History:
    """good - a - b - m - c, with a side branch good - x - y that m merges."""
    return History("good", "c", {"a": ["good"], "x": ["good"], "y": ["x"], "b": ["a"], "m": ["b", "y"], "c": ["m"]})


@pytest.mark.parametrize("culprit", ["a", "x", "y", "b", "m", "c"])
def test_a_history_with_merges(culprit: str) -> None:
    history = merged()
    assert not history.linear
    random = np.random.default_rng(3)

    def measure(commit: str, _: int) -> float:
        has = history.row(commit)[history.index[culprit]]
        return float(100 + 4 * has + random.normal(0, 0.3))

    assert Search(history, "m", measure, SearchSettings(), lambda _: None).run().set == [culprit]


def test_a_part_of_a_history_with_merges() -> None:
    part = merged().section("b", "m")
    assert set(part.commits) == {"x", "y", "m"}
    assert part.row("y").tolist() == [1.0, 1.0, 0.0]


def test_a_history_out_of_order_is_refused() -> None:
    with pytest.raises(InputError, match="order"):
        History("good", "b", {"b": ["a"], "a": ["good"]})


def test_differences_are_over_blocks_that_have_both() -> None:
    readings = [Reading("a", 1, 1.0), Reading("b", 1, 2.0), Reading("a", 2, 5.0), Reading("b", 3, 0.0)]
    found = difference(readings, "a", "b")
    assert found is not None and (found.mean, found.low) == (1.0, None)
    assert interval([1.0, 3.0]).is_beyond(0) is False
