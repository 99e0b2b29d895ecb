"""The terminal's `ProgressReport`: lines on stderr, bars with an ETA, and a table that is redrawn in place."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from kduel.core.progress import Progress as ProgressReport
from kduel.core.progress import Task
from kduel.core.text import printable

if TYPE_CHECKING:
    from kduel.cli.screen import Frame


REDRAWS_PER_SECOND = 2
"""Seconds pass visibly, and a slow line carries it."""


def on_words(text: str) -> str:
    """Lines that are longer than the terminal's, broken between words, so that a path stays whole."""
    width = shutil.get_terminal_size().columns
    out = []
    for line in text.split("\n"):
        filled, *words = line.split(" ")
        for word in words:
            if len(click.unstyle(f"{filled} {word}")) > width and filled.strip():
                out.append(filled)
                filled = word
            else:
                filled += f" {word}"
        out.append(filled)
    return "\n".join(out)


def coloured(text: str, colour: str) -> str:
    """Bold text in a colour, for `click.echo`; only bold where NO_COLOR is set."""
    return click.style(text, fg=None if os.environ.get("NO_COLOR") else colour, bold=True)


class BarTask(Task):
    """A bar of rich's."""

    def __init__(self, progress: Any, number: Any) -> None:
        self.progress = progress
        self.number = number

    def advance(self, amount: float = 1) -> None:
        self.progress.advance(self.number, amount)

    def describe(self, text: str) -> None:
        self.progress.update(self.number, description=printable(text))


class Terminal(ProgressReport):
    """Talks to a person on stderr; bars only where stderr is a terminal, else a line when work begins."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.progress: Any = None
        """What is drawn in place: rich's Progress or Live."""
        self.drawing = False
        """Whether that is a frame, which has no place for bars."""

    def info(self, text: str) -> None:
        if not self.quiet:
            self.print(printable(text))

    def warn(self, text: str) -> None:
        self.print(f"{coloured('note:', 'yellow')} {printable(text)}")

    def print(self, text: str) -> None:
        """A line above any bar."""
        if self.progress is not None:
            from rich.text import Text

            self.progress.console.print(Text.from_ansi(text), overflow="fold")
        else:
            click.echo(on_words(text) if sys.stderr.isatty() else text, err=True)

    def confirm(self, question: str) -> bool:
        """Ask yes or no, bars out of the way; no where input has ended."""
        if self.progress is not None:
            self.progress.stop()
        try:
            return click.confirm(question, default=False, err=True)
        except click.Abort:
            return False
        finally:
            if self.progress is not None:
                self.progress.start()

    @property
    def can_draw(self) -> bool:
        """Whether something may be redrawn in place: not in a pipe, a log or a terminal without cursor movement."""
        return not self.quiet and sys.stderr.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")

    @contextmanager
    def drawn(self, frame: Frame) -> Iterator[None]:
        """Keep `frame` on the screen, redrawn in place, below whatever is printed meanwhile; gone at the end."""
        from rich.console import Console
        from rich.live import Live

        from kduel.cli.screen import Screen

        console = Console(stderr=True, highlight=False)
        live = Live(
            Screen(frame), console=console, refresh_per_second=REDRAWS_PER_SECOND, transient=True,
            redirect_stdout=False, vertical_overflow="crop",
        )  # fmt: skip
        with live:
            self.progress, self.drawing = live, True
            try:
                yield
            finally:
                self.progress, self.drawing = None, False

    @contextmanager
    def task(self, text: str, total: float | None = None) -> Iterator[Task]:
        if not self.can_draw:
            self.info(text)
            yield Task()
            return
        if self.drawing:
            yield Task()
            return
        if self.progress is not None:
            number = self.progress.add_task(printable(text), total=total)
            try:
                yield BarTask(self.progress, number)
            finally:
                self.progress.remove_task(number)
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(bar_width=24)]
        with Progress(
            *columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True), transient=True
        ) as progress:
            self.progress = progress
            try:
                yield BarTask(progress, progress.add_task(printable(text), total=total))
            finally:
                self.progress = None
