"""Parts of the site's pages: tables of cells, and lines drawn over time."""

import hashlib
import math

from msgspec import Struct, field

from kduel.analysis.campaigns.history import MetricSeries
from kduel.core.format import amount
from kduel.core.text import visible
from kduel.core.validation import moment
from kduel.report.campaigns.history import change
from kduel.study.plan import slug


class Mark(Struct, frozen=True):
    """A run in a strip: its sign in its tone, with what it says in words."""

    sign: str
    tone: str
    about: str
    link: str = ""


class Cell(Struct, frozen=True):
    """A cell of a table; `link` is relative to the page, `tone` a class of style.css, `strip` a mark for each run, the oldest first."""

    text: str
    link: str = ""
    tone: str = ""
    number: bool = False
    strip: tuple[Mark, ...] = ()


class Table(Struct, kw_only=True):
    """Rows under a head; `left_out` counts rows that are not shown."""

    head: list[Cell]
    rows: list[list[Cell]]
    left_out: int = 0


class Chart(Struct, kw_only=True):
    """A metric of a contender over time, as coordinates in a box of WIDTH by HEIGHT."""

    title: str
    about: str
    points: list[tuple[float, float, str]]
    """x, y, and what the point is."""
    changes: list[tuple[float, str]]
    """x of a rule, and what changed."""
    top: str
    bottom: str
    first: str
    last: str


class Section(Struct, kw_only=True):
    """A heading with sentences, tables and charts."""

    heading: str
    sentences: list[str] = field(default_factory=list)
    table: Table | None = None
    charts: list[Chart] = field(default_factory=list)


class Page(Struct, kw_only=True):
    name: str
    title: str
    sections: list[Section]
    answer: list[tuple[str, str]] = field(default_factory=list)
    """What a visitor wants to know first: a claim, and how sure it is."""
    step: str = ""
    """What to do next."""
    command: str = ""


WIDTH, HEIGHT = 640, 150
NONE = Cell("–", number=True)


def file_name(kind: str, *words: str) -> str:
    """A page's file name: readable, safe, and another for every subject."""
    mark = hashlib.sha256("\0".join(words).encode()).hexdigest()[:8]
    return f"{kind}-{slug('-'.join(words))[:50].lower()}-{mark}.html"


def number(value: float | int | None, digits: int | None = None) -> Cell:
    if value is None or not math.isfinite(value):
        return NONE
    return Cell(amount(value) if digits is None else f"{value:.{digits}f}", number=True)


def chart(line: MetricSeries) -> Chart:
    """Times run from left to right as far apart as they are; values fill the height."""
    times = [found.timestamp() if (found := moment(point.when)) else 0.0 for point in line.points]
    values = [point.mean for point in line.points]
    low, high, start, end = min(values), max(values), min(times), max(times)

    def x(place: int) -> float:
        if end == start:
            return WIDTH * (place + 0.5) / len(times)
        return round(8 + (WIDTH - 16) * (times[place] - start) / (end - start), 1)

    def y(value: float) -> float:
        return round(HEIGHT / 2 if high == low else HEIGHT - 8 - (HEIGHT - 16) * (value - low) / (high - low), 1)

    changes = [(x(step.index), f"{change(step)} on {line.points[step.index].time_text}") for step in line.steps]
    told = "; ".join(words for _, words in changes) or "no change found"
    return Chart(
        title=f"{line.contender}, {line.machine}",
        about=f"{len(values)} runs from {line.points[0].time_text} to {line.points[-1].time_text}: {told}.",
        points=[
            (x(place), y(point.mean), f"{point.time_text} {visible(point.run, 80)}: {amount(point.mean)} {line.unit}")
            for place, point in enumerate(line.points)
        ],
        changes=changes,
        top=f"{amount(high)} {line.unit}",
        bottom=f"{amount(low)} {line.unit}",
        first=line.points[0].time_text,
        last=line.points[-1].time_text,
    )
