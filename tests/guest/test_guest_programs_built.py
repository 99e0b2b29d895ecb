"""The guest's programs that come ready-made: they are those of the sources beside them, to the byte."""

from __future__ import annotations

import difflib
import lzma
import platform
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from kduel.core.cache import Cache
from kduel.core.errors import HostError
from kduel.guest import busybox, programs

AGAIN = "run scripts/programs, and commit what it writes"


def test_each_is_there_and_nothing_else() -> None:
    assert {path.name for path in programs.BUILT.iterdir()} == {f"{one.entry}.xz" for one in programs.ready_made()}, (
        AGAIN
    )


def sections(place: Path, name: str, data: bytes, readelf: str) -> list[str]:
    """A program's sections, as text."""
    (place / name).write_bytes(data)
    said = subprocess.run([readelf, "-SW", name], cwd=place, capture_output=True, text=True, check=True)
    return said.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted({one.flags[1] for one in programs.ready_made()}))
def test_compiled_again_they_are_the_same(
    tmp_path: Path,
    target: str,
    need: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    zig_cache: Callable[[str], AbstractContextManager[Path]],
) -> None:
    """In a cache of their own, and whatever the caller's environment says to compilers."""
    readelf = need("readelf")
    (tmp_path / "stdio.h").write_text("#error the caller's directory is searched\n")
    for name in ("CPATH", "C_INCLUDE_PATH", "ZIG_LIB_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    for one in programs.ready_made():
        if one.flags[1] != target:
            continue
        with zig_cache(target) as cache:
            programs.compile_into(one, tmp_path, zig_cache=cache)
        again = (tmp_path / one.product).read_bytes()
        shipped = lzma.decompress((programs.BUILT / f"{one.entry}.xz").read_bytes())
        if again != shipped:
            both = (
                sections(tmp_path, name, data, readelf) for name, data in (("shipped", shipped), ("again", again))
            )
            differences = "\n".join(difflib.unified_diff(*both, "shipped", "again", n=0))
            pytest.fail(f"{one.entry}: {AGAIN}\n{differences or 'the sections are alike, their contents differ'}")


def test_busybox_is_built_without_what_the_caller_tells_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CPATH", "CFLAGS", "MAKEFLAGS"):
        monkeypatch.setenv(name, "of the caller")
    busybox._run(["sh", "-c", 'test -z "$CPATH$CFLAGS$MAKEFLAGS"'])


def test_without_zig_they_serve_and_others_name_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        raise programs.PackageNotFoundError(name)

    monkeypatch.setattr(programs, "version", missing)
    cache = Cache(tmp_path)
    for architecture in programs.READY_MADE:
        for name in programs.program_names():
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
