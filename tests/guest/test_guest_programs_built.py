"""The guest's programs that come ready-made: they are those of the sources beside them, to the byte."""

from __future__ import annotations

import lzma
import platform
from pathlib import Path

import pytest

from kduel.core.cache import Cache
from kduel.core.errors import HostError
from kduel.guest import programs

AGAIN = "run scripts/programs, and commit what it writes"


def test_each_is_there_and_nothing_else() -> None:
    assert {path.name for path in programs.BUILT.iterdir()} == {f"{one.entry}.xz" for one in programs.ready_made()}, (
        AGAIN
    )


def test_compiled_again_they_are_the_same(tmp_path: Path) -> None:
    cache = Cache()
    for one in programs.ready_made():
        programs.compile_into(one, tmp_path, zig_cache=cache.root / "zig")
        packed = programs.BUILT / f"{one.entry}.xz"
        assert (tmp_path / one.product).read_bytes() == lzma.decompress(packed.read_bytes()), (
            f"{packed.name}: {AGAIN}"
        )


def test_without_zig_they_serve_and_others_name_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        raise programs.PackageNotFoundError(name)

    monkeypatch.setattr(programs, "version", missing)
    cache = Cache(tmp_path)
    for architecture in programs.READY_MADE:
        for name in programs.known():
            assert programs.build(name, architecture, cache=cache).read_bytes()[:4] == b"\x7fELF"
    if platform.machine() == "x86_64":
        for api in programs.APIS:
            assert programs.build_plugin("counter", api=api, cache=cache).is_file()
    with pytest.raises(HostError) as caught:
        programs.build("kbench", "riscv64", cache=cache)
    assert f"pip install ziglang=={programs.ZIG}" in caught.value.remedy


def test_a_changed_source_is_no_longer_the_ready_made_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = programs.recipe("kpolicy")
    copy = tmp_path / "kpolicy.c"
    copy.write_text(one.source.read_text() + "\n")
    for header in one.source.parent.glob("*.h"):
        (tmp_path / header.name).write_bytes(header.read_bytes())
    same = programs.ProgramRecipe(copy, one.product, one.flags)
    assert same.entry != one.entry and not (programs.BUILT / f"{same.entry}.xz").exists()
