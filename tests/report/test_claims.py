"""No output claims what the results do not hold: all formats, the last screen, the exit status and the site, of kinds of run.

The check knows no format and no wording: it changes what may not be claimed and looks whether any output says so.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from claims import (
    FORBIDDEN,
    KINDS,
    Piece,
    copied,
    every_verdict,
    judged,
    opposites,
    outputs,
    pieces,
    told_again,
)

from kduel.core.format import effect
from kduel.core.results import Results
from kduel.judge.factors.headline import matters
from kduel.report.content.digest import NAMED

Runs = Callable[[str], Results]


@pytest.fixture(scope="module")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """A run of a kind, to be changed."""
    made: dict[str, Results] = {}

    def run_of(kind: str) -> Results:
        if kind not in made:
            made[kind] = KINDS[kind](tmp_path_factory.mktemp("kind"))
            made[kind].study.checksum = made[kind].study.checksum or "0" * 64
        return copied(made[kind])

    return run_of


THINGS = r"(?:metric|block|trial|boot|contender|machine|finding|sample|value|measurement|level|factor|run)"
OTHERS = r"(?:primary |more |further |other |undecided )*"

SMALL = re.compile(r"too (?:small|little) to matter")

DATA = ("json", "csv", "wide")
"""What programs read: a verdict there has its role and its status beside it."""


def differing(one: str, other: str) -> list[str]:
    """The first lines in which two outputs differ."""
    return list(difflib.unified_diff(one.splitlines(), other.splitlines(), lineterm="", n=0))[2:8]


@pytest.mark.slow
@pytest.mark.parametrize("why", FORBIDDEN)
@pytest.mark.parametrize("kind", KINDS)
def test_what_may_not_be_claimed_changes_no_output(run_of: Runs, kind: str, why: str, tmp_path: Path) -> None:
    found: dict[str, dict[str, str]] = {}
    first = run_of(kind)
    for change in opposites(judged(first)[0]):
        results = run_of(kind)
        metric = judged(results)[0]
        metric.verdict, metric.below_delta, metric.role = change["verdict"], change["below_delta"], "primary"
        FORBIDDEN[why](metric)
        for name, text in outputs(told_again(results), tmp_path).items():
            found.setdefault(name, {}).setdefault(text, str(change))
    told = {name: differing(*list(texts)[:2]) for name, texts in found.items() if len(texts) > 1}
    assert not told, f"{why}, and yet a reader can tell what the verdict would be: {told}"


@pytest.mark.slow
@pytest.mark.parametrize("why", FORBIDDEN)
@pytest.mark.parametrize("kind", KINDS)
def test_where_nothing_may_be_claimed_nothing_is(run_of: Runs, kind: str, why: str, tmp_path: Path) -> None:
    results = run_of(kind)
    words = [*(one.name for one in results.contenders), *(metric.benchmark for metric in judged(results))]
    names = re.compile(
        "|".join(rf"(?<![\w-]){re.escape(word)}(?![\w-])" for word in words if len(word) > 1 and word != "boot")
    )
    for metric in every_verdict(results):
        FORBIDDEN[why](metric)
    for name, text in outputs(told_again(results), tmp_path).items():
        found = [piece.claim for piece in pieces(text) if names.search(piece.claim)] if name not in DATA else []
        assert not found, f"{why}, and yet {name}: {found[:3]}"


@pytest.mark.slow
@pytest.mark.parametrize("more", range(1, 3))
@pytest.mark.parametrize("kind", KINDS)
def test_one_thing_is_told_in_the_singular(run_of: Runs, kind: str, more: int, tmp_path: Path) -> None:
    results = run_of(kind)
    found = [metric for metric in judged(results) if metric.role == "primary" and not metric.warnings]
    for metric in found:
        metric.verdict, metric.below_delta, metric.effect_pct = "slower", False, 5.0
    del results.metrics[NAMED + more :]
    for metric in judged(results):
        metric.n = more if metric.verdict == "undecided" else metric.n
    # `1 metrics` and `2 metric` of any thing that is counted.
    wrong = re.compile(rf"(?<![\d.,:/+−=-])(?<!of )\b(?:1 {OTHERS}{THINGS}s|[2-9] {OTHERS}{THINGS})\b(?![\w/-])")
    for name, text in outputs(told_again(results), tmp_path).items():
        said = [piece.text for piece in pieces(text) if name not in DATA and wrong.search(piece.text)]
        assert not said, f"{name}: {said[:3]}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fraction", "three-way interaction", "one trial each"])
def test_what_is_too_small_to_matter_is_never_told_without_that(run_of: Runs, kind: str, tmp_path: Path) -> None:
    results = run_of(kind)
    for metric in every_verdict(results):
        metric.verdict, metric.below_delta, metric.role, metric.effect_pct = "slower", True, "primary", 0.3
    for name, text in outputs(told_again(results), tmp_path).items():
        if name not in DATA:
            read = list(pieces(text.replace("\\\\*\n", " ")))
            bare = [one.text for one in read if "slower" in one.text and not SMALL.search(one.text)]
            assert read and not bare, (name, bare)


@pytest.mark.slow
def test_an_effect_is_never_claimed_without_those_that_it_cannot_be_told_from(run_of: Runs, tmp_path: Path) -> None:
    results = run_of("fraction")
    for number, one in enumerate(results.effects, 1):
        one.aliases, one.result.verdict = [f"alias{number}"], "slower"
        one.result.effect_pct, one.result.below_delta = 11.1 * number, False
    for name, text in outputs(told_again(results), tmp_path).items():
        for one in results.effects:
            lacking = [
                piece.claim
                for piece in pieces(text)
                if effect(one.result) in piece.claim
                and "…" not in piece.claim
                and one.aliases[0] not in piece.heading + piece.claim
            ]
            assert name in DATA or not lacking, f"{name}: {one.name} without its alias: {lacking[:3]}"


@pytest.mark.slow
def test_a_main_effect_is_never_claimed_without_the_highest_interaction(run_of: Runs, tmp_path: Path) -> None:
    results = run_of("three-way interaction")
    main = next(one for one in results.effects if one.kind == "main" and one.factors == ["kernel"])
    assert main.result.claimed and not main.result.below_delta
    assert [len(one.factors) for one in results.effects if one.kind == "interaction" and matters(one.result)] == [3]
    for name, text in outputs(results, tmp_path).items():
        alone = [
            piece.claim
            for piece in pieces(text)
            if effect(main.result) in piece.claim
            and "…" not in piece.claim
            and not re.search("on average|×", piece.heading + piece.claim)
        ]
        assert name in DATA or not alone, f"{name}: {alone[:3]}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_only_hints_changes_nothing_but_hints(run_of: Runs, kind: str, tmp_path: Path) -> None:
    found: dict[str, list[set[Piece]]] = {}
    first = run_of(kind)
    hinting = [number for number, one in enumerate(judged(first)) if one.role != "primary"]
    if not hinting or all(one.role != "primary" for one in judged(first)):
        pytest.skip("all verdicts of this run decide, or none")
    for change in opposites(judged(first)[hinting[0]]):
        results = run_of(kind)
        metric = judged(results)[hinting[0]]
        metric.verdict, metric.below_delta = change["verdict"], change["below_delta"]
        for name, text in outputs(told_again(results), tmp_path).items():
            found.setdefault(name, []).append(set(pieces(text)))
    for name, texts in found.items():
        changed = set.union(*texts) - set.intersection(*texts)
        claims = [piece.claim for piece in changed if piece.claim and not piece.hint]
        assert name in DATA or not claims, f"{name}: {claims[:3]}"
