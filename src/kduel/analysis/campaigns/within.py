"""Two contenders of one run, measured here or imported, judged by the run's own rule."""

import msgspec

from kduel.analysis.campaigns.columns import Column
from kduel.core.metric_results import MetricResult
from kduel.core.samples import Samples
from kduel.judge.evaluate import rule_of
from kduel.judge.imported import judge_imported
from kduel.judge.imported import rule_of as imported_rule
from kduel.judge.verdict.judge import judge
from kduel.store.collect import collect, contenders_of
from kduel.store.rundir import RunDir


def is_declared_pair(before: Column, after: Column) -> bool:
    """True if the run itself compares the two: one of them is its baseline."""
    return names_of(before)[0] in (before.contender, after.contender)


def names_of(column: Column) -> list[str]:
    return contenders_of(RunDir.open(column.run))


def judge_within(
    before: Column, after: Column, share: float, delta: float | None
) -> tuple[list[MetricResult], list[Samples]]:
    """Every metric of `after` against `before`, and the tables, under the columns' names, by the run's own rule,
    looks and split of alpha, of which `share` counts; `delta` replaces the run's unless None. Raises InputError."""
    run = RunDir.open(before.run)
    rule = imported_rule(run.path) if run.imported else rule_of(run.lock())
    rule = msgspec.structs.replace(rule, alpha=share * rule.alpha, delta_pct=delta or rule.delta_pct)
    # All contenders stay, so that alpha is split over as many comparisons as in the run.
    tables = [with_baseline(table, before.contender) for table in collect(run.path)]
    judged = judge_imported(tables, rule) if run.imported else judge(tables, rule)
    names = {before.contender: before.name, after.contender: after.name}
    results = [rename_contenders(result, names) for result in judged if result.contender == after.contender]
    return results, [select_two(table, names) for table in tables]


def with_baseline(table: Samples, baseline: str) -> Samples:
    values = {baseline: table.values[baseline]} | table.values
    return msgspec.structs.replace(table, values=values)


def select_two(table: Samples, names: dict[str, str]) -> Samples:
    """The table of these contenders alone, under new names."""
    return msgspec.structs.replace(
        table,
        values={new: table.values[old] for old, new in names.items()},
        order={new: table.order[old] for old, new in names.items() if old in table.order},
        absent={new: table.absent[old] for old, new in names.items() if old in table.absent},
        beyond={new: table.beyond[old] for old, new in names.items() if old in table.beyond},
    )


def rename_contenders(result: MetricResult, names: dict[str, str]) -> MetricResult:
    return msgspec.structs.replace(
        result,
        baseline=names[result.baseline],
        contender=names[result.contender],
        values={new: result.values[old] for old, new in names.items()},
    )
