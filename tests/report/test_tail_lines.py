"""Lines about tails: from which quantile on a mode may be missing, and that what does not hold comes first."""

from __future__ import annotations

import re
from typing import Literal

from examples import simulated

from kduel.core.tail_results import BoundResult, QuantileResult, TailResult
from kduel.report.content.tails import bound_lines, quantile_lines


def tail(contender: str = "new", bound: BoundResult | None = None) -> TailResult:
    return TailResult(
        benchmark="cyclictest",
        metric="latency",
        unit="us",
        contender=contender,
        boots=10,
        samples=10_000,
        largest=90.0,
        level=0.05,
        bound=bound,
    )


def test_from_nine_tenths_on_a_mode_may_be_missing() -> None:
    """There a slow mode in a few boots decides where the quantile lies (docs/evidence/tails.md)."""
    found = tail()
    found.quantiles = [
        QuantileResult(share=share, value=10.0, low=9.0, high=11.0) for share in (0.5, 0.89, 0.9, 0.999)
    ]
    shown = [line for line in quantile_lines(found) if line.startswith(("50", "89", "90", "99"))]
    assert ["may be missing" in line for line in shown] == [False, False, True, True]
    assert len(shown) == 4 and all(re.search(r"a mode in up to [0-9.]+ %", line) for line in shown[2:])


VERDICTS: tuple[Literal["holds", "undecided", "violated"], ...] = ("holds", "undecided", "violated")


def test_the_bound_that_does_not_hold_comes_first() -> None:
    results = simulated()
    results.tails = [
        tail(verdict, BoundResult(limit=50.0, share=1e-3, exceeding=5, samples=10_000, verdict=verdict, level=0.05))
        for verdict in VERDICTS
    ]
    lines = bound_lines(results)
    assert [line.partition(":")[0] for line in lines] == [
        f"cyclictest/latency, {verdict}" for verdict in reversed(VERDICTS)
    ]
