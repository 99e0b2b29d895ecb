"""A run as a matrix: every cell's values and verdicts, the growth over counts, and what a heat map shows."""

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import stdev

from msgspec import Struct, field

from kduel.analysis.matrix.grid import GridPoint, Pair, pairs, places
from kduel.analysis.matrix.growth import Growth, growth
from kduel.core.experiment import Aspect, Metric
from kduel.core.host import OTHER_WORK
from kduel.core.metric_results import MetricResult, conditions_of
from kduel.core.results import Results
from kduel.core.samples import Samples, StepResult
from kduel.judge.verdict.rule import planned_rule

GROWING: tuple[Aspect, ...] = ("scheduling", "cpu-time", "activity")
"""Aspects whose growth is shown; of a benchmark that has none of them, the growth of its first metric."""


class MatrixCell(Struct, kw_only=True):
    """One contender at one place: the mean and sample SD of each metric over the blocks, null where nothing is."""

    place: GridPoint
    contender: str
    n: int
    means: dict[str, float | None]
    sds: dict[str, float | None]


class JudgedCell(Struct, kw_only=True):
    pair: Pair
    place: GridPoint
    result: MetricResult


class Matrix(Struct, kw_only=True):
    """Data from which the reports of a matrix are made."""

    families: dict[str, list[GridPoint]]
    contenders: list[str]
    metrics: dict[str, list[str]]
    """By family, the metrics' names, the main one first."""
    units: dict[str, dict[str, str]]
    """By family and metric."""
    aspects: dict[str, dict[str, Aspect]]
    """By family and metric."""
    cells: list[MatrixCell]
    pairs: list[Pair]
    judged: list[JudgedCell]
    """Every metric of every cell against each reference that differs in one thing: the run's own verdicts where it has all, else
    exploratory ones, Benjamini and Hochberg over each kind of metrics of the matrix."""
    apart: bool
    """Whether these verdicts are not the run's own."""
    growth: list[Growth] = field(default_factory=list)

    @property
    def hints(self) -> bool:
        """True if any verdict is on a metric that is not primary, and chance has a part in it."""
        return any(judged.result.hint for judged in self.judged)

    def of_aspect(self, family: str, aspect: Aspect) -> list[str]:
        """The family's metrics of an aspect, as far as they share the first one's unit."""
        found = [name for name in self.metrics[family] if self.aspects[family][name] == aspect]
        units = self.units[family]
        return [name for name in found if units[name] == units[found[0]]]

    def verdicts(self, family: str, metric: str) -> list[JudgedCell]:
        return [j for j in self.judged if j.place.family == family and j.result.metric == metric]


def shape(results: Results) -> Matrix | None:
    """The matrix that a run is, or None where no benchmarks differ in a number alone."""
    found = places(measured_steps(results))
    if not found:
        return None
    values, metrics = tables(results)
    families: dict[str, list[GridPoint]] = {}
    for place in found:
        families.setdefault(place.family, []).append(place)
    names = [contender.name for contender in results.contenders]
    compared = pairs(results)
    by_family = {
        family: [name for name in metrics[members[0].label] if all(name in metrics[p.label] for p in members)]
        for family, members in families.items()
    }
    about = {family: [metrics[families[family][0].label][name] for name in own] for family, own in by_family.items()}
    verdicts = own_verdicts(results, compared, found, by_family)
    return Matrix(
        families=families,
        contenders=names,
        metrics=by_family,
        units={family: {one.name: one.unit for one in chosen} for family, chosen in about.items()},
        aspects={family: {one.name: one.aspect for one in chosen} for family, chosen in about.items()},
        cells=[cell(place, name, by_family[place.family], values) for place in found for name in names],
        pairs=compared,
        judged=judge_pairs(results, compared, found, by_family, values, metrics) if verdicts is None else verdicts,
        apart=verdicts is None,
        growth=[
            grown
            for family, members in families.items()
            for metric in growing(about[family])
            for name in names
            if (
                grown := growth(
                    members,
                    name,
                    metric.name,
                    {p.label: values[p.label, metric.name][name] for p in members},
                    varies=results.machine.evidence.varies,
                    times=metric.aspect == "scheduling",
                )
            )
        ],
    )


def measured_steps(results: Results) -> list[StepResult]:
    measured = {metric.benchmark for metric in results.metrics}
    return [step for step in results.steps if step.label in measured]


Values = dict[tuple[str, str], dict[str, list[float | None]]]


def tables(results: Results) -> tuple[Values, dict[str, dict[str, Metric]]]:
    """By label and metric: every contender's values; and by label the metrics, in the benchmark's order."""
    values: Values = {}
    metrics: dict[str, dict[str, Metric]] = {}
    for result in results.metrics:
        values.setdefault((result.benchmark, result.metric), {}).update(result.values)
        metrics.setdefault(result.benchmark, {}).setdefault(
            result.metric,
            Metric(result.metric, result.unit, result.better, result.about, result.statistic, aspect=result.aspect),
        )
    blank: list[float | None] = [None] * len(results.blocks)
    for held in values.values():
        for contender in results.contenders:
            held.setdefault(contender.name, list(blank))
    return values, metrics


def growing(metrics: Sequence[Metric]) -> list[Metric]:
    return [metric for metric in metrics if metric.aspect in GROWING] or list(metrics[:1])


def cell(place: GridPoint, contender: str, metrics: Sequence[str], values: Values) -> MatrixCell:
    held = {name: [v for v in values[place.label, name][contender] if v is not None] for name in metrics}
    return MatrixCell(
        place=place,
        contender=contender,
        n=max((len(v) for v in held.values()), default=0),
        means={name: sum(v) / len(v) if v else None for name, v in held.items()},
        sds={name: stdev(v) if len(v) > 1 else None for name, v in held.items()},
    )


def own_verdicts(
    results: Results, compared: Sequence[Pair], found: Sequence[GridPoint], metrics: Mapping[str, Sequence[str]]
) -> list[JudgedCell] | None:
    """The run's verdicts on all pairs at all places; None where it lacks one, as it compares with its baseline alone."""
    own = {(one.baseline, one.contender, one.benchmark, one.metric): one for one in results.metrics}
    cells = [
        (pair, place, own.get((pair.reference, pair.contender, place.label, name)))
        for pair in compared
        for place in found
        for name in metrics[place.family]
    ]
    judged = [JudgedCell(pair=pair, place=place, result=result) for pair, place, result in cells if result]
    return judged if len(judged) == len(cells) else None


def judge_pairs(
    results: Results,
    compared: Sequence[Pair],
    found: Sequence[GridPoint],
    metrics: Mapping[str, Sequence[str]],
    values: Values,
    about: Mapping[str, Mapping[str, Metric]],
) -> list[JudgedCell]:
    """Every metric of every place for every pair, judged together."""
    table_of = pair_table(results)
    absent = {} if results.paired else never_began(values)
    beyond: dict[tuple[str, str], dict[str, list[int]]] = {}
    own: dict[tuple[str, str], list[MetricResult]] = {}
    for result in results.metrics:
        own.setdefault((result.benchmark, result.metric), []).append(result)
        beyond.setdefault((result.benchmark, result.metric), {}).update(result.beyond)
    keys: list[tuple[Pair, GridPoint]] = []
    samples: list[Samples] = []
    for pair in compared:
        arms = (pair.reference, pair.contender)
        for place in found:
            for name in metrics[place.family]:
                held, measured = values[place.label, name], own[place.label, name]
                scheduled = measured[0].scheduled
                conditions = conditions_of(measured, results.blocks) if scheduled else {}
                keys.append((pair, place))
                table = table_of(
                    benchmark=place.label, metric=about[place.label][name], values={arm: held[arm] for arm in arms},
                    counted=results.paired and not results.machine.evidence.varies, beyond=beyond[place.label, name],
                    scheduled=scheduled, conditions={arm: conditions[arm] for arm in arms if arm in conditions},
                    resolution=max(result.resolution for result in measured),
                    absent={arm: absent[arm] for arm in arms if arm in absent},
                )  # fmt: skip
                samples.append(table)
    return [
        JudgedCell(pair=pair, place=place, result=result)
        for (pair, place), result in zip(keys, judge_matrix(results, samples), strict=True)
    ]


def pair_table(results: Results) -> partial[Samples]:
    """Makes a table of a run's pair from what does not follow from the run's trials. These are of all contenders, whichever pair is
    judged: a trial may follow one of a third, and a block that has not ended for one of them counts for none."""
    trials = {(trial.block, trial.contender): trial for trial in results.trials}
    names = [contender.name for contender in results.contenders] if results.paired else []
    columns = {name: [trials.get((block, name)) for block in results.blocks] for name in names}
    work = {name: [one.other_work_before if one else None for one in column] for name, column in columns.items()}
    order = {name: [one.position if one else None for one in column] for name, column in columns.items()}
    return partial(
        Samples, paired=results.paired, blocks=results.blocks, order=order, parts=parts_of(results),
        machines=machines_of(results), covariates={OTHER_WORK: work},
    )  # fmt: skip


def parts_of(results: Results) -> list[str]:
    """By block, the part of a merged run."""
    found = {trial.block: trial.part for trial in results.trials}
    return [found.get(block, "") for block in results.blocks]


def machines_of(results: Results) -> list[str]:
    """By block, the machine that carried it out; empty where there is one."""
    found = {trial.block: trial.machine for trial in results.trials if trial.machine}
    return [found.get(block, "") for block in results.blocks] if found else []


def never_began(values: Values) -> dict[str, list[bool]]:
    """Trials of an import without a value of any metric, by contender and block."""
    held: dict[str, list[list[float | None]]] = {}
    for table in values.values():
        for arm, column in table.items():
            held.setdefault(arm, []).append(column)
    return {
        arm: [all(value is None for value in trial) for trial in zip(*columns, strict=True)]
        for arm, columns in held.items()
    }


def judge_matrix(results: Results, samples: list[Samples]) -> list[MetricResult]:
    if not samples:
        return []
    rule = planned_rule(results.study)
    if results.paired:
        from kduel.judge.verdict.judge import judge

        found = judge(samples, rule)
    else:
        from kduel.judge.verdict.unpaired import judge_unpaired

        found = judge_unpaired(samples, rule)
    # Take back what the run itself does not say: of a metric that the benchmark sets, and of machines that
    # contradict each other.
    from kduel.judge.verdict.wording import withhold

    own: dict[tuple[str, str], list[MetricResult]] = {}
    for metric in results.metrics:
        own.setdefault((metric.benchmark, metric.metric), []).append(metric)
    for result in found:
        for metric in own[result.benchmark, result.metric]:
            if metric.by_harness and not result.by_harness:
                result.warnings = [*result.warnings, *metric.warnings]
            if metric.machines and {metric.baseline, metric.contender} & {result.baseline, result.contender}:
                result.machines = metric.machines if metric.machines.contradicting else result.machines
        withhold(result)
    return found
