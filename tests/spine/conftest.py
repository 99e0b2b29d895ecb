"""`kduel` as a user starts it, with the plug-ins of outside.py installed beside it by their entry points."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"

STUDY = """
[study]
name = "letters"
delta = 1.0
[[contender]]
kernel = "outside:old"
[[contender]]
kernel = "outside:new"
[machine]
kind = "process"
{machine}
[settle]
mode = "fixed"
seconds = 0
[blocks]
{blocks}
[[benchmark]]
use = "outside-letters"
text = ["hello", "longer"]
primary = ["letters"]
"""


@pytest.fixture
def kduel(environment: dict[str, str], tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `kduel ARGUMENTS...` in an empty directory."""
    place = tmp_path / "place"
    place.mkdir()

    def call(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "kduel", *map(str, arguments)],
            env=environment,
            cwd=place,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            **options,
        )

    return call


@pytest.fixture
def write_study(tmp_path: Path) -> Callable[..., Path]:
    """A study of two pretended kernels on the pretended machine."""

    def write(machine: str = "", blocks: str = "fixed = 3") -> Path:
        path = tmp_path / "letters.toml"
        path.write_text(STUDY.format(machine=machine, blocks=blocks))
        return path

    return write
