"""The builder of our static programs: same bytes everywhere, and errors that say what to do."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

import kduel.guest.programs as programs
from kduel.core.cache import Cache
from kduel.core.errors import HostError, InputError


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_same_bytes_from_another_place_and_another_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = programs.build("kbench", cache=Cache())
    elsewhere = tmp_path / "another" / "place" / "altogether"
    shutil.copytree(programs.SOURCES, elsewhere)
    monkeypatch.setattr(programs, "SOURCES", elsewhere)
    second = programs.build("kbench", cache=Cache(tmp_path / "cache"))
    assert second != first
    assert sha256(second) == sha256(first)


def test_a_program_is_static_and_runs_here() -> None:
    program = programs.build("kbench", cache=Cache())
    assert b"/lib64/ld-linux" not in program.read_bytes()
    done = subprocess.run([program, "--list"], capture_output=True, text=True, check=True)
    assert "null-call" in done.stdout


@pytest.mark.parametrize("program", ["kbench", "kwake", "kload", "kpolicy"])
def test_programs_are_built_for_aarch64_too(program: str) -> None:
    built = programs.build(program, "aarch64", cache=Cache()).read_bytes()
    assert built[:5] == b"\x7fELF\x02" and int.from_bytes(built[18:20], "little") == 183
    assert b"ld-linux" not in built and b"ld-musl" not in built


@pytest.mark.slow
def test_a_changed_source_is_another_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zig_cache: Callable[[str], AbstractContextManager[Path]]
) -> None:
    monkeypatch.setattr(programs, "SOURCES", tmp_path / "sources")
    (tmp_path / "sources").mkdir()
    source = tmp_path / "sources" / "answer.c"
    source.write_text("int main(void) { return 3; }\n")
    before = programs.recipe("answer").entry
    source.write_text("int main(void) { return 4; }\n")
    changed = programs.recipe("answer")
    assert changed.entry != before
    with zig_cache(changed.flags[1]) as cache:
        programs.compile_into(changed, tmp_path, zig_cache=cache)
    assert subprocess.run([tmp_path / changed.product], check=False).returncode == 4


def test_what_does_not_compile_is_told_with_the_compilers_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "SOURCES", tmp_path / "sources")
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "broken.c").write_text("int main(void) { return missing; }\n")
    with pytest.raises(HostError, match="missing"):
        programs.build("broken", cache=Cache(tmp_path / "cache"))


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(InputError, match="kbench"):
        programs.build("nothing-of-the-kind", cache=Cache())
    with pytest.raises(InputError, match="aarch64"):
        programs.build("kbench", "vax", cache=Cache())
