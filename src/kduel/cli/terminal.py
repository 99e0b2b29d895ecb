"""The terminal's `ProgressReport`: lines on stderr, bars with an ETA while they make sense."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from kduel.core.progress import Progress as ProgressReport
from kduel.core.progress import Task
from kduel.core.text import printable


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

    def info(self, text: str) -> None:
        if not self.quiet:
            self.print(printable(text))

    def warn(self, text: str) -> None:
        self.print(f"{click.style('note:', fg='yellow', bold=True)} {printable(text)}")

    def print(self, text: str) -> None:
        """A line above any bar."""
        if self.progress is not None:
            from rich.text import Text

            self.progress.console.print(Text.from_ansi(text), soft_wrap=True)
        else:
            click.echo(text, err=True)

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

    @contextmanager
    def task(self, text: str, total: float | None = None) -> Iterator[Task]:
        if self.quiet or not sys.stderr.isatty():
            self.info(text)
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
