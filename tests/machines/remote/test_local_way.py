"""What the machine `local` must know after a reboot, which may come at any moment after it is written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kduel.machines import local


def test_it_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "ROOT", tmp_path)
    (tmp_path / local.STATE).parent.mkdir(parents=True, exist_ok=True)
    way = local.Way(trial="b1", stage="leaving", boot_id="x")
    calls: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def note_sync(handle: int) -> None:
        calls.append(f"sync {Path(f'/proc/self/fd/{handle}').readlink().name}, {os.fstat(handle).st_size > 0}")
        fsync(handle)

    def note_rename(self: Path, target: Path) -> Path:
        calls.append(f"rename {self.name}")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "replace", note_rename)
    local.keep_way(way)
    fresh = Path(local.STATE).with_suffix(".new").name
    assert calls[:2] == [f"sync {fresh}, True", f"rename {fresh}"]
    assert local.read_way() == way
    local.forget_way()
    assert local.read_way() is None
