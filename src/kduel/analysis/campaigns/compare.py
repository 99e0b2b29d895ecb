"""Campaigns side by side: first what else differs, then each metric by column, then the changes between columns."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec
from msgspec import Struct, field

from kduel.analysis.campaigns.attribution import Attribution, attribute, different_steps
from kduel.analysis.campaigns.columns import Column, Series, columns
from kduel.analysis.campaigns.within import is_declared_pair, judge_within, names_of
from kduel.core.editions import EDITION
from kduel.core.experiment import Better, Contender, MachineRecord
from kduel.core.format import parameter_text, percent_size
from kduel.core.metric_results import MetricResult
from kduel.core.results import ContenderResult, Difference, Results, StudyResult
from kduel.core.samples import Samples
from kduel.core.text import list_few
from kduel.judge.lint import examine
from kduel.judge.lint.confounds import DeclaredDifferences, differences
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.unpaired import UNPAIRED_EDITION, judge_unpaired

SCHEMA = 1
DELTA = 1.0
"""The smallest effect of interest between runs, in per cent, unless it is given."""
Which = Literal["both", "first", "previous", "all"]


class ColumnFacts(Struct, kw_only=True):
    """A column as a report shows it."""

    letter: str
    name: str
    run: str
    contender: str
    when: str
    imported: bool
    trials: int | None
    void: int
    changed: list[str]
    """What of its run was changed after it had been measured."""


class Summary(Struct, kw_only=True):
    """A metric in one column; `sd` is null where it was measured once."""

    n: int
    mean: float
    sd: float | None


class MetricRow(Struct, kw_only=True):
    """A metric over all columns; null where a column lacks it."""

    key: str
    unit: str
    better: Better
    cells: list[Summary | None]
    reliability: str
    """How far its values can be trusted, by their own spread."""


REPEATS_VARY = "repeats vary by"


class ColumnChange(Struct, kw_only=True):
    """Two columns: what differs, and how each metric changed."""

    before: str
    after: str
    attribution: Attribution
    changes: list[MetricResult]
    exact: bool = False
    """Whether both were counted on one deterministic machine under the same conditions, so that one value of each is enough."""
    otherwise: list[str] = field(default_factory=list)
    """Where both were counted exactly, but not so: what differs, such as `another seed`."""
    unlike: dict[str, str] = field(default_factory=dict)
    """Metrics that the two measured with different parameters of the benchmark, which decides nothing, and what differs."""

    def has_enough_values(self, change: MetricResult) -> bool:
        """True if each column has several values of it, or exact ones, which have no part of chance."""
        return change.n > 1 or self.exact or change.scale == "exact"


class Campaigns(Struct, kw_only=True):
    schema: int = SCHEMA
    delta_pct: float
    columns: list[ColumnFacts]
    confounds: list[Difference]
    """Everything that differs between any two columns."""
    rows: list[MetricRow]
    between: list[ColumnChange]
    left_out: dict[str, str] = field(default_factory=dict)
    """Metrics that cannot be compared over all columns, and why."""


def campaigns(arguments: Sequence[str], *, delta: float | None = None, which: Which = "both") -> Campaigns:
    """The comparison of `RUN` or `RUN:CONTENDER` arguments. Raises InputError."""
    return compare(columns(arguments), delta=delta, which=which)


def compare(found: Sequence[Column], *, delta: float | None = None, which: Which = "both") -> Campaigns:
    """The comparison of columns, of one run by its own rule. Raises InputError for an impossible delta."""
    keys, left_out = comparable(found)
    pairs = list(chosen_pairs([column.contender for column in found], which))
    rule = Rule.of_edition(
        UNPAIRED_EDITION, delta_pct=DELTA if delta is None else delta, alpha=0.05 / max(1, len(pairs))
    )
    share = undeclared_share([(found[first], found[second]) for first, second in pairs])
    known = {column.name: column.environments for column in found}
    return Campaigns(
        delta_pct=rule.delta_pct,
        columns=[facts(number, column) for number, column in enumerate(found)],
        confounds=differences(known, DeclaredDifferences()) + different_steps(found),
        rows=[row(key, found) for key in keys],
        between=[compare_columns(found[first], found[second], keys, rule, share, delta) for first, second in pairs],
        left_out=left_out,
    )


def chosen_pairs(contenders: Sequence[str], which: Which) -> Iterable[tuple[int, int]]:
    """Pairs of columns that are compared: each with the first, each with the one before it, or both and each with the one before it
    that is of the same contender; or all with all."""
    count = len(contenders)
    if which == "all":
        return itertools.combinations(range(count), 2)
    first = [(0, number) for number in range(1, count)] if which in ("first", "both") else []
    previous = [(number - 1, number) for number in range(1, count)] if which in ("previous", "both") else []
    last: dict[str, int] = {}
    same = []
    for number, name in enumerate(contenders):
        same += [(last[name], number)] if which == "both" and name in last else []
        last[name] = number
    return dict.fromkeys([*previous, *first, *same])


def facts(number: int, column: Column) -> ColumnFacts:
    return ColumnFacts(
        letter=chr(ord("A") + number), name=column.name, run=str(column.run), contender=column.contender,
        when=column.when, imported=column.imported, trials=column.trials, void=column.void, changed=column.changed,
    )  # fmt: skip


def comparable(found: Sequence[Column]) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """The metrics that two columns at least have, all in the same unit, and why others are left out."""
    keys: list[tuple[str, str]] = []
    left_out = {}
    for key in dict.fromkeys(key for column in found for key in column.series):
        have = [column.series[key] for column in found if key in column.series and column.series[key].values]
        if len(have) < 2:
            left_out["/".join(key)] = "one column has it, or none"
        elif reason := other_unit(have):
            left_out["/".join(key)] = reason
        else:
            keys.append(key)
    return keys, left_out


def other_unit(have: Sequence[Series]) -> str:
    """Reason why columns of a metric cannot stand in one row, or an empty string."""
    for what, values in (
        ("unit", {series.metric.unit for series in have}),
        ("better side", {series.metric.better for series in have}),
    ):
        if len(values) > 1:
            return f"the {what} differs between the columns: {list_few(sorted(values), 3)}"
    return ""


def measured_alike(key: tuple[str, str], *found: Column) -> bool:
    """True if the columns that have the metric measured it with the same parameters of the benchmark."""
    have = [column.series[key] for column in found if key in column.series and column.series[key].values]
    return len({msgspec.json.encode(series.parameters, order="sorted") for series in have}) <= 1


def unlike(before: Series, after: Series) -> str:
    """In which parameters two columns of a metric differ, in words."""
    said = []
    for name in dict.fromkeys([*before.parameters, *after.parameters]):
        pair = [series.parameters.get(name, ...) for series in (before, after)]
        if pair[0] == pair[1]:
            continue
        if name == "conditions" and before.parameters.get("mode") == "exact":
            words = ["once" if value == 0 else f"under {value} conditions" for value in pair]
            words = ["under conditions" if value is ... else word for value, word in zip(pair, words, strict=True)]
            said.append(f"counted {words[0]} in the first, {words[1]} in the second")
        else:
            words = ["not set" if value is ... else parameter_text(value) for value in pair]
            said.append(
                f"{'benchmark' if name == 'use' else name} is {words[0]} in the first, {words[1]} in the second"
            )
    return "; ".join(said)


def row(key: tuple[str, str], found: Sequence[Column]) -> MetricRow:
    have = [column.series.get(key) for column in found]
    metric = next(series.metric for series in have if series and series.values)
    return MetricRow(
        key="/".join(key),
        unit=metric.unit,
        better=metric.better,
        cells=[cell(series) for series in have],
        reliability=reliability("/".join(key), found, have)
        + ("" if measured_alike(key, *found) else "; measured with other parameters in some columns"),
    )


def cell(series: Series | None) -> Summary | None:
    import statistics

    if series is None or not series.values:
        return None
    values = list(series.values.values())
    return Summary(
        n=len(values), mean=statistics.fmean(values), sd=statistics.stdev(values) if len(values) > 1 else None
    )


def reliability(key: str, found: Sequence[Column], have: Sequence[Series | None]) -> str:
    """Distance of repeats of the metric, by its own values or as its source states."""
    import statistics

    stated = next((column.spreads[key] for column in found if key in column.spreads), None)
    if stated is not None:
        inside = [
            s for s in have if s and s.values and all(stated.low <= v <= stated.high for v in s.values.values())
        ]
        total = sum(1 for s in have if s and s.values)
        return (
            f"unreliable: repeats ranged from {stated.low:g} to {stated.high:g} ({stated.where}), and {len(inside)} of "
            f"{total} columns lie inside that range"
        )
    spreads = []
    for series in have:
        if series and len(series.values) > 1 and statistics.fmean(series.values.values()) > 0:
            values = list(series.values.values())
            spreads.append(100 * statistics.stdev(values) / statistics.fmean(values))
    if all(column.exact for column, series in zip(found, have, strict=True) if series and series.values):
        return "exact: a repetition gives the same"
    if not spreads:
        return "not known: n = 1 in every column"
    once = sum(1 for series in have if series and len(series.values) == 1)
    return f"{REPEATS_VARY} {percent_size(max(spreads))} (SD)" + (f"; n = 1 in {once}" if once else "")


def undeclared_share(pairs: Sequence[tuple[Column, Column]]) -> float:
    """Share of a run's alpha for each comparison that the run itself does not make: together no more than it has."""
    extra = [pair for pair in pairs if of_one_run(*pair) and not is_declared_pair(*pair)]
    contenders = min((len(names_of(before)) for before, _ in extra), default=2)
    return min(1.0, (contenders - 1) / max(1, len(extra)))


def of_one_run(before: Column, after: Column) -> bool:
    """True if both are contenders of one run, measured here or imported, which has a rule and a baseline of its own."""
    return before.run == after.run


def compare_columns(
    before: Column, after: Column, keys: Sequence[tuple[str, str]], rule: Rule, share: float, delta: float | None
) -> ColumnChange:
    """Two columns, judged as far as the way they were measured allows, with the lint's findings."""
    attribution = attribute(before, after)
    common = [key for key in keys if all(key in c.series and c.series[key].values for c in (before, after))]
    other = [key for key in common if not measured_alike(key, before, after)]
    keys = [key for key in keys if key not in other]
    exact = bool(before.exact) and before.exact == after.exact
    within = of_one_run(before, after)
    if within:
        changes, tables = judge_within(before, after, 1.0 if is_declared_pair(before, after) else share, delta)
        changes = [change for change in changes if (change.benchmark, change.metric) in keys]
    elif exact:
        tables = [table for key in keys if (table := block_by_block(key, before, after)) is not None]
        changes = judge(tables, rule) if tables else []
    else:
        tables = [table for key in keys if (table := side_by_side(key, before, after)) is not None]
        changes = judge_unpaired(tables, rule) if tables else []
    names = (before.name, after.name)
    results = Results(
        study=StudyResult(
            delta=delta or rule.delta_pct,
            alpha=rule.alpha,
            imported=not attribution.same_run,
            edition=EDITION if attribution.same_run or exact else UNPAIRED_EDITION,
        ),
        machine=MachineRecord(exact=exact),
        contenders=[ContenderResult(name=name, kernel="") for name in names],
        trials=[
            msgspec.structs.replace(trial, contender=column.name)
            for column in (before, after)
            for trial in column.outcomes
        ],
        metrics=changes,
    )
    examine(results, tables, {name: [] for name in names}, [Contender(kernel=name, name=name) for name in names])
    # That trials are void is a finding of a whole run; here every metric has its own list.
    crashed = [warning for warning in results.warnings if warning.code == "crashes"]
    for change in changes:
        change.warnings = [*crashed, *change.warnings]
    otherwise = [] if exact or attribution.same_run else counted_otherwise(before, after)
    return ColumnChange(
        before=before.name, after=after.name, attribution=attribution, changes=changes, exact=exact,
        otherwise=otherwise, unlike={"/".join(key): unlike(before.series[key], after.series[key]) for key in other},
    )  # fmt: skip


def counted_otherwise(before: Column, after: Column) -> list[str]:
    """Differences between two exact columns on which counts depend, such as the seed, which draws conditions."""
    if not (before.exact and after.exact):
        return []
    named = {"seed": "another seed", "steps": "other operations", "parameters": "other parameters of operations"}
    unlike = [key for key in before.exact | after.exact if before.exact.get(key) != after.exact.get(key)]
    return list(dict.fromkeys(named.get(key, "another machine or QEMU") for key in unlike))


def block_by_block(key: tuple[str, str], before: Column, after: Column) -> Samples | None:
    """A metric's exact values in columns of different runs on one deterministic machine: it gives the same in each, so that
    blocks, and the conditions that both counted under, belong together."""
    first, second = before.series.get(key), after.series.get(key)
    if first is None or second is None or not (first.values or second.values):
        return None
    blocks = sorted(first.values.keys() | second.values.keys())
    pair = ((before.name, first), (after.name, second))
    conditions = {name: [series.conditions.get(block, {}) for block in blocks] for name, series in pair}
    scheduled = first.scheduled or second.scheduled
    return Samples(
        benchmark=key[0], metric=first.metric, counted=True, blocks=blocks, scheduled=scheduled,
        # Where chance has a part, primary metrics share alpha: a run's counters would leave them none.
        primary=first.primary or second.primary or not scheduled, resolution=max(first.resolution, second.resolution),
        values={name: [series.values.get(block) for block in blocks] for name, series in pair},
        conditions=conditions if first.conditions and second.conditions else {},
    )  # fmt: skip


def side_by_side(key: tuple[str, str], before: Column, after: Column) -> Samples | None:
    first, second = before.series.get(key), after.series.get(key)
    if first is None or second is None or not (first.values or second.values):
        return None
    count = max(len(series.values) + series.beyond + series.missing for series in (first, second))
    values: dict[str, list[float | None]] = {}
    absent: dict[str, list[bool]] = {}
    beyond: dict[str, list[int]] = {}
    for column, series in ((before, first), (after, second)):
        given: list[float | None] = list(series.values.values())
        values[column.name] = given + [None] * (count - len(given))
        beyond[column.name] = list(range(len(given) + 1, len(given) + 1 + series.beyond))
        began = len(given) + series.beyond + series.missing
        absent[column.name] = [False] * began + [True] * (count - began)
    return Samples(
        benchmark=key[0], metric=first.metric, primary=True, paired=False, blocks=list(range(1, count + 1)),
        values=values, absent=absent, beyond=beyond,
    )  # fmt: skip
