"""Contenders of one run beside each other: judged by the run's own rule, as its report judges them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from kduel.analysis.campaigns import within
from kduel.analysis.campaigns.compare import campaigns
from kduel.core.experiment import Metric
from kduel.core.samples import Samples
from kduel.judge.evaluate import judge_run, rule_of
from kduel.judge.verdict.judge import judge
from kduel.store.rundir import RunDir


@pytest.fixture
def run(unpack: Callable[[str], Path]) -> Path:
    """A run of two contenders, two blocks and an exact machine."""
    return unpack("icount")


def figures(metrics: list) -> dict:  # type: ignore[type-arg]
    return {
        (m.benchmark, m.metric, m.baseline, m.contender): (m.verdict, m.role, m.effect, m.ci_low_pct, m.ci_high_pct)
        for m in metrics
    }


def test_what_the_run_compares_is_judged_as_in_its_report(run: Path) -> None:
    (pair,) = campaigns([str(run)]).between
    assert figures(pair.changes) == figures(judge_run(run).metrics)
    assert {m.scale for m in pair.changes} == {"exact"}, (
        "a deterministic machine's counts are no estimates here either"
    )


def noisy(names: list[str], seed: int) -> list[Samples]:
    """Two primary metrics and an exploratory one over 14 blocks; contenders differ by 2 %."""
    rng = np.random.default_rng(seed)
    blocks = list(range(1, 15))
    places = [rng.permutation(len(names)) + len(names) * index for index in range(len(blocks))]
    return [
        Samples(
            benchmark="bench",
            metric=Metric(name=name, unit="events/s", better="higher"),
            primary=name != "other",
            blocks=blocks,
            values={
                contender: (1000 * 1.02**number * np.exp(0.01 * rng.normal(size=len(blocks)))).tolist()
                for number, contender in enumerate(names)
            },
            order={contender: [int(place[number]) for place in places] for number, contender in enumerate(names)},
        )
        for name in ("rate", "more", "other")
    ]


@pytest.fixture
def simulated(run: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], list[Samples]]:
    """Gives the run so many contenders, with made-up values in place of its own."""

    def make(names: list[str]) -> list[Samples]:
        lock = RunDir.open(run).lock()
        contenders = [msgspec.structs.replace(lock.contenders[0], name=name) for name in names]
        changed = msgspec.to_builtins(lock) | {
            "contenders": msgspec.to_builtins(contenders),
            "kernels": [msgspec.to_builtins(lock.kernels[0])] * len(names),
        }
        changed["machine"]["exact"] = False
        (run / "lock.json").write_bytes(msgspec.json.encode(changed))
        shutil.rmtree(run / "trials")
        (run / "trials").mkdir()
        tables = noisy(names, seed=4)
        for module in ("kduel.analysis.campaigns.within", "kduel.analysis.campaigns.columns"):
            monkeypatch.setattr(f"{module}.collect", lambda _: tables)
        return tables

    return make


def test_looks_primaries_and_the_split_of_alpha_are_the_runs(
    run: Path, simulated: Callable[[list[str]], list[Samples]]
) -> None:
    """A fixed single look after sequential stopping gave 6.7 % of false alarms, not 5 %."""
    tables = simulated(["a", "b", "c"])
    rule = rule_of(RunDir.open(run).lock())
    found = campaigns([str(run)], which="first").between
    assert figures([m for pair in found for m in pair.changes]) == figures(
        sorted(judge(tables, rule), key=lambda m: m.contender)
    )


def test_comparisons_that_the_run_does_not_make_share_its_alpha(
    run: Path, simulated: Callable[[list[str]], list[Samples]]
) -> None:
    tables = simulated(["a", "b", "c", "d", "e"])
    rule = rule_of(RunDir.open(run).lock())
    pairs = campaigns([str(run)], which="all").between
    (between,) = [pair for pair in pairs if (pair.before, pair.after) == ("d", "e")]
    # Six of the ten pairs are without the baseline, and the run's alpha is for four comparisons.
    strict = msgspec.structs.replace(rule, alpha=rule.alpha * 4 / 6)
    expected = [m for m in judge([within.first(table, "d") for table in tables], strict) if m.contender == "e"]
    assert figures(between.changes) == figures(expected)
