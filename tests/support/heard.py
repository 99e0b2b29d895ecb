"""A `Progress` for tests."""

from __future__ import annotations

from kduel.core.progress import Progress


class Heard(Progress):
    """Keeps what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.warned: list[str] = []

    def info(self, text: str) -> None:
        self.said.append(text)

    def warn(self, text: str) -> None:
        self.warned.append(text)
