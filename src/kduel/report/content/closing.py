"""A run's result on one screen: headline, intervals, at most three findings, what to do next; not the report."""

import textwrap

from kduel.core.format import plain_number
from kduel.core.results import Results
from kduel.core.text import plural, visible
from kduel.report.content.answer import answer, scheduler_step
from kduel.report.content.counted import commands_of_parts, is_counted, is_sharing, is_touching
from kduel.report.content.digest import Digest, digest, largest_first
from kduel.report.content.evidence import evidence
from kduel.report.content.machines import by_machine
from kduel.report.content.notes import Note
from kduel.report.content.overview import clip, overview
from kduel.report.content.textgrid import Line

EXACT_MEANS = (
    "These are path lengths in the kernel, the same on every host: a lower count is a reason to expect a faster kernel, but no proof. "
    "Caches, stalls, other CPUs and scheduling decisions are not in them."
)
SHARING_MEANS = (
    "These are the cache lines that CPUs fight over, the same on every host: more of them is a reason to expect worse scaling to many "
    "CPUs, but no proof. Waiting, queues and migrations are not in them."
)
TOUCHING_MEANS = (
    "These are the cache lines and pages that a call touches, each once, the same on every host: fewer of them are a reason to expect a "
    "cheaper call where the caches are cold, but no proof. No cache is modelled."
)
LINES_EACH = 2
"""Lines of a finding or a piece of advice."""
LINES_EACH_SAID = 3
LINES_OF_ANSWER = 2
"""Of each part's claims on a low screen, and of how sure they are on another."""
CAVEATS = 2
LOW = 20
"""Lines of a screen below which only the first step stands."""
FEWEST_ROWS = 4
"""Rows of a table, which findings give way to."""


def closing(results: Results, run: str, width: int, height: int) -> list[Line]:
    """At most `height` lines of `width` columns. `run` is the directory as the user may type it."""
    said = digest(results, run)
    title = " · ".join([said.title, *said.facts])
    lines: list[Line] = [[(clip(title, width), "dim")]]
    found_answer = answer(results, run)
    most = max(LINES_OF_ANSWER, height // (5 if len(results.parts) > 1 else 6))
    for part in found_answer.parts:
        # What was shown gives way to how sure that is: a claim without it says too much.
        sure = wrap_marked(part.certainty, width, "", LINES_OF_ANSWER - (height < LOW))
        claims = wrap_marked(part.claim, width, "", max(LINES_OF_ANSWER, most - len(sure)))
        lines += [[(line, "bold")] for line in (*claims, *sure)]
    lines += [[(line, "")] for line in wrap_marked(found_answer.meaning, width, "", 2)]
    meaning = SHARING_MEANS if is_sharing(results) else TOUCHING_MEANS if is_touching(results) else EXACT_MEANS
    means = [[(line, "")] for line in wrap_marked(meaning, width, "! ", 3)] if is_counted(results) else []
    said_all = [(f"{note.number}. ", short(note)) for note in said.notes.important]
    said_all += [("! ", caveat) for caveat in said.caveats[:CAVEATS]]
    found = [[(line, "")] for mark, text in said_all for line in wrap_marked(text, width, mark, LINES_EACH)]
    fits = [
        f"{one.subject}, {line}" if len(said.comparisons) > 1 else line
        for one in said.comparisons
        for line in one.fits
    ]
    fitted = first_of(fits, "Fit: ", "more fit", width, height)
    after = [*found, *fitted, *means, *advice(results, said, run, width, low=height < LOW)]
    metrics = sorted(
        (one for comparison in said.comparisons for metric in comparison.gating for one in by_machine(metric)),
        key=lambda metric: metric.contender,
    )
    if is_counted(results):
        metrics.sort(key=lambda metric: (metric.contender, metric.verdict == "undecided", largest_first(metric)))
    # A heading, a name and a row of each contender, and how many are left out.
    fewest = min(max(FEWEST_ROWS, 2 + 2 * len({metric.contender for metric in metrics})), height // 2)
    room = height - len(lines) - len(after) - 1
    rest = after[len(found) :]
    begun = False
    while found and (room < fewest or begun):
        begun = found.pop()[0][0].startswith(" ")  # a finding's last lines, of which none stays alone
        room += 1
    after = [*found, *rest]
    if metrics:
        delta = 1.0 if results.study.delta is None else results.study.delta
        lines += overview(metrics, delta, width, max(FEWEST_ROWS, room))
        marks = f"┊ ±{plain_number(results.study.delta)} %, the smallest effect that matters"
        lines.append([(clip(f"{marks}; {evidence(results).bars(results)}", width), "dim")])
    return [*lines, *after][:height]


def first_of(said: list[str], mark: str, more: str, width: int, height: int) -> list[Line]:
    """The first of these sentences, and how many more there are."""
    shown = said[: max(1, height // 10)]
    lines = [line for one in shown for line in wrap_marked(one, width, mark, LINES_EACH_SAID)]
    if left := len(said) - len(shown):
        lines.append(f"and {plural(left, more)}")
    return [[(line, "")] for line in lines]


def short(note: Note) -> str:
    """The cause, how many metrics it touches, and the weightiest evidence; of the whole run the evidence alone."""
    touches = note.touches
    if not touches:
        return note.message
    where = touches[0] if len(touches) == 1 else plural(len(touches), "metric")
    return f"{note.cause} ({where}): {note.message}" if note.cause else f"{where}: {note.message}"


def advice(results: Results, said: Digest, run: str, width: int, *, low: bool) -> list[Line]:
    """Next steps: what an open question needs, where a difference comes from, and where all the rest is."""
    found = answer(results, run)
    steps = [(found.step, found.command), *commands_of_parts(results, run), scheduler_step(results, run)]
    sentences = list(dict.fromkeys(filter(None, steps[: 1 if low else None])))
    # The report of counts shows those that add something.
    hidden = 0 if is_counted(results) else sum(metric.role != "primary" for metric in results.metrics)
    more = [plural(len(others), "more finding")] if (others := said.notes.others) else []
    more += [plural(hidden, "exploratory metric")] if hidden else []
    sentences.append((f"{', '.join(more).capitalize() if more else 'All details'}:", f"kduel report {run}"))
    return [[(line, "")] for sentence, command in sentences for line in with_command(sentence, command, width)]


def with_command(sentence: str, command: str, width: int) -> list[str]:
    """`→ sentence command`, the command unbroken so that it can be pasted: on a line of its own where it must be."""
    if not command:
        return wrap_marked(sentence, width, "→ ", LINES_EACH)
    whole = f"→ {sentence} {command}"
    return [whole] if len(whole) <= width else [*wrap_marked(sentence, width, "→ ", LINES_EACH), f"  {command}"]


def wrap_marked(text: str, width: int, mark: str, most: int) -> list[str]:
    """`text` behind its mark in at most so many lines, cut with `...`."""
    return textwrap.wrap(
        visible(text), width, initial_indent=mark, subsequent_indent=" " * len(mark), max_lines=most,
        placeholder=" ...", break_on_hyphens=False,
    )  # fmt: skip
