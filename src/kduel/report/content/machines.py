"""The effect on each of several machines, and on all of them: tables that every format shows alike."""

from msgspec import Struct
from msgspec.structs import replace

from kduel.core.format import effect_numbers, estimate_texts, spread_text
from kduel.core.metric_results import MachinesResult, MetricResult
from kduel.core.results import Results
from kduel.core.text import plural, visible
from kduel.report.content.notes import key


class MachineRow(Struct, frozen=True, kw_only=True):
    """A machine, or all of them; cells as they are shown."""

    name: str
    n: int
    effect: str
    interval: str
    note: str = ""
    whole: bool = False
    """Whether it is about all machines."""

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        """In the order of HEAD."""
        return self.name, str(self.n), self.effect, self.interval, self.note


HEAD = ("machine", "blocks", "effect", "interval", "")


class MachineTable(Struct, frozen=True, kw_only=True):
    title: str
    rows: list[MachineRow]
    spread: str
    """How much the machines differ, a sentence; empty where nothing is known of it."""


def machine_tables(results: Results) -> list[MachineTable]:
    """A table for each metric that decides, or for every metric where none does."""
    return [table(metric, metric.machines) for metric in results.gating if metric.machines is not None]


def table(metric: MetricResult, found: MachinesResult) -> MachineTable:
    """Each machine, then what holds on all of them."""
    unit = "%" if metric.scale == "ratio" else visible(metric.unit, 40)

    def row(
        name: str, n: int, effect: float, low: float | None, high: float | None, note: str, whole: bool
    ) -> MachineRow:
        shown, interval = estimate_texts(effect, low, high, unit)
        return MachineRow(name=name, n=n, effect=shown, interval=interval, note=note, whole=whole)

    rows = []
    for one in found.effects:
        note = f"contradicts {found.rest}" if one.contradicts else "differs in size" if one.differs else ""
        rows.append(
            row(visible(one.machine, 80) or "this machine", one.n, one.effect, one.low, one.high, note, False)
        )
    count = plural(len(found.effects), "machine")
    of_class = found.scope == "class"
    if len(rows) > 1 and not metric.torn:
        note = "" if of_class else "the verdict"
        rows.append(row("these machines", metric.n, found.pooled, found.low, found.high, note, True))
    effect, low, high, _ = effect_numbers(metric)
    if of_class and effect is not None:
        rows.append(row("machines like these", metric.n, effect, low, high, "the verdict", True))
    spread = ""
    if found.spread is not None and found.spread_low is not None and found.spread_high is not None:
        size = spread_text(found.spread, found.spread_low, found.spread_high, unit)
        spread = f"The true effects on {count} differ by {size}."
    return MachineTable(
        title=f"{key(metric)}: {visible(metric.contender, 80)} against {visible(metric.baseline, 80)}",
        rows=rows,
        spread=spread,
    )


def by_machine(metric: MetricResult) -> list[MetricResult]:
    """The metric as each machine has it where machines contradict each other: their mean is no answer. Else itself."""
    if not metric.torn or metric.machines is None or metric.scale != "ratio":
        return [metric]
    return [
        replace(
            metric,
            metric=f"{metric.metric} on {one.machine}",
            effect_pct=one.effect,
            ci_low_pct=one.low,
            ci_high_pct=one.high,
            machines=None,
        )
        for one in metric.machines.effects
    ]
