"""No format claims what results.json does not: verdict words and numbers, over kinds of runs and all formats."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
from examples import ALL, exact, published, simulated, single, three, undecided

from kduel.core.experiment import Metric
from kduel.core.format import effect
from kduel.core.results import FindingResult, Results
from kduel.core.samples import Samples
from kduel.judge.verdict.headline import excludes_zero, headlines
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.unpaired import judge_unpaired
from kduel.report import report_format

FORMATS = ("text", "summary", "mail", "markdown", "latex", "html")


def judged(shifts: list[float], missing: tuple[int, ...] = (), *, paired: bool = True, unit: str = "s") -> Results:
    """A run of two contenders with one primary metric, whose verdict is the rule's own."""
    draw = np.random.default_rng(5)
    found = simulated(blocks=len(shifts), metrics=1)
    names = [contender.name for contender in found.contenders]
    spread = 0.0 if unit == "instructions" else 0.002
    before: list[float | None] = (1000 * (1 + spread * draw.standard_normal(len(shifts)))).tolist()
    after: list[float | None] = (1000 * (1 + np.array(shifts) + spread * draw.standard_normal(len(shifts)))).tolist()
    for place in missing:
        after[place] = None
    table = Samples(
        benchmark="job",
        metric=Metric("time", unit, "lower"),
        primary=True,
        blocks=list(range(1, len(shifts) + 1)),
        values=dict(zip(names, (before, after), strict=True)),
        paired=paired,
        counted=paired and unit == "instructions",
    )
    rule = Rule.of_edition(2, max_blocks=40)
    found.study.max, found.study.fixed, found.study.imported = 40, None, not paired
    found.machine.exact = unit == "instructions"
    found.metrics = judge([table], rule) if paired else judge_unpaired([table], Rule.of_edition(1))
    found.headlines = headlines(found)
    return found


def of_zeros() -> Results:
    """Of a metric that can be zero there is no ratio."""
    found = judged([0.0] * 12)
    names = [contender.name for contender in found.contenders]
    before, after = [float(place % 3) for place in range(12)], [5.0 + place % 4 for place in range(12)]
    table = Samples(
        benchmark="job",
        metric=Metric("stalls", "ms", "lower"),
        primary=True,
        blocks=list(range(1, 13)),
        values={names[0]: list(before), names[1]: list(after)},
    )
    found.metrics = judge([table], Rule.of_edition(2, max_blocks=40))
    found.headlines = headlines(found)
    return found


def set_by_the_harness() -> Results:
    """A run whose only metric is the time for which the benchmark was told to run."""
    found = judged([0.0] * 12)
    found.metrics[0].warnings.append(FindingResult(code="fixed-by-harness", message="set"))
    found.headlines = headlines(found)
    return found


def one_of_two_set_by_the_harness() -> Results:
    """A run of an undecided metric beside one that the benchmark sets."""
    found, other = set_by_the_harness(), undecided()
    found.metrics.append(other.metrics[0])
    found.headlines = headlines(found)
    return found


KINDS: dict[str, Callable[[], Results]] = {
    "decided": lambda: judged([0.05] * 12),
    "equivalent": lambda: judged([0.0] * 12),
    "undecided": undecided,
    "far from decided": lambda: judged([0.03, -0.03] * 6),
    "contradicted": lambda: judged([0.0] * 10 + [0.05] * 20),
    "lost": lambda: judged([-0.012] * 8 + [0.016] * 9),
    "withheld": lambda: judged([-0.05] * 12, (3, 5, 7)),
    "too few": lambda: judged([0.5] * 3),
    "very large": lambda: judged([900 + place for place in range(12)]),
    "zeros": of_zeros,
    "set by the harness": set_by_the_harness,
    "one of two set by the harness": one_of_two_set_by_the_harness,
    "counted": lambda: judged([0.02], unit="instructions"),
    "exact": exact,
    "import": lambda: judged([0.05] * 12, paired=False),
    "import, undecided": lambda: judged([0.05] * 3, paired=False),
    "published": published,
    "single": single,
    "three": three,
}
CLAIMS = {
    "faster": r"\b(?:is|▲) faster\b",
    "slower": r"\b(?:is|▼) slower\b",
    "more": r"takes more instructions",
    "fewer": r"takes fewer instructions",
    "equivalent": r"\bare equivalent\b",
}
"""By verdict, what a claim of it looks like."""
SIGNED_PCT = re.compile(r"([+−-])(\d[\d,]*(?:\.\d+)?)(?: to [+−-]\d[\d,.]*)?\s?(?:\\,|~)?\\?%")


def numbers_of(document: Any) -> Iterator[float]:
    """Every number in a JSON document."""
    if isinstance(document, dict):
        for value in document.values():
            yield from numbers_of(value)
    elif isinstance(document, list):
        for value in document:
            yield from numbers_of(value)
    elif isinstance(document, int | float) and not isinstance(document, bool):
        yield float(document)


def shares_of(results: Results) -> set[float]:
    """The changes in per cent that the JSON states: itself, or by an effect and its baseline."""
    document = msgspec.to_builtins(results)
    found = set(numbers_of(document["metrics"]))
    for metric in results.metrics:
        if metric.baseline_mean and metric.mean is not None and metric.scale != "difference":
            found.add(100 * (metric.mean / metric.baseline_mean - 1))
    found |= {results.study.delta, -results.study.delta}
    return {value for value in found if math.isfinite(value)}


def plain(page: str) -> str:
    """The text of a page without scripts, styles and tags."""
    page = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page)).replace("&#43;", "+")


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_format_claims_what_results_json_has(kind: str, name: str) -> None:
    results = KINDS[kind]()
    text = plain(report_format(name).render(results))
    verdicts = {metric.verdict for metric in results.metrics}
    for verdict, claim in CLAIMS.items():
        if verdict not in verdicts:
            assert not re.search(claim, text), f"{name} claims {verdict}, the JSON has {sorted(verdicts)}"
    known = shares_of(results)
    for sign, digits in SIGNED_PCT.findall(text):
        value = float(digits.replace(",", "")) * (1 if sign == "+" else -1)
        places = len(digits.partition(".")[2])
        half = 0.5000001 * 10.0**-places
        assert any(abs(one - value) <= half for one in known), f"{name}: {sign}{digits} % is nowhere in the JSON"
    more = {metric.blocks_more for metric in results.metrics if metric.verdict == "undecided"}
    for stated in re.findall(r"[Aa]bout ([\d,]+) more (?:block|trial)", text):
        count = int(stated.replace(",", ""))
        assert count in more, f"{name}: about {count}, where the JSON has {more}"
    told = " ".join(metric.told for metric in results.metrics)
    assert {int(one.replace(",", "")) for one in re.findall(r"About ([\d,]+) more (?:block|trial)", told)} <= more
    for metric in [
        m
        for m in results.metrics
        if m.role == "primary" and m.scale == "ratio" and name in ("text", "summary", "markdown")
    ]:
        assert effect(metric) in text, f"{name}: {metric.metric} with other digits than {effect(metric)}"
    if any(m.contradicted or m.withheld for m in results.metrics) and len(results.metrics) == 1:
        assert not re.search(r"more blocks? would|\(about \d+ more", text)
    if results.study.imported:
        assert not re.search(r"\bmore\s+blocks?\b", text), "an import has trials"
    if all(m.contradicted or excludes_zero(m) for m in results.metrics):
        assert "cannot distinguish" not in text
    if all(m.by_harness for m in results.metrics):
        assert "settings determine" in text and not re.search(r"are equivalent within", text)
    for metric in results.metrics:
        if metric.scale == "ratio" and metric.effect_pct is not None and metric.effect_pct > 10_000:
            assert "over +10,000" not in text


def test_the_kinds_are_what_they_are_called() -> None:
    found = {
        kind: KINDS[kind]().metrics[0]
        for kind in ("decided", "equivalent", "contradicted", "withheld", "counted", "too few", "zeros")
    }
    assert {kind: metric.verdict for kind, metric in found.items()} == {
        "decided": "slower",
        "equivalent": "equivalent",
        "contradicted": "undecided",
        "withheld": "undecided",
        "counted": "more",
        "too few": "undecided",
        "zeros": "slower",
    }
    assert excludes_zero(found["too few"]) and found["zeros"].scale == "difference"
    assert found["contradicted"].contradicted and found["withheld"].withheld
    assert len(ALL) >= 8


@pytest.mark.parametrize("name", FORMATS)
def test_what_depends_on_conditions_is_not_said_to_be_chance(name: str) -> None:
    results = judged([0.02], unit="instructions")
    (metric,) = results.metrics
    metric.verdict, metric.ci_low, metric.ci_high = "undecided", -10.0, 20.0
    metric.ci_low_pct, metric.ci_high_pct = -1.0, 2.0
    results.headlines = headlines(results)
    text = plain(report_format(name).render(results))
    assert metric.depends and "depends" in text
    assert not re.search(r"may be chance|distinguished\s+from\s+chance", text)
