"""Contenders of which one got more of the host's time for a second of its clock."""

import math
from collections.abc import Iterator

import numpy as np

from kduel.core.evidence import Evidence
from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Cause, Finding
from kduel.judge.lint.statistics import t_two_sided
from kduel.judge.lint.turns import shared_slices

FEWEST = 4
"""Blocks."""
PART = 10
"""Of delta, what the shares may differ by: the value differs by as much, which then is small beside what matters."""


def share_unequal(case: Case) -> Iterator[str]:
    """By block, the host's running time for a second of the guest's clock: both contenders' logarithms differ by more than a
    tenth of delta, and by more than chance explains (one-sample t test). A guest's clock has steps of 10 ms."""
    sums: dict[int, list[list[float]]] = {}
    for one in shared_slices(case):
        for arm, turns in enumerate(one.turns):
            sums.setdefault(one.block, [[], []])[arm].append(shares_log(turns.running_seconds, turns.guest_seconds))
    logs = np.array([[np.mean(arm) for arm in arms] for arms in sums.values()]).reshape(-1, 2)
    logs = logs[np.isfinite(logs).all(axis=1)]
    gaps = logs[:, 1] - logs[:, 0]
    if gaps.size < FEWEST or abs(gaps.mean()) <= math.log1p(case.delta_pct / 100 / PART):
        return
    error = float(gaps.std(ddof=1)) / math.sqrt(gaps.size)
    if error and t_two_sided(float(gaps.mean()) / error, gaps.size - 1) >= case.level:
        return
    first, second = np.exp(logs.mean(axis=0))
    yield (
        f"For each second of its clock {case.baseline.name} ran {first:.4g} s and {case.contender.name} {second:.4g} s of the "
        f"host's time, {100 * math.expm1(abs(gaps.mean())):.2g} % apart: the difference of the values has that in it."
    )


def shares_log(running: float, guest: float | None) -> float:
    """Logarithm of the running time for a second of the guest's clock; NaN where that is not known."""
    return math.log(running / guest) if guest is not None and guest > 0 and running > 0 else math.nan


PLUGIN = Finding(
    name="share-unequal", cause=Cause.TURNS, weight=74,
    meaning="Contenders that take turns did not get the same running time of the host for a second of their own clocks, by "
    "more than a tenth of the smallest effect that matters: one is held later, and works on while its clock stands.",
    remedy="Measure again on a quieter host, with longer turns, or with `--turns off`.",
    chance=True, check=share_unequal, least=Evidence.CONSTANT,
)  # fmt: skip
