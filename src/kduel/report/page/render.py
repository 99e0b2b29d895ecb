"""Templates of pages, and what they call."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from kduel.core import format as amounts
from kduel.core.metric_results import MetricResult
from kduel.core.text import plural, visible
from kduel.core.version import full_version
from kduel.judge.verdict.headline import shows_difference, side
from kduel.report.content.answer import operation_words
from kduel.report.content.digest import SIGNS, largest_of, side_words, sign_of, unit_and_side
from kduel.report.content.notes import key, split_code
from kduel.report.content.overview import TOO_EARLY, left_out, too_early
from kduel.report.plots import effects as plots
from kduel.report.plots.intervals import intervals

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_ROWS = 12
"""Rows of a table of verdicts; the others are folded."""
MOST_OPEN_ROWS = 8
"""Of a table in which nothing differs."""
LONGEST_WHOLE = 29
"""Characters of a name that a line of a narrow window holds."""
axes: ContextVar[Iterator[int]] = ContextVar("axes")
"""Numbers of the axes of the page that is made."""


def render_page(template: str, **values: object) -> str:
    """The page that a template makes of these values. It is the same for the same values, whatever was made before."""
    axes.set(itertools.count(1))
    return templates().get_template(template).render(version=full_version(), **values)


@cache
def templates() -> Environment:
    """Jinja that escapes all that it is given, after making hidden characters visible. It compiles a template once."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    def make_visible(value: Any) -> Any:
        return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = Environment(
        loader=PackageLoader("kduel.report"), autoescape=True, undefined=StrictUndefined, finalize=make_visible,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"code": mark_code, "kind": unit_and_side, "unbroken": keep_names_whole}
    by_their_names: tuple[Callable[..., object], ...] = (
        sign_of, key, operation_words, foremost_rows, left_out, side, plural, plots.tone, too_early, amounts.amount,
        amounts.ranged_over, amounts.difference, amounts.detectable, amounts.effect, amounts.mean_and_sd, amounts.means,
        amounts.shown_unit, amounts.percent, amounts.plain_number,
    )  # fmt: skip
    environment.globals |= {one.__name__: one for one in by_their_names}
    environment.globals |= {
        "signs": SIGNS,
        "intervals": lambda metrics, delta: intervals(metrics, delta, f"axis{next(axes.get())}"),
        "sided": side_words,
        "decided": shows_difference,
        "interval": amounts.interval_text,
        "MISSING": amounts.MISSING,
        "TOO_EARLY": TOO_EARLY,
        "source": lambda name: Markup(environment.loader.get_source(environment, name)[0]),  # type: ignore[union-attr]
    }
    return environment


def mark_code(text: str) -> Markup:
    return Markup().join(
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part)
        for number, part in enumerate(split_code(visible(text)))
    )


def keep_names_whole(text: str) -> Markup:
    """The text with a number beside its unit and short names in one line: browsers break them at hyphens."""
    words = visible(text).replace(" %", "\N{NO-BREAK SPACE}%").split(" ")
    name = Markup('<span class="whole">{}</span>')
    return Markup(" ").join(
        name.format(word) if "-" in word and len(word) <= LONGEST_WHOLE else escape(word) for word in words
    )


def foremost_rows(metrics: list[MetricResult]) -> tuple[list[MetricResult], list[MetricResult]]:
    """Metrics that a table shows, and those that are folded: of too many the largest differences are shown."""
    most = MOST_ROWS if any(map(shows_difference, metrics)) else MOST_OPEN_ROWS
    shown = largest_of(metrics, most)
    kept = set(map(id, shown))
    return shown, [one for one in metrics if id(one) not in kept]
