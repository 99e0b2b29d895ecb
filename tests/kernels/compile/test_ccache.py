"""ccache across trees."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kduel.core.cache import Cache
from kduel.core.progress import Progress
from kduel.kernels import resolve
from kduel.kernels.compile.from_source import stand_in


@pytest.mark.slow
def test_what_two_trees_share_is_compiled_once(
    trees: dict[str, Path], tmp_path: Path, need: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each path in the compiler's command named the tree, so that the second commit was built as if it were the first."""
    need("ccache")
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "ccache"))
    found = []
    for name in ("old", "new"):
        spec = f"source:{trees[name]},config=tinyconfig,ccache=yes"
        resolve(spec, cache=Cache(tmp_path / "cache"), progress=Progress())
        stats = subprocess.run(["ccache", "--print-stats"], capture_output=True, text=True, check=True).stdout
        found.append({line.split()[0]: int(line.split()[1]) for line in stats.splitlines()})
    first, second = ((one["direct_cache_hit"], one["cache_miss"]) for one in found)
    # fs/read.c alone is the same in both.
    assert first == (0, 3) and second == (1, 5), found


def test_a_tree_is_linked_by_its_directories(tmp_path: Path) -> None:
    """Links to a whole kernel's files took a minute to make and four to remove, on a disk in use; hard ones changed the files'
    stamps, so that the cache read all of them again. What make enters by itself has to be where its path says."""
    tree, held = tmp_path / "tree", tmp_path / "held"
    for name in ("mm/mmap.c", "tools/objtool/check.c", "tools/testing/one.c", "Makefile"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(name)
    held.mkdir()
    before = (tree / "mm/mmap.c").stat()
    links, settings = stand_in(tree, held)
    assert sorted(path.name for path in links.iterdir()) == ["Makefile", "mm", "tools"]
    assert (links / "mm").is_symlink() and (links / "tools/testing").is_symlink()
    assert (links / "tools/objtool").resolve() == links / "tools/objtool"
    assert all((links / name).read_text() == name for name in ("mm/mmap.c", "tools/objtool/check.c", "Makefile"))
    assert (tree / "mm/mmap.c").stat() == before and settings["CCACHE_BASEDIR"] == str(held)
