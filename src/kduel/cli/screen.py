"""A frame of lines as rich draws it: fitted to the terminal's present size, from a clean screen after a resize."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console, ConsoleOptions, RenderResult
from rich.control import Control
from rich.text import Text

CLEAN_FRAMES = 4
"""So many frames after a resize begin with a clean screen: a terminal may wrap its old lines after the first one."""

Frame = Callable[[int, int], list[list[tuple[str, str]]]]
"""From columns and rows to a screen's lines: pieces of text, each with rich's name of its style."""


class Screen:
    """Asks for the frame each time that it is drawn."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.size: tuple[int, int] | None = None
        self.clean = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        size = console.size.width, console.size.height
        if self.size not in (None, size):
            self.clean = CLEAN_FRAMES
        self.size = size
        if self.clean:
            # A terminal that wraps its old lines again leaves rich, which counts lines, in the wrong row.
            self.clean -= 1
            yield Control.clear()
            yield Control.home()
        for line in self.frame(*size):
            yield Text.assemble(*line, no_wrap=True, overflow="crop", end="\n")
