"""What holds for all tests."""

from __future__ import annotations

import os
import shutil
import signal
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A shell starts what it puts in the background with SIGINT ignored, and children inherit that; several tests
# interrupt a child and see what it leaves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# And so does nohup with SIGHUP.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# No test is one of timing: a busy machine must not fail one.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


def _need(*programs: str) -> str:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    found = next(filter(None, (shutil.which(program, path=path) for program in programs)), None)
    if found is None:
        # In CI a skipped test would hide that scripts/setup-dev does not install what the test calls.
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"not installed: {' or '.join(programs)}")
    return found


@pytest.fixture(scope="session")
def need() -> Callable[..., str]:
    """need(PROGRAM, ...): the path of the first of these programs that is installed.

    Without any of them the test is skipped; where CI is set it fails.
    """
    return _need


@pytest.fixture
def unpack(tmp_path: Path) -> Callable[[str], Path]:
    """unpack(KIND): the run directory of a run of version 0.1.0 (store/fixtures/README.md), fresh for each test."""

    def run(kind: str) -> Path:
        with tarfile.open(Path(__file__).parent / f"store/fixtures/{kind}.tar.xz") as tar:
            # Python before 3.11.4 has no filters; these archives are our own.
            tar.extraction_filter = getattr(tarfile, "data_filter", None)
            tar.extractall(tmp_path / "old")
        return tmp_path / "old" / kind

    return run
