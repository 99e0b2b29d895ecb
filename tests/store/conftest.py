"""Kept runs, unpacked (fixtures/README.md says how they were made)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kduel.cli import kduel as kduel_command
from kduel.core.plugins import entry_points_by_group, plugins

HERE = Path(__file__).parent
FIXTURES = HERE / "fixtures"
SOURCE = HERE.parents[1] / "src"
KINDS = sorted(path.name.removesuffix(".tar.xz") for path in FIXTURES.glob("*.tar.xz"))


@pytest.fixture
def counts_belong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the kept run `icount` an exact part of the kept run `qemu`: it was made of another suite and seed."""
    monkeypatch.setattr("kduel.store.integrity.SUITE", "icount")
    monkeypatch.setattr("kduel.store.integrity.EXACT_SEED", 7)


@pytest.fixture
def output(outside: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What `kduel ARGUMENTS...` prints, started in this very process. Fails where its exit status is not 0."""
    monkeypatch.syspath_prepend(outside)
    monkeypatch.setenv("PYTHONPATH", f"{SOURCE}:{outside}")
    plugins.cache_clear()
    entry_points_by_group.cache_clear()

    def call(*arguments: object) -> str:
        capsys.readouterr()
        assert kduel_command.main([*map(str, arguments)], standalone_mode=False) in (None, 0)
        return capsys.readouterr().out

    yield call
    plugins.cache_clear()
    entry_points_by_group.cache_clear()
