"""Runs that are quick to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from kduel.store import whole_files


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of small files need not reach the disk: no test of this folder is about a crash of the host."""

    def nothing(_: Path) -> None:
        return None

    for name in ("sync_tree", "sync_tree_top"):
        monkeypatch.setattr(whole_files, name, nothing)
