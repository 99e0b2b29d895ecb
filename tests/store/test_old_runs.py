"""Kept runs open, report, compare and continue as they did."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FIXTURES = Path(__file__).parent / "fixtures"
KINDS = sorted(path.name.removesuffix(".tar.xz") for path in FIXTURES.glob("*.tar.xz"))
EXPECTED = json.loads((FIXTURES / "reports.json").read_text())


def part_of(found: Any, like: Any) -> Any:
    """`found` with no keys but those that `like` has, numbers to nine digits."""
    if isinstance(found, float):
        return float(f"{found:.9g}")
    if isinstance(like, dict):
        return {key: part_of(found[key], value) for key, value in like.items()}
    if isinstance(like, list) and len(found) == len(like):
        return [part_of(one, other) for one, other in zip(found, like, strict=True)]
    return found


def rounded(found: Any) -> Any:
    """Numbers to twelve digits: the order of operations may change the last ones."""
    if isinstance(found, dict):
        return {key: rounded(value) for key, value in found.items()}
    if isinstance(found, list):
        return [rounded(one) for one in found]
    return float(f"{found:.12g}") if isinstance(found, float) else found


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_an_old_run_is_reported_as_it_was(output, unpack: Callable[[str], Path], kind: str):
    found = json.loads(output("report", unpack(kind), "--format", "json"))
    assert rounded(part_of(found, EXPECTED[kind])) == rounded(part_of(EXPECTED[kind], EXPECTED[kind]))


@pytest.mark.slow
def test_old_runs_are_compared(output, unpack: Callable[[str], Path]):
    for kind in sorted({*KINDS} - {"interrupted", "merged", "process"}):
        run = unpack(kind)
        for words in (["diff", run], ["query", "--history", run], ["report", run]):
            assert output(*words)


@pytest.mark.slow
def test_an_old_run_is_continued(kduel, unpack: Callable[[str], Path]):
    run = unpack("process")
    plan = (run / "plan.jsonl").read_bytes()
    done = kduel("resume", run)
    assert done.returncode == 0, done.stderr
    assert len(list((run / "trials").iterdir())) == 6
    assert (run / "plan.jsonl").read_bytes() == plan
    found = json.loads((run / "results.json").read_text())
    assert {tuple(metric["values"]["outside-old"]) for metric in found["metrics"]} == {(5, 5, 5), (6, 6, 6)}


def test_a_step_that_this_version_does_not_know_is_told_with_its_file(kduel, unpack: Callable[[str], Path]):
    """Requests and parameters were renamed before."""
    run = unpack("icount")
    lock = json.loads((run / "lock.json").read_text())
    lock["steps"][0] |= {"benchmark": "request", "parameters": {"application": "nginx-keep-alive"}}
    (run / "lock.json").write_text(json.dumps(lock))
    for words in (["report", run], ["diff", run], ["plan", run]):
        done = kduel(*words)
        assert done.returncode == 2 and "lock.json: the step null-call-50x is not one of this version" in done.stderr
        assert "'nginx-keep-alive' is not possible" in done.stderr and "with the version that made it" in done.stderr
    # Its files can be checked all the same.
    assert "2 trials checked" in kduel("verify", run).stdout
