"""Fleets of workers on this machine, with the plug-ins of tests/support/outside.py: a process stands in for a guest."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


class Started(subprocess.Popen[str]):
    """Does not wait for ever for a command that a test gave up."""

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, *rest)


@pytest.fixture
def start(environment: dict[str, str], tmp_path: Path) -> Callable[..., Started]:
    """Starts `kduel ARGUMENTS...`."""

    def call(*arguments: object) -> Started:
        return Started(
            [sys.executable, "-P", "-m", "kduel", *map(str, arguments)],
            env=environment,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return call


@pytest.fixture
def write_study(write_study: Callable[..., Path]) -> Callable[..., Path]:
    """A study of two pretended kernels on the pretended machine, with blocks for several workers."""

    def write(machine: str = "", blocks: str = "fixed = 6") -> Path:
        return write_study(machine, blocks)

    return write
