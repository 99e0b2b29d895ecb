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


def test_a_tree_is_linked_and_not_pointed_to(tmp_path: Path) -> None:
    """A whole kernel's symbolic links took a minute to make and four to remove, on a disk in use."""
    tree, held = tmp_path / "tree", tmp_path / "held"
    (tree / "mm").mkdir(parents=True)
    held.mkdir()
    (tree / "mm/mmap.c").write_text("int brk;\n")
    (tree / "arch").symlink_to("mm")
    links, settings = stand_in(tree, held)
    assert (links / "mm/mmap.c").samefile(tree / "mm/mmap.c") and not (links / "mm/mmap.c").is_symlink()
    assert (links / "arch").readlink() == Path("mm")
    assert settings["CCACHE_BASEDIR"] == str(held)
