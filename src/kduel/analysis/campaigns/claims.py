"""Claims that somebody made of published campaigns, each with what the campaigns' own data support."""

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Literal

import msgspec
import numpy as np
from msgspec import Struct, field

from kduel.analysis.campaigns.columns import Column
from kduel.analysis.campaigns.compare import Campaigns, compare
from kduel.core.errors import InputError
from kduel.core.format import amount, percent
from kduel.core.metric_results import MetricResult
from kduel.core.text import plural
from kduel.core.toml import parse_toml, read_text
from kduel.judge.verdict.secondary import brown_forsythe

Standing = Literal["supported", "not supported", "contradicted", "not testable"]
Side = Literal["", "higher", "lower"]
ALIKE = ("equivalent", "equal")
ALPHA = 0.05
PER_CENT = r"[-+]?\d{1,12}(?:\.\d{1,12})?"
PRINTED = re.compile(rf"{PER_CENT}(?:\.\.{PER_CENT})?", re.ASCII)
FEWEST = 3
"""Values of each column below which their spread is not compared."""


class Claim(Struct, forbid_unknown_fields=True, kw_only=True):
    """A claim: a change, two columns the same, one the best of all, or one that no data of the source can test."""

    says: str
    """In the source's own words."""
    metric: str = ""
    """`benchmark/metric`."""
    before: str = ""
    after: str = ""
    printed: str = ""
    """The change in per cent as printed: its digits say how exactly to check it; a range is "30..40"."""
    side: Side = ""
    """Where `after` lies, in words only: "slower", "massively more"."""
    same: bool = False
    """Whether the two are said not to differ."""
    spread: Side = ""
    """Which side the spread of `after` is said to have: "less deterministic"."""
    exceeds: str = ""
    """Another metric that `metric` is said to exceed in the column `after`."""
    cause: str = ""
    """What the source puts the change down to: `hardware.connected`, `packages`, `kernel`."""
    best: str = ""
    """The column that the source calls the best."""
    commits: list[str] = field(default_factory=list)
    """The two commits that the claim is about, before and after: of other kernels nothing follows about them."""
    leaves_out: str = ""
    """What the claim is about and the metric is not. What lies in it cannot be contradicted."""
    untestable: str = ""
    """Why no data of the source can test it."""
    refuted: str = ""
    """What in the source itself speaks against it, where that is no change of a metric: its text, its script, its rows."""


class ClaimsFile(Struct, forbid_unknown_fields=True):
    claim: list[Claim]


class JudgedClaim(Struct, kw_only=True):
    claim: Claim
    standing: Standing
    change_pct: float | None = None
    """As the data give it."""
    reasons: list[str] = field(default_factory=list)


def read_claims(path: Path) -> list[Claim]:
    """The claims of a TOML file. Raises InputError naming file and key."""
    remedy = (
        'Write [[claim]] tables with says, and metric = "benchmark/metric" with best, or with before, after and printed, side, '
        "same, spread or cause, or with after and exceeds; or untestable or refuted and the reason."
    )
    table = parse_toml(read_text(path, "the claims", "Name a readable file."), path.name, remedy)
    try:
        return msgspec.convert(table, ClaimsFile, strict=True).claim
    except msgspec.ValidationError as error:
        raise InputError(f"{path.name}: {error}", remedy) from error


def judge_claims(
    claims: Sequence[Claim], found: Sequence[Column], *, delta: float | None = None
) -> list[JudgedClaim]:
    """Every claim against the columns. Raises InputError where a claim names a column or metric that is not there."""
    everything = compare(found, delta=delta, which="all")
    for claim in claims:
        check(claim, everything)
    return [judge_claim(claim, found, everything, delta) for claim in claims]


def judge_claim(claim: Claim, found: Sequence[Column], everything: Campaigns, delta: float | None) -> JudgedClaim:
    if claim.untestable:
        return JudgedClaim(claim=claim, standing="not testable", reasons=[claim.untestable])
    if claim.refuted:
        return JudgedClaim(claim=claim, standing="contradicted", reasons=[claim.refuted])
    if claim.best:
        return judge_best(claim, everything)
    by_name = {column.name: column for column in found}
    if claim.exceeds:
        return judge_excess(claim, by_name[claim.after])
    if claim.spread:
        return judge_spread(claim, by_name[claim.before], by_name[claim.after])
    judged = judge_change(claim, found, delta)
    if claim.leaves_out:
        judged.reasons.append(claim.leaves_out)
        if judged.standing == "contradicted":
            judged.standing = "not testable"
    others = [
        f"{name} is not known to be {commit[:12]}"
        for name, commit in zip((claim.before, claim.after), claim.commits, strict=False)
        if not is_of(by_name[name], commit)
    ]
    if others:
        judged.standing = "not testable"
        other = f"Nothing follows about the commit: {' and '.join(others)}; whatever else differs counts as well."
        judged.reasons.insert(0, other)
    return judged


def is_of(column: Column, commit: str) -> bool:
    """True if the column's kernel is of a commit. Of COMMIT~1 no hash is known: only that name, or COMMIT^, shows it."""
    if commit.endswith("~1"):
        named = re.fullmatch(r"([0-9a-f]{7,})[~^]1?", column.revision)
        return named is not None and commit.startswith(named[1])
    built = column.commit
    return len(built) > 6 and (built.startswith(commit) or commit.startswith(built))


def check(claim: Claim, everything: Campaigns) -> None:
    """Raises InputError for names that do not exist, or a claim that claims nothing."""
    if claim.untestable or claim.refuted:
        return
    known = [column.name for column in everything.columns]
    named = [claim.best] if claim.best else [claim.after] if claim.exceeds else [claim.before, claim.after]
    for name in named:
        if name not in known:
            raise InputError(
                f"the claim {claim.says[:60]!r} names the column {name!r}", f"There are: {', '.join(known)}."
            )
    metrics = [row.key for row in everything.rows]
    for name in filter(None, (claim.metric or "none", claim.exceeds)):
        if name not in metrics:
            raise InputError(
                f"the claim {claim.says[:60]!r} names the metric {name!r}",
                f"At least two columns have: {', '.join(metrics)}.",
            )


def judge_change(claim: Claim, found: Sequence[Column], delta: float | None) -> JudgedClaim:
    """A claimed change: do the figures give it, could it be chance, and is there only one cause it could have?"""
    by_name = {column.name: column for column in found}
    # A claim stands for itself: alpha is not shared with the others.
    pair = compare([by_name[claim.before], by_name[claim.after]], delta=delta, which="first")
    between = pair.between[0]
    change = next((c for c in between.changes if f"{c.benchmark}/{c.metric}" == claim.metric), None)
    if change is None or change.baseline_mean is None or change.mean is None or not change.baseline_mean:
        missing = claim.before if change is None or change.baseline_mean is None else claim.after
        return JudgedClaim(claim=claim, standing="not supported", reasons=[f"There is no value of it for {missing}."])
    ratio = 100 * (change.mean / change.baseline_mean - 1)
    known = between.has_enough_values(change)
    judged = JudgedClaim(claim=claim, standing="supported", change_pct=ratio)
    if claim.printed and not agrees(ratio, claim.printed):
        judged.standing = "contradicted"
        judged.reasons.append(
            f"The figures compared give {percent(ratio)}, not {claim.printed.replace('..', ' to ')} %."
        )
    elif claim.printed:
        judged.reasons.append(f"The figure recomputes ({percent(ratio)}).")
    if claim.side and change.verdict in ALIKE:
        judged.standing = "contradicted"
    elif claim.side and (ratio > 0) != (claim.side == "higher"):
        # Where several values decide nothing, the side on which their means lie is chance.
        judged.standing = "not supported" if known and change.verdict == "undecided" else "contradicted"
        judged.reasons.append(f"The figures compared give {percent(ratio)}, which is not {claim.side}.")
    if claim.same and known:
        alike = change.verdict in ALIKE or change.below_delta
        judged.standing = "supported" if alike else "contradicted" if differs(change) else "not supported"
    if (claim.same or claim.side) and change.verdict != "undecided":
        judged.reasons.append(change.told)
    shortcomings = [
        *uncertain(change, known),
        *unsteady(claim, by_name[claim.before], by_name[claim.after]),
    ]
    if claim.cause and not causes(claim.cause, between.attribution.cause):
        shortcomings.append(f"The cause, {claim.cause}, cannot be decided: {between.attribution.told}")
    # They are told already; and a side is shown where the size is not.
    told = ("single-trial", "too-few", *(("unreliable",) if claim.side and not claim.printed else ()))
    shortcomings += [warning.message for warning in change.warnings if warning.code not in told]
    if shortcomings and judged.standing == "supported":
        judged.standing = "not supported"
    judged.reasons += shortcomings
    return judged


def differs(change: MetricResult) -> bool:
    """True if a difference is shown, whatever its size."""
    return change.verdict not in (*ALIKE, "undecided")


def agrees(value: float, printed: str) -> bool:
    """True if a printed figure is the value rounded to its digits, or a range holds it. Raises InputError."""
    if not PRINTED.fullmatch(printed):
        raise InputError(
            f"a claim's printed change is {printed[:80]!r}",
            'Write the per cent: printed = "-12.4", or a range: "30..40".',
        )
    numbers = [float(one) for one in printed.split("..")]
    places = len(printed.split("..")[-1].partition(".")[2])
    room = 0.5 * 0.1**places * (1 + 1e-9)
    return min(numbers) - room <= value <= max(numbers) + room


def values_of(column: Column, metric: str) -> list[float]:
    benchmark, _, name = metric.partition("/")
    series = column.series.get((benchmark, name))
    return list(series.values.values()) if series else []


def judge_spread(claim: Claim, before: Column, after: Column) -> JudgedClaim:
    """A claimed change of spread, by the test of Brown and Forsythe: absolute distances from the median, compared."""
    one, other = values_of(before, claim.metric), values_of(after, claim.metric)
    if min(len(one), len(other)) < FEWEST:
        reason = f"{min(len(one), len(other))} values have no spread to compare."
        return JudgedClaim(claim=claim, standing="not supported", reasons=[reason])
    first, second = stdev(one), stdev(other)
    chance = brown_forsythe(np.array(one), np.array(other))
    shown = chance is not None and chance < ALPHA
    agreeing = (second > first) == (claim.spread == "higher")
    standing: Standing = "supported" if shown and agreeing else "contradicted" if shown else "not supported"
    likely = "not known" if chance is None else f"p = {chance:.2g}"
    found = f"SD {first:.4g} and {second:.4g}; such a difference by chance alone: {likely} (Brown-Forsythe)."
    change = 100 * (second / first - 1) if first else None
    return JudgedClaim(claim=claim, standing=standing, change_pct=change, reasons=[found])


def judge_excess(claim: Claim, column: Column) -> JudgedClaim:
    """A claim that one metric exceeds another of the same column: shown where no value of one reaches any of the other's."""
    one, other = values_of(column, claim.metric), values_of(column, claim.exceeds)
    if not one or not other:
        return JudgedClaim(claim=claim, standing="not supported", reasons=[f"{column.name} lacks a value."])
    standing: Standing = (
        "supported" if min(one) > max(other) else "not supported" if fmean(one) > fmean(other) else "contradicted"
    )
    told = f"{amount(min(one))} to {amount(max(one))} against {amount(min(other))} to {amount(max(other))}."
    return JudgedClaim(claim=claim, standing=standing, reasons=[told])


def uncertain(change: MetricResult, known: bool) -> list[str]:
    """Reasons why the values do not show the change; `known` is whether the part of chance is."""
    if not known:
        return ["n = 1: measured once, so the part of chance is unknown."]
    return [change.told] if change.verdict == "undecided" else []


def unsteady(claim: Claim, before: Column, after: Column) -> list[str]:
    """Repeats, reported by the source itself, that range further than the claimed change."""
    spread = after.spreads.get(claim.metric) or before.spreads.get(claim.metric)
    if spread is None:
        return []
    benchmark, _, metric = claim.metric.partition("/")
    values = [
        value
        for column in (before, after)
        if (series := column.series.get((benchmark, metric)))
        for value in series.values.values()
    ]
    unit = after.series[benchmark, metric].metric.unit
    gap, room = max(values) - min(values), spread.high - spread.low
    if gap > room:
        return []
    return [
        f"The two differ by {amount(gap)} {unit}, and repeats under one condition ranged over {amount(room)} {unit} "
        f"({spread.low:g} to {spread.high:g}; {spread.where})."
    ]


def causes(claimed: str, found: str | None) -> bool:
    """True if the claimed cause is the one thing that differs; `packages` means any one package."""
    return found is not None and (found == claimed or found.partition(".")[0] == claimed)


def judge_best(claim: Claim, everything: Campaigns) -> JudgedClaim:
    """A claimed best: does any other column have a better value, and is any difference shown?"""
    row = next(row for row in everything.rows if row.key == claim.metric)
    if row.better == "none":
        raise InputError(f"{claim.metric} has no better side", "Claim a change instead: before, after, printed.")
    names = [column.name for column in everything.columns]
    means = {name: cell.mean for name, cell in zip(names, row.cells, strict=True) if cell is not None}
    if claim.best not in means:
        return JudgedClaim(
            claim=claim, standing="not supported", reasons=[f"There is no value of it for {claim.best}."]
        )
    sign = 1 if row.better == "higher" else -1
    own = sign * means[claim.best]
    above = [name for name, mean in means.items() if sign * mean > own]
    if above:
        listed = ", ".join(f"{name} has {amount(means[name])}" for name in above)
        said = f"Its own figures contradict it: it has {amount(means[claim.best])} {row.unit}, and {listed}."
        return JudgedClaim(claim=claim, standing="contradicted", reasons=[said])
    open_pairs = [
        pair
        for pair in everything.between
        if claim.best in (pair.before, pair.after)
        for change in pair.changes
        if f"{change.benchmark}/{change.metric}" == claim.metric and not differs(change)
    ]
    missing = [name for name in names if name not in means]
    reasons = [f"It is the best of {plural(len(means), 'column')} with a value."]
    if missing:
        reasons.append(f"There is no value for {', '.join(missing)}.")
    if open_pairs:
        reasons.append(
            f"No difference is shown by {len(open_pairs)} of the comparisons. Reliability: {row.reliability}."
        )
    return JudgedClaim(
        claim=claim, standing="not supported" if open_pairs or missing else "supported", reasons=reasons
    )
