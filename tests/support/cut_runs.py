"""Runs that were killed before their end."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path


def cut_run(run: Path, lost: Iterable[str]) -> None:
    """Make a finished run one that was killed before these trials, and so before its report was written."""
    for name in lost:
        shutil.rmtree(run / "trials" / name)
    (run / "results.json").unlink()
