"""The test machine, switched on once for each file; a file's MACHINE says which one, where it is not the usual one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from local_machine import LocalMachine
from real_machine import Real


@pytest.fixture(scope="module")
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    machine: Real = getattr(request.module, "MACHINE", Real)(tmp_path_factory.mktemp("machine"))
    try:
        machine.switch_on()
        machine.wait()
        machine.furnish()
        yield machine
    finally:
        machine.switch_off()


@pytest.fixture
def fixture(tmp_path: Path) -> LocalMachine:
    """The machine `local`, in namespaces of its own."""
    return LocalMachine(tmp_path)
