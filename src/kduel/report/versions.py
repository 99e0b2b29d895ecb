"""A run of several kernels as a history: a page with a line for each counted operation, over the versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from kduel.analysis.versions import Course, courses
from kduel.core.errors import InputError
from kduel.core.metric_results import ACCESSES, COUNTED, LOCKED, SHARED, TOUCHED
from kduel.core.results import Results
from kduel.judge.verdict.headline import matters
from kduel.report import DEFAULTS, Format, ReportOptions
from kduel.report.content.digest import digest
from kduel.report.page.render import render_page

if TYPE_CHECKING:
    from markupsafe import Markup

HEADINGS = {
    COUNTED: "Path lengths: instructions of an operation",
    SHARED: "Cache lines that CPUs share in an operation",
    ACCESSES: "Loads and stores to the cache lines that CPUs share in an operation",
    LOCKED: "Locked operations on the cache lines that CPUs share in an operation",
    TOUCHED: "Cache lines that an operation touches in the kernel",
}
WIDTH, HEIGHT, ROOM = 110.0, 26.0, 4.0
"""Pixels of an operation's line, and around it."""
LEAST_SPAN = 0.05
"""The smallest share of the largest value that the height of a line stands for."""


class Part(Struct, kw_only=True):
    heading: str
    courses: list[Course]
    nowhere: list[str]
    """Operations that are 0 in every version."""
    totals: list[dict[str, int]]
    """From each version to the next: how many operations take more, fewer, the same number, or depend on conditions."""


class VersionsFormat(Format):
    """For runs of several kernels on the machine icount, named in the order of their versions."""

    name: ClassVar[str] = "versions"
    summary: ClassVar[str] = "counts of several kernels as a history, an operation a line; one page"
    suffix: ClassVar[str] = ".html"

    def render(self, results: Results, options: ReportOptions = DEFAULTS) -> str:
        parts = [part for one in results.parts for part in parts_of(one)]
        if not parts:
            raise InputError(
                "the run has no counts to show by version", "Count some kernels: kduel run A B C --suite exact."
            )
        said = digest(results)
        return render_page(
            "versions.html", said=said, parts_shown=parts, names=[one.name for one in results.contenders],
            releases=[one.release or "" for one in results.contenders], line=line, tones=tones,
        )  # fmt: skip


PLUGIN = VersionsFormat()


def parts_of(results: Results) -> list[Part]:
    found = courses(results)
    parts = []
    for unit in dict.fromkeys(one.unit for one in found):
        mine = [one for one in found if one.unit == unit]
        changes = zip(*(one.changes for one in mine), strict=True)
        parts.append(
            Part(
                heading=HEADINGS.get(unit, unit),
                courses=[one for one in mine if not one.nowhere],
                nowhere=[one.label for one in mine if one.nowhere],
                totals=[
                    {word: sum(one.word == word for one in each) for word in ("more", "fewer", "equal", "depends")}
                    for each in changes
                ],
            )
        )
    return parts


def tones(course: Course) -> list[str]:
    """The tone of each version's cell: what it changes from the one before."""
    tone = {"more": "worse", "fewer": "better"}
    return ["", *(tone.get(one.word, "") if matters(one) else "" for one in course.changes)]


def line(course: Course) -> Markup:
    """The operation's values as a line, with a point in the colour of each change."""
    from markupsafe import Markup

    there = [value for value in course.values if value is not None]
    high = max(there, default=0.0)
    span = max(high - min(there, default=0.0), LEAST_SPAN * high) or 1.0
    step = (WIDTH - 2 * ROOM) / max(len(course.values) - 1, 1)

    def point_at(number: int, value: float) -> str:
        return f"{ROOM + step * number:.1f},{ROOM + (HEIGHT - 2 * ROOM) * (high - value) / span:.1f}"

    points = [point_at(number, value) for number, value in enumerate(course.values) if value is not None]
    marks: list[Any] = []
    for number, (value, tone) in enumerate(zip(course.values, tones(course), strict=True)):
        if value is not None and tone:
            x, y = point_at(number, value).split(",")
            marks.append(Markup('<circle cx="{}" cy="{}" r="3" class="{}"/>').format(x, y, tone))
    return Markup('<svg width="{}" height="{}" aria-hidden="true"><polyline points="{}"/>{}</svg>').format(
        f"{WIDTH:.0f}", f"{HEIGHT:.0f}", " ".join(points), Markup("").join(marks)
    )
