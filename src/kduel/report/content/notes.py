"""Warnings as footnotes: each gets a number, and the verdicts that it touches bear the mark."""

from __future__ import annotations

from msgspec import Struct

from kduel.core.results import MetricResult, Results, Warning_
from kduel.core.text import visible

COMMON_FROM = 3


class Note(Struct, kw_only=True):
    """A warning with the number that marks the verdicts it touches; touching none, it is about the whole run."""

    number: int
    code: str
    message: str
    touches: list[str]

    @property
    def common(self) -> bool:
        """Whether it is said once for all that it touches, and not again beside each."""
        return not self.touches or len(self.touches) > COMMON_FROM

    @property
    def sentence(self) -> str:
        """The message behind the metrics that it touches."""
        others = f" and {len(self.touches) - 3} more" if len(self.touches) > 3 else ""
        return f"{', '.join(self.touches[:3])}{others}: {self.message}" if self.touches else self.message


class Notes(Struct, kw_only=True):
    """All notes of a run. `marks` has the numbers by id() of a MetricResult: they live as long as its Results."""

    notes: list[Note]
    marks: dict[int, list[int]]

    def marks_of(self, metric: MetricResult) -> list[int]:
        """The numbers of the notes that touch it."""
        return self.marks.get(id(metric), [])

    def of(self, metric: MetricResult) -> list[Note]:
        """The notes that touch it."""
        return [self.notes[number - 1] for number in self.marks_of(metric)]

    def marked(self, metric: MetricResult) -> str:
        """The metric's full name with its marks: `perf-stat/task_clock [2, 3]`."""
        marks = ", ".join(str(number) for number in self.marks_of(metric))
        return f"{key(metric)} [{marks}]" if marks else key(metric)


def key(metric: MetricResult) -> str:
    """The metric's full name, safe to show."""
    return f"{visible(metric.benchmark, 200)}/{visible(metric.metric, 200)}"


def numbered(results: Results) -> Notes:
    """The warnings with numbers, those of the whole run first; the same words get the same number."""
    notes: dict[tuple[str, str], Note] = {}
    marks: dict[int, list[int]] = {}

    def note(warning: Warning_) -> Note:
        known = warning.code, warning.message
        if known not in notes:
            notes[known] = Note(
                number=len(notes) + 1, code=visible(warning.code, 80), message=visible(warning.message), touches=[]
            )
        return notes[known]

    for warning in results.warnings:
        note(warning)
    for metric in results.metrics:
        for warning in metric.warnings:
            touched = note(warning)
            if key(metric) not in touched.touches:
                touched.touches.append(key(metric))
            numbers = marks.setdefault(id(metric), [])
            if touched.number not in numbers:
                numbers.append(touched.number)
    return Notes(notes=list(notes.values()), marks=marks)
