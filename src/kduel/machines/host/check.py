"""A condition of a host as it is told, and the reading of the files that tell it."""

from pathlib import Path
from typing import Literal

from msgspec import Struct


class Check(Struct, kw_only=True):
    """`what` is there, what it does to a measurement, and what to do about it."""

    weight: Literal["good", "disturbs", "prevents"] = "disturbs"
    what: str
    effect: str = ""
    remedy: str = ""


def read(path: Path) -> str | None:
    """A small file's text, or None where it cannot be read."""
    try:
        return path.read_text("utf-8", errors="replace").strip()
    except OSError:
        return None
