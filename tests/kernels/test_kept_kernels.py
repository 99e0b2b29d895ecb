"""The record of a kept kernel is read before its entry is checked: a damaged one hides no other, and stops nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from heard import Heard

from kduel.core.cache import Cache
from kduel.core.errors import HostError
from kduel.core.plugins import plugins
from kduel.kernels.files import store


def keep(cache: Cache, number: int) -> Path:
    """A kernel of a release of Fedora, as far as lists of the cache go."""

    def build(into: Path) -> None:
        image = into / "vmlinuz"
        image.write_bytes(b"x")
        facts = {"exact": f"fedora:4{number}-6.1", "release": f"4{number}", "version": "6.1"}
        record = store.Record(
            release="6.1",
            architecture="x86_64",
            image="vmlinuz",
            sha256="",
            config=None,
            modules=None,
            provenance=facts,
        )
        (into / "kernel.json").write_bytes(msgspec.json.encode(record))

    return cache.entry("kernels", f"fedora-{number}", build)


def to_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "a changed key": lambda path: path.write_bytes(path.read_bytes().replace(b"exact", b"exacu")),
    "a changed letter": lambda path: path.write_bytes(path.read_bytes().replace(b'"4', b'[4')),
    "empty": lambda path: path.write_bytes(b""),
    "deep": lambda path: path.write_text("[" * 100_000),
    "a FIFO": to_fifo,
    "a loop": lambda path: path.unlink() or path.symlink_to(path.name),
    "no manifest": lambda path: (path.parents[2] / f"manifests/kernels/{path.parent.name}.json").unlink(),
    "an odd name": lambda path: shutil.move(path.parent, path.parents[1] / "fedora- \x1b[31m") and None,
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_record_is_passed_over_and_told(damage: str, tmp_path: Path) -> None:
    progress = Heard()
    cache = Cache(tmp_path / "cache", progress)
    DAMAGES[damage](keep(cache, 1) / "kernel.json")
    keep(cache, 2)
    cache = Cache(tmp_path / "cache", progress)
    fedora = plugins("kernels")["fedora"]
    assert [one.spec for one in fedora.available(cache=cache, progress=progress)] == ["fedora:42-6.1"]
    with pytest.raises(HostError, match="fedora:41 is not in the cache"):
        fedora.resolve("fedora:41", cache=cache, progress=progress, offline=True)
    assert damage in ("an odd name", "a loop") or any("fedora-1 is damaged" in line for line in progress.warned)
