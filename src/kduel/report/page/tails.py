"""The page's part for tails: survival and shift of each benchmark, with the figures as lines."""

from markupsafe import Markup
from msgspec import Struct

from kduel.core.results import Results
from kduel.core.tail_results import TailResult
from kduel.report.content.tails import bound_sentence, model_lines, quantile_lines, shift_points
from kduel.report.plots.tails import shift_chart, survival_chart


class TailPart(Struct, kw_only=True):
    name: str
    survival: Markup
    bounds: list[tuple[str, str]]
    """Verdict and sentence."""
    figures: list[tuple[str, list[str]]]
    """By contender."""
    shifts: list[tuple[str, Markup, str]]
    """What is compared, the chart, and its figures."""


def tails_part(results: Results) -> list[TailPart]:
    """The section's parts; none for a run whose benchmarks keep no measurements."""
    groups: dict[tuple[str, str], list[TailResult]] = {}
    for tail in results.tails:
        if tail.survival:
            groups.setdefault((tail.benchmark, tail.metric), []).append(tail)
    arms = [contender.name for contender in results.contenders]
    label = "Share of measurements above each value; the lists below have figures."
    found = {
        place: TailPart(
            name="/".join(place),
            survival=survival_chart([(arms.index(tail.contender), tail) for tail in tails], label),
            bounds=[
                (one.bound.verdict, f"{one.contender}: {bound_sentence(one, one.bound)}")
                for one in tails
                if one.bound is not None
            ],
            figures=[(one.contender, [*quantile_lines(one), *model_lines(one)]) for one in tails],
            shifts=[],
        )
        for place, tails in groups.items()
    }
    for one in results.shifts:
        if part := found.get((one.benchmark, one.metric)):
            label = f"Change of quantiles of {one.contender}; the line below has the figures."
            drawn = shift_chart(one, arms.index(one.contender), results.study.delta, label)
            part.shifts.append((f"{one.contender} against {one.baseline}", drawn, shift_points(one)))
    return list(found.values())
