"""The effect on each of several machines, and on all of them: tables that every format shows alike."""

from __future__ import annotations

from typing import TypedDict

from msgspec import Struct

from kduel.core.format import estimate_texts, spread_text
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


class Cells(TypedDict):
    """An effect as it is shown."""

    effect: str
    interval: str


class MachineTable(Struct, frozen=True, kw_only=True):
    """A metric of one contender on all machines."""

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
    rows = [
        MachineRow(
            name=visible(one.machine, 80) or "this machine",
            n=one.n,
            **numbers(one.effect, one.low, one.high, unit),
            note="contradicts the others" if one.contradicts else "differs in size" if one.differs else "",
        )
        for one in found.effects
    ]
    count = plural(len(found.effects), "machine")
    if len(rows) > 1:
        rows.append(
            MachineRow(
                name="these machines", n=metric.n, **numbers(found.pooled, found.low, found.high, unit),
                note="" if found.scope == "class" else "the verdict", whole=True,
            )
        )  # fmt: skip
    if found.scope == "class":
        ratio = metric.scale == "ratio"
        effect = metric.effect_pct if ratio else metric.effect
        low, high = (metric.ci_low_pct, metric.ci_high_pct) if ratio else (metric.ci_low, metric.ci_high)
        if effect is not None:
            rows.append(
                MachineRow(
                    name="machines like these", n=metric.n, **numbers(effect, low, high, unit), note="the verdict",
                    whole=True,
                )
            )  # fmt: skip
    spread = ""
    if found.spread is not None and found.spread_low is not None and found.spread_high is not None:
        size = spread_text(found.spread, found.spread_low, found.spread_high, unit)
        spread = f"The true effects on {count} differ by {size}."
    return MachineTable(
        title=f"{key(metric)}: {visible(metric.contender, 80)} against {visible(metric.baseline, 80)}",
        rows=rows,
        spread=spread,
    )


def numbers(effect: float, low: float | None, high: float | None, unit: str) -> Cells:
    """The cells of effect and interval."""
    shown, interval = estimate_texts(effect, low, high, unit)
    return {"effect": shown, "interval": interval}
