"""Claims about a commit: other kernels decide nothing, and what a metric leaves out is not contradicted."""

from __future__ import annotations

from pathlib import Path

import pytest

from kduel.analysis.campaigns.claims import Claim, judge_claims
from kduel.analysis.campaigns.columns import Column, columns
from kduel.store.imported import Source, bring_in

BEFORE, AFTER = "1" * 40, "2" * 40


def two_columns(place: Path, factor: float) -> list[Column]:
    values = [5000.0 + step for step in (3, 8, -2, 5, -7, 1, -4, 6, -1, 2)]
    lines = [f"{BEFORE[:10]},{n},pipe,time,ns,lower,{v}\n" for n, v in enumerate(values, 1)]
    lines += [f"{AFTER[:10]},{n},pipe,time,ns,lower,{v * factor}\n" for n, v in enumerate(reversed(values), 1)]
    (place / "a.csv").write_text("contender,trial,benchmark,metric,unit,better,value\n" + "".join(lines))
    bring_in([Source(place / "a.csv")], place / "run")
    return columns([str(place / "run")])


def claim(**more: object) -> Claim:
    return Claim(says="slower", metric="pipe/time", before=BEFORE[:10], after=AFTER[:10], side="higher", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("commits", "standing"),
    [
        ([BEFORE, AFTER], "contradicted"),
        ([BEFORE[:16], AFTER[:12]], "contradicted"),
        ([f"{AFTER}~1", AFTER], "not testable"),
        (["3" * 40, AFTER], "not testable"),
        ([BEFORE, "3" * 40], "not testable"),
    ],
)
def test_other_kernels_say_nothing_about_a_commit(commits: list[str], standing: str, tmp_path: Path) -> None:
    (judged,) = judge_claims([claim(commits=commits)], two_columns(tmp_path, 0.9), delta=1.0)
    assert judged.standing == standing
    assert ("Nothing follows about the commit" in judged.reasons[0]) == (standing == "not testable")
    assert judged.change_pct == pytest.approx(-10, abs=0.2)
    assert not any("own figures" in reason for reason in judged.reasons)


@pytest.mark.parametrize(
    ("built", "standing"), [(AFTER, "contradicted"), ("", "not testable"), ("3" * 40, "not testable")]
)
def test_a_measured_kernel_is_the_commit_that_it_was_built_from(built: str, standing: str, tmp_path: Path) -> None:
    """Its name says nothing: that is the user's choice."""
    before, after = two_columns(tmp_path, 0.9)
    before.commit, before.revision, after.commit = BEFORE, f"{AFTER[:12]}^", built
    (judged,) = judge_claims([claim(commits=[f"{AFTER}~1", AFTER])], [before, after], delta=1.0)
    assert judged.standing == standing


@pytest.mark.parametrize(
    ("revision", "standing"),
    [
        *((f"{AFTER[:12]}{end}", "contradicted") for end in ("~1", "^", "~", "^1")),
        *((name, "not testable") for name in ("old", "3" * 40, AFTER, f"{AFTER}~2", f"{AFTER}^2", f"{BEFORE}~1", "")),
    ],
)
def test_only_a_kernel_that_is_called_so_is_the_commit_before(revision: str, standing: str, tmp_path: Path) -> None:
    before, after = two_columns(tmp_path, 0.9)
    before.commit, before.revision = "4" * 40, revision
    (judged,) = judge_claims([claim(commits=[f"{AFTER}~1", AFTER])], [before, after], delta=1.0)
    assert judged.standing == standing


@pytest.mark.parametrize(("factor", "standing"), [(0.9, "not testable"), (1.0, "not testable"), (1.1, "supported")])
def test_what_a_metric_leaves_out_is_not_contradicted(factor: float, standing: str, tmp_path: Path) -> None:
    (judged,) = judge_claims([claim(leaves_out="No waiting.")], two_columns(tmp_path, factor), delta=1.0)
    assert judged.standing == standing and judged.reasons[-1] == "No waiting."
