"""Makes tests/many/made_runs.py importable, and its runs quick to write."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kduel.store import rundir

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of small files need not reach the disk: no test of this folder is about a crash of the host."""

    def nothing(_: Path) -> None:
        return None

    for name in ("sync_tree", "sync_tree_top"):
        monkeypatch.setattr(rundir, name, nothing)
