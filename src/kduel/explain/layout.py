"""Lines of figures with a text behind them, fitted to a width: the tables of functions."""

import textwrap
from collections.abc import Sequence

from msgspec import Struct

from kduel.core.text import PLAIN_WIDTH, cut_in_the_middle, visible

READABLE = 32
"""Columns beside the figures that are enough for a name, which is cut in the middle where it is longer. Where there are
fewer, a name that does not fit stands below its figures, whole."""
NARROWEST = 16
"""Columns that a text gets at least: in a narrower terminal lines are longer than it."""


class Figures(Struct, frozen=True):
    cells: tuple[str, ...]
    text: str
    note: str = ""
    """In brackets behind the text, or below it where both are too long for one line."""
    name: bool = False
    """True if the text is a name, which is cut in the middle and not folded."""


Line = Figures | str
"""Line of a page: figures, a sentence, or an empty string for an empty line."""


def lay_out(lines: Sequence[Line], width: int = PLAIN_WIDTH) -> list[str]:
    """The lines of a page: figures right-aligned, as wide as they need, sentences and long texts folded."""
    rows = [line.cells for line in lines if isinstance(line, Figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    found: list[str] = []
    for line in lines:
        found += (
            lay_out_figures(line, widths, width) if isinstance(line, Figures) else fold_sentence(line, width) or [""]
        )
    return found


def lay_out_figures(line: Figures, widths: Sequence[int], width: int) -> list[str]:
    """One line of figures, or several where its text is too long."""
    start = "  ".join(f"{cell:>{wide}}" for cell, wide in zip(line.cells, widths, strict=True)) + "  "
    room = max(width - len(start), NARROWEST)
    text, note = visible(line.text), f"({line.note})" if line.note else ""
    whole = f"{text} {note}".rstrip()
    if len(whole) <= room:
        said = [whole]
    elif line.name and room < READABLE:
        below = [whole] if len(whole) <= width else [cut_in_the_middle(text, width), note]
        return [start.rstrip(), *(f"{one:>{width}}" for one in below if one)]
    elif line.name:
        said = [cut_in_the_middle(text, room), *fold_sentence(note, room)]
    else:
        said = fold_sentence(whole, room)
    return [f"{start}{said[0]}".rstrip(), *(f"{'':{len(start)}}{more}" for more in said[1:])]


def fold_sentence(text: str, width: int) -> list[str]:
    """A sentence in lines; [] for an empty one. No word is broken."""
    return textwrap.wrap(visible(text), width, break_on_hyphens=False, break_long_words=False)
