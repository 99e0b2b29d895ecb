"""`kduel run --dry-run` and the lists of kernels that the cache keeps."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from heard import Heard
from made_kernels import Mirror

from kduel.cli.run import command
from kduel.core.cache import Cache
from kduel.kernels import OTHER_WAYS
from kduel.kernels.apt.archive import Archive


def plan(*words: str) -> str:
    """What a dry run tells, or why it refuses."""
    done = CliRunner().invoke(command, [*words, "--dry-run"])
    return f"{done.output}{done.exception or ''}"


@pytest.fixture
def listed(mirror: Mirror, cache: Cache, progress: Heard, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cache:
    """A cache with the list of an archive that has 6.1."""
    mirror.add_kernel("bookworm", "6.1.170-1", "6.1.0-47")
    mirror.publish()
    Archive(cache, progress).index()
    monkeypatch.setenv("KDUEL_CACHE", str(cache.root))
    monkeypatch.chdir(tmp_path)
    return cache


def test_a_kernel_that_the_kept_list_lacks_is_refused(listed: Cache) -> None:
    assert "Debian's archive has no generic kernel 6.99 for amd64" in plan("debian:6.1", "debian:6.99")
    assert "Debian's archive has no source of a kernel 6.1" in plan("debian:6.1", "debian-source:6.1")
    told = plan("debian:6.1", "debian:6.1.170-1")
    assert "Nothing was fetched" in told and "the archives have" not in told, "both are in the list"


def test_a_list_that_is_not_trusted_any_more_decides_nothing(listed: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = "whether the archives have debian:6.1, debian:6.99."
    path = listed.root / "archive/amd64/index.json"
    text = path.read_text()
    made = text.split('"made":')[1].split(",")[0]
    path.write_text(text.replace(made, str(float(made) - 2 * 86400)))
    assert asked in plan("debian:6.1", "debian:6.99")
    path.write_text(text)
    monkeypatch.setenv("KDUEL_DEBIAN_MIRROR", "http://127.0.0.1:9/other")
    assert asked in plan("debian:6.1", "debian:6.99")


def test_without_a_cache_nothing_is_known_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDUEL_CACHE", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    assert "whether the archives have debian:6.1, debian:6.12." in plan("debian:6.1", "debian:6.12")
    assert "debian:6.1 is not in the cache, and --offline" in plan("debian:6.1", "debian:6.12", "--offline")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", ["debian:4.19", "debian-source:4.19,config=tinyconfig+guest"])
def test_before_the_first_package_is_fetched_a_missing_kernel_is_told(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    mirror.add_kernel("bookworm", "6.1.170-1", "6.1.0-47")
    mirror.publish()
    monkeypatch.setenv("KDUEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(command, ["debian:6.1", missing, "--benchmark", "pipe", "--blocks", "1"])
    told = f"{done.output}{done.exception}{getattr(done.exception, 'remedy', '')}"
    assert "kernel" in told and "4.19" in told and OTHER_WAYS in told
    assert mirror.fetched("/bookworm/InRelease") == 1, "the list was asked for"
    assert not any(path.endswith(".deb") for path in mirror.asked)
