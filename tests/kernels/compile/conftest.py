"""Small trees, and `kduel` as a user starts it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import ForkedKduel
from small_tree import archive

from kduel.core.cache import Cache

SOURCE = Path(__file__).parents[3] / "src"
BROKEN = "int broken(void) { return nothing; }"


@pytest.fixture(scope="session")
def trees(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Source archives: two that build, and one that does not compile."""
    place = tmp_path_factory.mktemp("trees")
    return {
        "old": archive(place),
        "new": archive(place, patch=2, counters=100, more="int more(void) { return 4; }"),
        "broken": archive(place, patch=3, more=BROKEN),
    }


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    """A cache in which nothing has to be unpacked twice."""
    return Cache(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def kduel(
    forked_kduel: ForkedKduel, shared: Cache, tmp_path: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `kduel ARGUMENTS...` in an empty directory, in the environment of a user who builds kernels by hand."""

    def run(*words: object, **more: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {
            "PYTHONPATH": str(SOURCE),
            "KDUEL_CACHE": str(shared.root),
            "NO_COLOR": "1",
            "KCFLAGS": "-O0",
            "ARCH": "sparc",
            "CROSS_COMPILE": "nowhere-",
            "MAKEFLAGS": "-n",
        }
        return forked_kduel(words, cwd=tmp_path, environment=environment | more)

    return run


@pytest.fixture
def write_study(trees: dict[str, Path], tmp_path: Path) -> Callable[..., Path]:
    """Writes a study of small trees on the machine build."""

    def write(*names: str, blocks: str = "fixed = 1", more: str = "", config: str = "tinyconfig") -> Path:
        contenders = "".join(
            f'[[contender]]\nname = "{name}"\nkernel = "source:{trees[name]},config={config}"\n{more}'
            for name in names
        )
        path = tmp_path / "study.toml"
        path.write_text(
            f'[study]\nname = "small"\n{contenders}[machine]\nkind = "build"\n[settle]\nmode = "fixed"\nseconds = 0\n'
            f'[blocks]\n{blocks}\n[[benchmark]]\nuse = "kernel-build"\nprimary = ["real"]\n'
            '[[benchmark]]\nuse = "kernel-size"\nprimary = ["compressed", "vmlinux"]\n'
        )
        return path

    return write
