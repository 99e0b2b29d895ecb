"""ccache across trees."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kduel.core.cache import Cache
from kduel.core.progress import Progress
from kduel.kernels import resolve


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
