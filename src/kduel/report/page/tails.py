"""The page's part for tails: survival and shift of each benchmark, with the figures as lines."""

from __future__ import annotations

from markupsafe import Markup
from msgspec import Struct

from kduel.core.results import Results
from kduel.core.tail_results import TailResult
from kduel.report.content.tails import bound_sentence, model_lines, quantile_lines, shift_line
from kduel.report.plots import effects as plots
from kduel.report.plots.tails import shift, survival


class TailPart(Struct, kw_only=True):
    """One benchmark's measurements; plots by number, with what they show."""

    name: str
    plots: list[tuple[str, int]]
    bounds: list[tuple[str, str]]
    """Verdict and sentence."""
    figures: list[tuple[str, list[str]]]
    """By contender."""
    shifts: list[str]


class TailsPart(Struct, kw_only=True):
    """The section; `pictures` are its plots."""

    parts: list[TailPart]
    pictures: list[Markup]


def tails_part(results: Results) -> TailsPart | None:
    """The section, or None for a run whose benchmarks keep no measurements."""
    groups: dict[tuple[str, str], list[TailResult]] = {}
    for tail in results.tails:
        if tail.survival:
            groups.setdefault((tail.benchmark, tail.metric), []).append(tail)
    found = TailsPart(parts=[], pictures=[])

    def draw(words: str, spec: plots.Spec) -> tuple[str, int]:
        found.pictures.append(plots.picture(spec))
        return words, len(found.pictures) - 1

    for (benchmark, metric), tails in groups.items():
        shifts = [one for one in results.shifts if (one.benchmark, one.metric) == (benchmark, metric)]
        found.parts.append(
            TailPart(
                name=f"{benchmark}/{metric}",
                plots=[
                    draw("Share of measurements above each value", survival(tails, plots.PAGE)),
                    *(
                        draw(f"Change of quantiles of {one.contender}", shift(one, results.study.delta, plots.PAGE))
                        for one in shifts
                    ),
                ],
                bounds=[
                    (one.bound.verdict, bound_sentence(one, one.bound)) for one in tails if one.bound is not None
                ],
                figures=[(one.contender, [*quantile_lines(one), *model_lines(one)]) for one in tails],
                shifts=[shift_line(one) for one in shifts],
            )
        )
    return found if found.parts else None
