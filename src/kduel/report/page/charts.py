"""The page's charts of values, slices and trials, drawn from the results."""

from statistics import median

from markupsafe import Markup
from msgspec import Struct

from kduel.benchmarks.support.schedstat import is_of_level
from kduel.core.host import wait_share
from kduel.core.metric_results import MetricResult
from kduel.core.results import Results
from kduel.core.slices import slice_label
from kduel.core.text import visible
from kduel.report.content.evidence import evidence
from kduel.report.content.host import drawn_figure, figures
from kduel.report.content.methods import value_words
from kduel.report.content.notes import key
from kduel.report.plots import trials as drawn
from kduel.report.plots.turns import Column, turns_charts

MOST_SLICES_OF_PAGE = 3000
"""Slices that the charts of all metrics together draw one by one; of more, neighbours are drawn as one."""


class MetricGroup(Struct, kw_only=True):
    """One metric with its result for each contender. `values` runs parallel to the run's contenders and blocks."""

    number: int
    name: str
    first: MetricResult
    results: list[MetricResult]
    values: list[list[float | None]]
    value_words: str
    """How a trial's value comes about."""
    hints: bool
    """True if it decides nothing, as the run has primary metrics, or effects of factors."""

    @property
    def primary(self) -> bool:
        return any(metric.role == "primary" for metric in self.results)

    @property
    def sliced(self) -> bool:
        return any(metric.slices for metric in self.results)

    @property
    def repeated(self) -> bool:
        """True if any contender has more than one value: single ones are no picture."""
        return any(sum(value is not None for value in column) > 1 for column in self.values)


def metric_groups(results: Results) -> list[MetricGroup]:
    """The metrics in the study's order, the primary ones first."""
    names = [contender.name for contender in results.contenders]
    found: dict[tuple[str, str], list[MetricResult]] = {}
    for metric in results.metrics:
        if metric.role == "primary" or not is_of_level(metric.group, metric.metric):
            found.setdefault((metric.benchmark, metric.metric), []).append(metric)
    ordered = sorted(found.values(), key=lambda group: all(metric.role != "primary" for metric in group))
    groups = []
    for number, group in enumerate(ordered):
        values: dict[str, list[float | None]] = {}
        for metric in group:
            values.update(metric.values)
        groups.append(
            MetricGroup(
                number=number,
                name=key(group[0]),
                first=group[0],
                results=group,
                values=[values.get(name, []) for name in names],
                value_words=value_words(group[0], results.study.reduce),
                hints=not any(metric in results.gating for metric in group),
            )
        )
    return groups


class Charts:
    """Charts of one run. Each is empty where there is nothing to draw."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.arms = {contender.name: number for number, contender in enumerate(results.contenders)}
        self.trials = {(trial.block, self.arms.get(trial.contender, -1)): trial for trial in results.trials}
        self.shown = drawn_figure(results)
        self.apart: MetricGroup | None = None

    def values(self, group: MetricGroup) -> Markup:
        """Every value of a metric by trial."""
        if not group.repeated:
            return Markup()
        found = []
        for arm, column in enumerate(group.values):
            for index, (block, value) in enumerate(zip(self.results.blocks, column, strict=False)):
                if value is not None:
                    trial = self.trials.get((block, arm))
                    place = trial.position + 1 if trial else index + 1
                    found.append(drawn.Dot(arm=arm, block=block, place=place, value=value))
        label = f"Values of {group.name} by trial; the table of values has them."
        return drawn.values_chart(found, visible(group.first.unit, 40), label, timed=evidence(self.results).paired)

    def slices(self, group: MetricGroup) -> Markup:
        """Each slice of a metric by its time in the trial."""
        found, size = drawn.summarize_slices(self.slice_dots(group), self.most_slices)
        unit = visible(group.first.unit, 40)
        if size > 1:
            unit += f"; each dot the median of up to {size} slices"
        return drawn.slices_chart(found, unit, "Each slice's value by its time in the trial.") if found else Markup()

    def turns_apart(self, groups: list[MetricGroup]) -> tuple[str, Markup] | None:
        """Name and turns of the first metric that has any, which are shown before the values."""
        for group in groups:
            if drawn := self.turns(group):
                self.apart = group
                return group.name, drawn
        return None

    def further_turns(self, group: MetricGroup) -> Markup:
        """The turns of a metric in slices that were not shown before: of whole trials the chart of values has them."""
        return self.turns(group) if group.sliced and group is not self.apart else Markup()

    def turns(self, group: MetricGroup) -> Markup:
        """Slices of the contenders of a run in turns, side by side, and their ratios."""
        if not self.results.study.in_turns or not group.repeated:
            return Markup()
        whole: dict[int, Column] = {
            arm: [[] if value is None else [value] for value in column]
            for arm, column in enumerate(group.values)
            if column
        }
        slices: dict[int, Column] = {
            self.arms[name]: [[one.value for one in boot] for boot in boots]
            for metric in group.results
            for name, boots in metric.slices.items()
        }
        many = sum(len(boot) for boots in slices.values() for boot in boots) > self.most_slices
        return turns_charts(self.results.blocks, slices if slices.keys() == whole.keys() and not many else whole)

    def spells(self, groups: list[MetricGroup]) -> list[Markup]:
        """All slices of the run: how much worse than usual, and how long the guest waited."""
        found, size = drawn.summarize_slices(
            [dot for group in groups for dot in self.slice_dots(group)], MOST_SLICES_OF_PAGE
        )
        if not found:
            return []
        told = "by its time in the trial, a row a trial" + (
            f", the worst of up to {size} slices as one." if size > 1 else "."
        )
        return [
            drawn.spells_chart(found, "worse", f"How much worse each slice was than usual, {told}"),
            drawn.spells_chart(found, "waited", f"How long the guest waited during each slice, {told}"),
        ]

    @property
    def most_slices(self) -> int:
        """Dots of one metric's chart of slices, so that the page stays small."""
        return MOST_SLICES_OF_PAGE // max(1, len({(m.benchmark, m.metric) for m in self.results.metrics if m.slices}))

    def slice_dots(self, group: MetricGroup) -> list[drawn.SliceDot]:
        """The slices of a metric whose time in the trial is known."""
        by_name = {name: blocks for metric in group.results for name, blocks in metric.slices.items()}
        values = {name: [one.value for block in blocks for one in block] for name, blocks in by_name.items()}
        usual = {name: median(mine) for name, mine in values.items() if mine}
        found = []
        for name, blocks in by_name.items():
            arm = self.arms[name]
            for block, slices in zip(self.results.blocks, blocks, strict=True):
                trial = self.trials.get((block, arm))
                for number, one in enumerate(slices, 1):
                    if one.began is None or trial is None:
                        continue
                    record = trial.host.get(slice_label(group.first.benchmark, number))
                    waited = wait_share([record]) if record else None
                    lower = group.first.better == "lower"
                    found.append(
                        drawn.SliceDot(
                            arm=arm,
                            trial=trial.position + 1,
                            began=one.began,
                            value=one.value,
                            worse=drawn.worse_by(one.value, usual[name], lower_is_better=lower),
                            waited=None if waited is None else 100 * waited,
                        )
                    )
        return found

    def course(self) -> Markup:
        """Seconds of each trial."""
        found = [
            (arm, trial.position + 1, trial.seconds, trial.status)
            for (_, arm), trial in self.trials.items()
            if arm >= 0 and trial.seconds is not None
        ]
        label = "How long each trial took; the table of trials has the figures."
        return drawn.trials_chart(found, "seconds a trial took", label) if found else Markup()

    def host(self) -> Markup:
        """The strip of what the host, or a real machine itself, did during each trial."""
        pressed = self.shown == "pressed"
        figure = {key: figures(trial) for key, trial in self.trials.items() if self.shown and key[1] >= 0}
        found = [
            (arm, self.trials[block, arm].position + 1, value, "ok")
            for (block, arm), one in figure.items()
            if (value := one.pressed if pressed else one.waited) is not None
        ]
        who = "some task" if pressed else "the guest"
        unit = "% of the time some task waited" if pressed else "% of its time the guest waited"
        label = f"How long {who} waited for a CPU during each trial, in per cent of the time."
        return drawn.trials_chart(found, unit, label, zero=True) if found else Markup()
