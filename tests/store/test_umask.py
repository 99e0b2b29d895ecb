"""What a run writes is as open as the user's umask lets any file be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kduel.store.whole_files import whole_directory, write_whole


@pytest.mark.parametrize("umask", [0o077, 0o022, 0o002])
def test_the_umask_is_respected(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write_whole(tmp_path / "file", b"x")
        with whole_directory(tmp_path / "run") as fresh:
            (fresh / "inside").write_bytes(b"x")
    finally:
        os.umask(before)
    for name, mode in (("file", 0o666), ("run", 0o777), ("run/inside", 0o666)):
        assert (tmp_path / name).stat().st_mode & 0o777 == mode & ~umask
