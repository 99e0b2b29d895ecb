"""Fits over a factor whose levels are numbers: exponents, their words, and the page's curve."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from factor_runs import COMMAND, HEAD, JOB, KERNELS, make_factor_run

from kduel.judge.evaluate import judge_run
from kduel.report.content.closing import closing
from kduel.report.content.digest import digest
from kduel.report.content.factors import factor_groups
from kduel.report.content.fits import fits
from kduel.report.page.factors import factors_part

CPUS = """
[[factor]]
name = "machine.cpus"
levels = [2, 4, 8]
"""


def time_of(levels: dict[str, str], draw: np.random.Generator) -> float:
    """An old kernel that scales to all CPUs, and a new one that has no use for the last four."""
    cpus = int(levels["cpus"])
    used = min(cpus, 4) if levels.get("kernel") == "installed-new" else cpus
    return 80 / used * float(np.exp(0.01 * draw.standard_normal()))


def test_each_kernel_has_its_exponent_and_its_curve(tmp_path: Path) -> None:
    results = judge_run(make_factor_run(tmp_path / "run", HEAD + KERNELS + CPUS + JOB + COMMAND, time_of))
    (group,) = factor_groups(results)
    old, new = group.fits
    assert (old.factor, old.at, new.at) == ("cpus", {"kernel": "installed-old"}, {"kernel": "installed-new"})
    assert old.grown.exponent == pytest.approx(-1, abs=0.02) and old.grown.low < -1 < old.grown.high
    assert new.grown.exponent == pytest.approx(-0.5, abs=0.02)
    assert new.sentence.startswith("installed-new: time falls as cpus^−0.50 [−0.5") and new.sentence in group.told
    assert "−0.00" not in "".join(group.told)
    assert new.grown.steps == pytest.approx([-1, 0], abs=0.03) and " from 4 to 8; " in new.sentence
    curve = old.curve_points()
    assert curve[0] == pytest.approx((2, 40), rel=0.02) and curve[-1] == pytest.approx((8, 10), rel=0.02)
    part = factors_part(results)
    assert part is not None and len(part.pictures) == 1 and str(part.pictures[0]).count("stroke-dasharray") == 2


def test_cpus_alone_are_drawn_too(tmp_path: Path) -> None:
    text = HEAD + '[[contender]]\nkernel = "installed:old"\n' + CPUS + JOB + COMMAND
    results = judge_run(make_factor_run(tmp_path / "run", text, time_of))
    part = factors_part(results)
    assert part is not None and part.groups[0].group.told[0].startswith("time falls as cpus^−1.0")
    assert len(part.pictures) == 1 and "stroke-dasharray" in str(part.pictures[0])
    screen = ["".join(words for words, _ in line) for line in closing(results, "RUN", 100, 24)]
    (begun,) = [number for number, line in enumerate(screen) if line.startswith("Fit: time falls as cpus^−1.0")]
    assert "−1 is half with twice as many)" in " ".join(map(str.strip, screen[begun:])) and len(screen) <= 24


def test_nothing_is_fitted_to_two_levels_to_names_or_to_what_is_not_positive() -> None:
    def cells(*levels: str, value: float | None = 1.0):
        return [({"cpus": level}, [value, 1.0, 1.0]) for level in levels]

    assert fits("time", cells("1", "2", "4"), varies=True)
    assert not fits("time", cells("1", "2"), varies=True)
    assert not fits("time", cells("one", "two", "four"), varies=True)
    assert not fits("time", cells("0", "2", "4"), varies=True)
    assert not fits("time", cells("1", "2", "4", value=None), varies=True)
    assert fits("time", cells("1", "2", "4", value=None), varies=False)
    assert not fits("time", cells("1", "2", "4", value=-1.0)[:3], varies=True)


def test_what_neither_grows_nor_falls_is_not_said_to(tmp_path: Path) -> None:
    def steady(_levels: dict[str, str], draw: np.random.Generator) -> float:
        return 80 * float(np.exp(0.01 * draw.standard_normal()))

    text = HEAD + '[[contender]]\nkernel = "installed:old"\n' + CPUS + JOB + COMMAND
    results = judge_run(make_factor_run(tmp_path / "run", text, steady))
    (fit,), (said,) = factor_groups(results)[0].fits, digest(results).comparisons
    assert f"{fit.sentence}." in said.cannot and f"{fit.sentence}." not in said.can
    assert fit.grown.low < 0 < fit.grown.high
    assert fit.sentence.startswith("time may not change; it goes as cpus^") and "twice as many" not in fit.sentence
