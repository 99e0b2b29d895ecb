"""KDuel: which Linux kernel or scheduler is faster, by how much, and whether you can be sure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kduel.notebook import LoadedRun


def load(run: str | Path) -> LoadedRun:
    """A run's results, tables and plots, for scripts and notebooks. Raises InputError where `run` is none."""
    # The command line must start at once: what this needs is imported when it is used.
    from kduel.notebook import load

    return load(run)
