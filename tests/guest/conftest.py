"""What several tests of the guest's programs use."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def zig_cache(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], AbstractContextManager[Path]]:
    """zig_cache(TARGET): held for one compiler at a time. It has the C library, which takes a minute, once for all workers."""
    shared = tmp_path_factory.getbasetemp()
    shared = (shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared) / "zig"
    shared.mkdir(exist_ok=True)

    @contextmanager
    def hold(target: str) -> Iterator[Path]:
        with (shared / f"{target}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield shared / target

    return hold
