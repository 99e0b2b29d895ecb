"""Progress messages for the user. The silent `Progress` here is for scripts and tests; the terminal's is in kduel.cli."""

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


class UniqueMessages(Progress):
    """Passes each message on the first time only: for work that is made ready again and again."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.told: set[str] = set()

    def info(self, text: str) -> None:
        if self._is_new(text):
            self.progress.info(text)

    def warn(self, text: str) -> None:
        if self._is_new(text):
            self.progress.warn(text)

    def _is_new(self, text: str) -> bool:
        new = text not in self.told
        self.told.add(text)
        return new

    @contextmanager
    def task(self, text: str, total: float | None = None) -> Iterator[Task]:
        with self.progress.task(text, total) as task:
            yield task
