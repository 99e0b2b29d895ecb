"""A small Debian archive of our own, signed by a key of our own and served on loopback: the real apt talks to it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from heard import Heard
from made_kernels import Mirror, end_agent

from kduel.core.cache import Cache


@pytest.fixture
def progress() -> Heard:
    return Heard()


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture(scope="session")
def signing_home() -> Iterator[Path]:
    """GnuPG's directory; its socket's path must be short, so it is not below pytest's."""
    home = Path(tempfile.mkdtemp(prefix="gpg-"))
    yield home
    end_agent(home)
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Packages that several tests use."""
    return tmp_path_factory.mktemp("built")


@pytest.fixture
def mirror(
    tmp_path: Path, signing_home: Path, built: Path, monkeypatch: pytest.MonkeyPatch, need: Callable[..., str]
) -> Iterator[Mirror]:
    need("apt-get")
    need("gpg")
    with Mirror(tmp_path / "mirror", signing_home, built) as served:
        for name in [name for name in os.environ if name.startswith("KDUEL_") or name.lower().endswith("_proxy")]:
            monkeypatch.delenv(name)
        (tmp_path / "apt.conf").write_text(
            'Dir::Etc::parts "/dev/null"; Dir::Etc::main "/dev/null"; Acquire::Retries "0";\n'
        )
        monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
        monkeypatch.setenv("KDUEL_DEBIAN_MIRROR", served.address)
        monkeypatch.setenv("KDUEL_DEBIAN_KEYRING", str(served.keyring))
        yield served


@pytest.fixture(scope="session")
def real_cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    """For kernels from Debian's own archive. $KDUEL_TEST_CACHE keeps them between test runs."""
    kept = os.environ.get("KDUEL_TEST_CACHE")
    return Cache(Path(kept) if kept else tmp_path_factory.mktemp("real"))
