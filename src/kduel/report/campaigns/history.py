"""The report of a history: one section a series, and a plot with a rule at each change."""

from pathlib import Path
from typing import Any

from kduel.analysis.campaigns.history import MetricHistory
from kduel.analysis.campaigns.steps import LevelChange
from kduel.core.format import MISSING, mean_and_sd, percent, with_sign
from kduel.core.text import plural
from kduel.report.campaigns.page import CampaignPage, CampaignTable, PageSection, changed_lines
from kduel.report.plots.effects import PICTURE, Spec, base, layer, quantitative, svg

MOST_PICTURES = 12


def page_of(found: MetricHistory) -> CampaignPage:
    """Tables of all lines, those with a change first."""
    changed = sum(bool(line.steps) for line in found.lines)
    about = (
        f"{plural(found.runs, 'run')}, {plural(len(found.lines), 'line')}, {changed} with a change. A line without any "
        f"change is called changed with a chance of {100 * found.alpha:g} %; neighbouring runs may be alike (correlation "
        "0.5). It takes six runs at least."
    )
    sections = [PageSection(heading="Lines", sentences=[about])]
    for line in sorted(found.lines, key=lambda line: not line.steps):
        rows = [
            [
                point.time_text,
                Path(point.run).name,
                mean_and_sd(point.mean, point.sd),
                str(point.n),
                next((change(step) for step in line.steps if step.index == number), MISSING),
            ]
            for number, point in enumerate(line.points)
        ]
        bullets = [
            f"Changed by {change(step)} on {line.points[step.index].time_text} (p = {step.p:.2g}). {told}"
            for step, told in zip(line.steps, line.told, strict=True)
        ]
        table = CampaignTable(head=["time", "run", line.unit, "n", "change"], rows=rows, numbers_from=2)
        heading = f"{line.key}, {line.contender}, {line.machine}"
        sections.append(PageSection(heading=heading, table=table, bullets=bullets))
    if found.apart:
        sections.append(PageSection(heading="Separate series", bullets=found.apart))
    if found.skipped:
        bullets = [f"{run}: {why}" for run, why in found.skipped.items()]
        sections.append(PageSection(heading="Left out", bullets=bullets))
    if found.changed:
        sections.append(PageSection(heading="Changed afterwards", bullets=changed_lines(found.changed)))
    return CampaignPage(title="History", sections=sections)


def change(step: LevelChange) -> str:
    """In per cent where that means something."""
    if step.before > 0:
        return percent(100 * (step.after / step.before - 1))
    return with_sign(step.after - step.before, "g")


def picture(found: MetricHistory) -> Spec:
    """The lines as panels, the changed ones first; a rule at each change."""
    lines = sorted(found.lines, key=lambda line: not line.steps)[:MOST_PICTURES]
    panels: list[Spec] = []
    for line in lines:
        rows: list[dict[str, Any]] = [
            {
                "when": point.when,
                "mean": point.mean,
                "low": point.mean - (point.sd or 0),
                "high": point.mean + (point.sd or 0),
                "run": Path(point.run).name,
            }
            for point in line.points
        ]
        steps = [{"when": line.points[step.index].when} for step in line.steps]
        x: Spec = {"field": "when", "type": "temporal", "title": None}
        y: Spec = {"title": line.unit, "scale": {"zero": False}}
        spread = {"x": x, "y": quantitative("low", **y), "y2": {"field": "high"}}
        drawn = {"type": "line", "point": True, "color": PICTURE.arms[0]}
        panels.append(
            {
                "title": {"text": f"{line.key}, {line.contender}", "anchor": "start", "color": PICTURE.ink},
                "width": 640,
                "height": 140,
                "data": {"values": rows},
                "layer": [
                    layer({"type": "rule", "color": PICTURE.arms[1], "strokeWidth": 2}, {"x": x}, steps),
                    layer({"type": "rule", "color": PICTURE.dim}, spread),
                    layer(drawn, {"x": x, "y": quantitative("mean", **y)}),
                ],
            }
        )
    spec = base(PICTURE, 640, 140, [])
    for key in ("width", "height", "data", "autosize"):
        spec.pop(key)
    spec["vconcat"] = panels
    return spec


def draw_picture(found: MetricHistory) -> str:
    return svg(picture(found)) if found.lines else ""
