"""Progress messages for the user. The silent `Progress` here is for scripts and tests; the terminal's is in kduel.cli."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Task:
    """A piece of long work: `advance` by units (bytes, steps) out of the total given when it began."""

    def advance(self, amount: float = 1) -> None:
        """Report that `amount` more units are done."""

    def describe(self, text: str) -> None:
        """Replace the text next to the bar."""


class Progress:
    """Receives progress messages from modules. All methods may be called from any thread."""

    def info(self, text: str) -> None:
        """A line of information for the user."""

    def warn(self, text: str) -> None:
        """A line that a user must not miss, with -q either. What the report says as well is `info`."""

    @contextmanager
    def task(self, text: str, total: float | None = None) -> Iterator[Task]:
        """Long work, shown with a bar and an ETA where `total` is known."""
        yield Task()


class Once(Progress):
    """Passes messages on, but each warning only the first time: for work that is made ready again and again."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.warned: set[str] = set()

    def info(self, text: str) -> None:
        self.progress.info(text)

    def warn(self, text: str) -> None:
        if text not in self.warned:
            self.warned.add(text)
            self.progress.warn(text)

    @contextmanager
    def task(self, text: str, total: float | None = None) -> Iterator[Task]:
        with self.progress.task(text, total) as task:
            yield task
