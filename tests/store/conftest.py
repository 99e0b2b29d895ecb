"""Runs of version 0.1.0, unpacked (fixtures/README.md says how they were made), and `kduel` as a user starts it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kduel.cli import kduel as kduel_command
from kduel.core.plugins import plugins

HERE = Path(__file__).parent
FIXTURES = HERE / "fixtures"
SPINE = HERE.parent / "spine"
SOURCE = HERE.parents[1] / "src"
KINDS = sorted(path.name.removesuffix(".tar.xz") for path in FIXTURES.glob("*.tar.xz"))


@pytest.fixture
def output(outside: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What `kduel ARGUMENTS...` prints, started in this very process. Fails where its exit status is not 0."""
    monkeypatch.syspath_prepend(outside)
    monkeypatch.setenv("PYTHONPATH", f"{SOURCE}:{outside}")
    plugins.cache_clear()

    def call(*arguments: object) -> str:
        capsys.readouterr()
        assert kduel_command.main([*map(str, arguments)], standalone_mode=False) in (None, 0)
        return capsys.readouterr().out

    yield call
    plugins.cache_clear()


@pytest.fixture
def kduel(environment: dict[str, str], tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `kduel ARGUMENTS...`, by default in an empty directory."""
    place = tmp_path / "place"
    place.mkdir()

    def call(*arguments: object, cwd: Path = place) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "kduel", *map(str, arguments)],
            env=environment, cwd=cwd, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    return call
