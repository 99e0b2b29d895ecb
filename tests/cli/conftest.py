"""What several tests of commands use."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """`kduel`, by that name."""
    path = tmp_path / "bin/kduel"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m kduel "$@"\n')
    path.chmod(0o755)
    return path
