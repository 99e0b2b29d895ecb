"""Mitigations that differ in an exact run: most of their cost is no instruction."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "support"))
from examples import exact

from kduel.core.results import Difference
from kduel.judge.lint.findings.mitigations_uncounted import PLUGIN


@pytest.mark.parametrize(
    "word", ["mitigations=off", "nopti", "spectre_v2=off", "retbleed=off", "mds=off", "nospectre_v1"]
)
def test_a_mitigation_that_one_contender_has_is_a_finding(word: str) -> None:
    results = exact()
    results.contenders[1].cmdline = f"quiet {word}"
    assert PLUGIN.check_run is not None
    (message,) = PLUGIN.check_run(results, [])
    assert word in message
    results.contenders[0].cmdline = f"{word} quiet"
    assert not list(PLUGIN.check_run(results, [])), "both have it"
    results.contenders[0].cmdline = "quiet"
    results.machine.exact = False
    assert not list(PLUGIN.check_run(results, [])), "time includes its cost"


def test_what_the_kernels_report_counts_and_other_words_do_not() -> None:
    results = exact()
    results.contenders[1].cmdline = "threadirqs"
    assert PLUGIN.check_run is not None and not list(PLUGIN.check_run(results, []))
    values: dict[str, str | None] = {"parent": "Mitigation: PTI", "patched": "Vulnerable"}
    results.differences = [Difference(group="mitigations", key="meltdown", values=values, declared=False)]
    (message,) = PLUGIN.check_run(results, [])
    assert "meltdown" in message
