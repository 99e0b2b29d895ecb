"""Values that an import lacks: where they depend on the contender, the verdict must not flatter the one that lacks more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kduel.core.metric_results import MetricResult
from kduel.judge.imported import results
from kduel.store.imported import Source, bring_in, read

HEADER = "contender,trial,benchmark,metric,unit,better,value\n"


def values(arm: str, metric: str, trials: range | list[int], level: float, better: str = "lower") -> list[str]:
    rng = np.random.default_rng([len(arm), len(metric), int(level)])
    drawn = rng.normal(level, 0.3, len(trials))
    drawn += level - drawn.mean()
    return [f"{arm},{trial},b,{metric},ns,{better},{value:.4f}" for trial, value in zip(trials, drawn, strict=True)]


def judged(tmp_path: Path, *lines: list[str], metric: str = "part") -> MetricResult:
    path = tmp_path / "values.csv"
    path.write_text(HEADER + "".join(f"{line}\n" for one in lines for line in one))
    bring_in([Source(path)], tmp_path / "run")
    (found,) = (m for m in results(tmp_path / "run").metrics if m.metric == metric)
    return found


TWENTY = range(1, 21)
BOTH = [*values("old", "full", TWENTY, 100), *values("new", "full", TWENTY, 100)]


@pytest.mark.parametrize("level", [95.0, 100.0])
@pytest.mark.parametrize("last", [14, 19])
def test_a_contender_that_misses_more_is_neither_better_nor_equivalent(
    tmp_path: Path, level: float, last: int
) -> None:
    found = judged(tmp_path, BOTH, values("old", "part", TWENTY, 100), values("new", "part", range(1, last), level))
    assert found.verdict == "undecided" and found.blocks_more is None
    assert f"{21 - last} of 20 trials of new gave no value, and 0 of 20 of old" in found.withheld
    assert found.withheld in found.told and "more trial" not in found.told
    (finding,) = (w.message for w in found.warnings if w.code == "missing-by-arm")
    assert f"{21 - last} of 20" in finding and "an import of its own" in finding
    assert "unequal-n" not in {w.code for w in found.warnings}


def test_it_may_be_called_worse(tmp_path: Path) -> None:
    found = judged(tmp_path, BOTH, values("old", "part", TWENTY, 100), values("new", "part", range(1, 14), 105))
    assert found.verdict == "slower" and not found.withheld
    assert "missing-by-arm" in {w.code for w in found.warnings}


def test_the_baseline_that_misses_more_must_not_look_better(tmp_path: Path) -> None:
    found = judged(tmp_path, BOTH, values("old", "part", range(1, 14), 100), values("new", "part", TWENTY, 105))
    assert found.verdict == "undecided" and "0 of 20 trials of new" in found.withheld


def test_without_a_better_side_nothing_is_called(tmp_path: Path) -> None:
    old, new = values("old", "part", TWENTY, 100, "none"), values("new", "part", range(1, 14), 105, "none")
    assert judged(tmp_path, BOTH, old, new).verdict == "undecided"


@pytest.mark.parametrize(("old", "new"), [(TWENTY, range(1, 20)), (range(1, 14), range(1, 14)), (TWENTY, TWENTY)])
def test_one_missing_value_or_as_many_in_both_change_nothing(tmp_path: Path, old: range, new: range) -> None:
    found = judged(tmp_path, BOTH, values("old", "part", old, 100), values("new", "part", new, 95))
    assert found.verdict == "faster"
    codes = {w.code for w in found.warnings}
    assert "missing-by-arm" not in codes and ("unequal-n" in codes) == (len(old) != len(new))


def test_a_trial_number_that_only_one_contender_has_is_missing_of_the_other(tmp_path: Path) -> None:
    found = judged(tmp_path, values("old", "m", TWENTY, 100), values("new", "m", range(1, 14), 100), metric="m")
    assert found.verdict == "undecided" and "7 of 20 trials of new" in found.withheld


def test_contenders_numbered_apart_are_different_in_number_only(tmp_path: Path) -> None:
    """The remedy that the finding names."""
    old, new = values("old", "m", TWENTY, 100), values("new", "m", range(101, 114), 100)
    found = judged(tmp_path, old, new, metric="m")
    assert found.verdict == "equivalent" and "unequal-n" in {w.code for w in found.warnings}
    (table,) = read(tmp_path / "run")
    assert sum(table.absent["old"]) == 13 and sum(table.absent["new"]) == 20


def test_formats_that_number_repetitions_state_no_missing_trial(tmp_path: Path) -> None:
    """hyperfine repeats what is fast more often."""
    import json

    rng = np.random.default_rng(2)
    path = tmp_path / "fine.json"
    runs = [
        {"command": name, "times": rng.normal(1.137, 0.001, count).tolist(), "exit_codes": [0] * count}
        for name, count in (("old", 30), ("new", 20))
    ]
    path.write_text(json.dumps({"results": runs}))
    bring_in([Source(path)], tmp_path / "run")
    found = next(m for m in results(tmp_path / "run").metrics if m.metric == "wall_time")
    assert found.verdict == "equivalent" and "missing-by-arm" not in {w.code for w in found.warnings}
