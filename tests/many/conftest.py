"""Makes tests/many/made_runs.py importable, and its runs quick to write."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kduel.store import merged, rundir

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of small files need not reach the disk: no test of this folder is about a crash of the host."""

    def nothing(_: Path) -> None:
        return None

    for module, name in ((rundir, "sync_tree"), (rundir, "sync_tree_top"), (merged, "sync_tree")):
        monkeypatch.setattr(module, name, nothing)
