"""Findings as notes: one for each cause, numbered by weight; the verdicts that it touches bear the number."""

import re

from msgspec import Struct

from kduel.core.metric_results import FindingResult, MetricResult
from kduel.core.results import Results
from kduel.core.text import list_few, visible
from kduel.judge.lint.finding import catalogue

MOST_IMPORTANT = 3
"""So many notes a report shows; the others on demand."""
NAMED = 3
CODE = re.compile(r"`(kduel [^`]+|--[a-z][a-z-]* [\w:]+|-*\w[\w=./+-]*)`")
"""Our own commands, options with their value, and single words, in backquotes; names may hold backquotes, too."""


def split_code(text: str) -> list[str]:
    """Parts of a text, of which each second one is code, without its backquotes."""
    return CODE.split(text)


class NoteEntry(Struct, kw_only=True):
    """A finding of one metric; `metric` is empty for one about the whole run."""

    metric: str
    code: str
    message: str
    weight: float

    @property
    def sentence(self) -> str:
        return f"{self.metric}: {self.message}" if self.metric else self.message


class Note(Struct, kw_only=True):
    """All findings of one cause. What touches no metric is about the whole run."""

    number: int
    cause: str
    """As a heading; empty where the catalogue does not know the code."""
    entries: list[NoteEntry]
    """The weightiest first."""

    @property
    def code(self) -> str:
        return self.entries[0].code

    @property
    def message(self) -> str:
        return self.entries[0].message

    @property
    def touches(self) -> list[str]:
        return list(dict.fromkeys(entry.metric for entry in self.entries if entry.metric))

    @property
    def sentence(self) -> str:
        """The cause, the metrics, and the weightiest evidence."""
        touches = self.touches
        if len({entry.message for entry in self.entries}) == 1:
            return f"{list_few(touches, NAMED)}: {self.message}" if touches else self.message
        whole = f"{self.cause}, in {list_few(touches, NAMED)}" if len(touches) > 1 else self.cause
        return f"{whole}. {self.entries[0].sentence}" if self.cause else self.entries[0].sentence

    @property
    def details(self) -> list[str]:
        """Every further finding of this cause, shown on request: one line for each message, with its metrics."""
        metrics: dict[str, list[str]] = {}
        for entry in self.entries:
            metrics.setdefault(entry.message, []).extend([entry.metric] if entry.metric else [])
        alike = list(dict.fromkeys(metrics.pop(self.message)))
        named = [f"Metrics: {', '.join(alike)}."] if len(alike) > NAMED else []
        return named + [
            f"{', '.join(dict.fromkeys(names))}: {message}" if names else message
            for message, names in metrics.items()
        ]


class Notes(Struct, kw_only=True):
    """All notes of a run, by weight. `marks` has the numbers by id() of a MetricResult: they live as long as its Results."""

    notes: list[Note]
    marks: dict[int, list[int]]
    run: str
    """The run's directory as the user may type it."""

    @property
    def important(self) -> list[Note]:
        return self.notes[:MOST_IMPORTANT]

    @property
    def others(self) -> list[Note]:
        return self.notes[MOST_IMPORTANT:]

    @property
    def hidden_sentence(self) -> str:
        """Sentence on what the most important notes leave out, and how to see it; empty where they leave out nothing."""
        more, details = len(self.others), sum(len(note.details) for note in self.notes)
        if not more and not details:
            return ""
        counted = (
            f"{more} more {'finding' if more == 1 else 'findings'}" if more else "Every metric of these findings"
        )
        return f"{counted}: kduel report {self.run} --all-findings"

    def chosen(self, all_findings: bool) -> list[tuple[str, str]]:
        """(number, sentence) of the most important notes, or of all, each followed by its details without a number."""
        if not all_findings:
            return [(str(note.number), note.sentence) for note in self.important]
        return [
            row
            for note in self.notes
            for row in [(str(note.number), note.sentence), *(("", sentence) for sentence in note.details)]
        ]

    def marks_of(self, metric: MetricResult) -> list[int]:
        return self.marks.get(id(metric), [])

    def touching(self, metric: MetricResult) -> list[Note]:
        return [self.notes[number - 1] for number in self.marks_of(metric)]

    def with_marks(self, metric: MetricResult) -> str:
        """The metric's full name with its marks: `perf-stat/task_clock [2, 3]`."""
        marks = ", ".join(str(number) for number in self.marks_of(metric))
        return f"{key(metric)} [{marks}]" if marks else key(metric)


def key(metric: MetricResult) -> str:
    """The metric's full name, safe to show."""
    name = visible(metric.benchmark, 200)
    return f"{name}/{visible(metric.metric, 200)}" if metric.metric else name


def number_notes(results: Results, run: str = "RUN") -> Notes:
    """The findings by cause, the weightiest cause first: what touches a primary metric or the run counts double."""
    causes: dict[str, list[NoteEntry]] = {}
    touched: dict[str, list[MetricResult]] = {}
    for warning in results.warnings:
        causes.setdefault(cause_of(warning), []).append(entry(warning, ""))
    for metric in results.metrics:
        for warning in metric.warnings:
            cause = cause_of(warning)
            found = entry(warning, key(metric), 1.0 if metric.role == "primary" else 0.5)
            causes.setdefault(cause, []).append(found)
            touched.setdefault(cause, []).append(metric)
    # Stable: of one weight, those about the whole run come first.
    order = sorted(causes, key=lambda cause: -max(one.weight for one in causes[cause]))
    marks: dict[int, list[int]] = {}
    for number, cause in enumerate(order, 1):
        for metric in touched.get(cause, []):
            if number not in (numbers := marks.setdefault(id(metric), [])):
                numbers.append(number)
    notes = [
        Note(
            number=number,
            cause=visible(cause, 200) if causes[cause][0].code in catalogue() else "",
            entries=sorted(causes[cause], key=lambda one: -one.weight),
        )
        for number, cause in enumerate(order, 1)
    ]
    return Notes(notes=notes, marks=marks, run=run)


def cause_of(warning: FindingResult) -> str:
    """Cause that it shares with other findings; a code that the catalogue does not know stands for itself."""
    known = catalogue().get(warning.code)
    return known.cause if known else warning.code


def entry(warning: FindingResult, metric: str, share: float = 1.0) -> NoteEntry:
    """A finding as a note has it; `share` of its weight counts."""
    known = catalogue().get(warning.code)
    weight = share * (known.weight if known else 50)
    return NoteEntry(metric=metric, code=visible(warning.code, 80), message=visible(warning.message), weight=weight)
