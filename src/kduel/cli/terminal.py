"""The terminal's `ProgressReport`: lines on stderr, bars with an ETA, and a table that is redrawn in place."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from kduel.core.progress import Progress as ProgressReport
from kduel.core.progress import Task
from kduel.core.text import PLAIN_WIDTH, obeys_escapes, printable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kduel.cli.screen import Frame, InPlace


REDRAWS_PER_SECOND = 2
"""Seconds pass visibly, and a slow line carries it."""


def say(text: str, command: str = "") -> None:
    """A message on stderr, on a terminal broken between words, but not in a command behind it, which is pasted."""
    if not sys.stderr.isatty():
        click.echo(f"{text} {command}".rstrip(), err=True)
    elif command and len(f"{text} {command}") > shutil.get_terminal_size().columns:
        click.echo(f"{wrap_words(text)}\n{command}", err=True)
    else:
        click.echo(wrap_words(f"{text} {command}".rstrip()), err=True)


def wrap_words(text: str) -> str:
    """Lines broken between words at the terminal's width, in a pipe at PLAIN_WIDTH; paths and commands stay whole."""
    width = shutil.get_terminal_size((PLAIN_WIDTH, 0)).columns
    out = []
    for line in text.split("\n"):
        filled, *words = re.sub("`[^`]*`", lambda command: command[0].replace(" ", "\0"), line).split(" ")
        for word in words:
            if len(click.unstyle(f"{filled} {word}")) > width and filled.strip():
                out.append(filled)
                filled = word
            else:
                filled += f" {word}"
        out.append(filled)
    return "\n".join(out).replace("\0", " ")


def colour_text(text: str, colour: str) -> str:
    """Bold text in a colour, for `click.echo`; only bold where NO_COLOR is set, and plain where the terminal obeys no escapes."""
    if not obeys_escapes():
        return text
    return click.style(text, fg=None if os.environ.get("NO_COLOR") else colour, bold=True)


def bold(text: str) -> str:
    """Bold text, for `click.echo`; plain where the terminal obeys no escapes."""
    return click.style(text, bold=True) if obeys_escapes() else text


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
        self.live: InPlace | None = None
        """The part of the screen that is drawn in place."""
        self.bars: Any = None
        """rich's Progress with the bars, if bars are drawn."""
        self.drawing = False
        """True while a frame is drawn, which has no place for bars."""

    def info(self, text: str) -> None:
        if not self.quiet:
            self.print(printable(text))

    def warn(self, text: str) -> None:
        self.print(f"{colour_text('note:', 'yellow')} {printable(text)}")

    def print(self, text: str) -> None:
        """A line above any bar; elsewhere lines of whole words."""
        if self.live is not None:
            from rich.text import Text

            self.live.console.print(Text.from_ansi(text), overflow="fold")
        else:
            click.echo(wrap_words(text), err=True)

    def confirm(self, question: str) -> bool:
        """Ask yes or no, bars out of the way; no where input has ended."""
        live = self.live
        if live is not None:
            live.stop()
        try:
            return click.confirm(question, default=False, err=True)
        except click.Abort:
            return False
        finally:
            if live is not None:
                live.start()

    @property
    def can_draw(self) -> bool:
        """True if something may be redrawn in place: not in a pipe, a log or a terminal without cursor movement."""
        return not self.quiet and sys.stderr.isatty() and obeys_escapes()

    @contextmanager
    def show_frame(self, frame: Frame) -> Iterator[None]:
        """Keep `frame` on the screen, redrawn in place, below whatever is printed meanwhile; gone at the end."""
        from kduel.cli.screen import Screen

        with self.show_in_place(Screen(frame)):
            self.drawing = True
            try:
                yield
            finally:
                self.drawing = False

    @contextmanager
    def show_in_place(self, drawn: RenderableType) -> Iterator[None]:
        """Keep what rich renders on the screen, and print above it."""
        from rich.console import Console

        from kduel.cli.screen import InPlace

        with InPlace(drawn, Console(stderr=True, highlight=False), REDRAWS_PER_SECOND) as self.live:
            try:
                yield
            finally:
                self.live = None

    @contextmanager
    def task(self, text: str, total: float | None = None) -> Iterator[Task]:
        if not self.can_draw:
            self.info(text)
            yield Task()
            return
        if self.drawing:
            yield Task()
            return
        if self.bars is not None:
            number = self.bars.add_task(printable(text), total=total)
            try:
                yield BarTask(self.bars, number)
            finally:
                self.bars.remove_task(number)
            return
        from rich.progress import (
            BarColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(bar_width=24)]
        bars = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn())
        number = bars.add_task(printable(text), total=total)
        with self.show_in_place(bars):
            self.bars = bars
            try:
                yield BarTask(bars, number)
            finally:
                self.bars = None
