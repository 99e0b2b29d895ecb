"""`kduel` as a user starts it, with the plug-ins of outside.py installed beside it by their entry points."""

from __future__ import annotations

import os
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
def environment(tmp_path: Path) -> dict[str, str]:
    """Environment variables of a user who has installed a distribution with four plug-ins."""
    site = tmp_path / "site"
    info = site / "outside-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    groups = {"benchmarks": "BENCHMARK", "kernels": "KERNELS", "machines": "MACHINE", "report": "REPORT"}
    (info / "entry_points.txt").write_text(
        "".join(f"[kduel.{group}]\noutside = outside:{name}\n" for group, name in groups.items())
    )
    (site / "outside.py").write_text((HERE / "outside.py").read_text())
    return os.environ | {
        "PYTHONPATH": f"{SOURCE}:{site}",
        "KDUEL_CACHE": str(tmp_path / "cache"),
        "NO_COLOR": "1",
    }


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
