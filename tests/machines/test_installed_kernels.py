"""A kernel that is installed on the measured machine is a type of its own, known by no prefix but its source's."""

from __future__ import annotations

from pathlib import Path

import pytest

from kduel.core.cache import Cache
from kduel.core.errors import InputError
from kduel.core.plugins import plugins
from kduel.core.progress import Progress
from kduel.kernels import InstalledKernel

OWN_KERNELS = {"ssh", "local"}


@pytest.mark.parametrize("name", sorted({"qemu", "icount", "board", *OWN_KERNELS}))
def test_only_machines_with_kernels_of_their_own_take_an_installed_one(tmp_path: Path, name: str):
    kind = plugins("machines")[name]
    if name in OWN_KERNELS:
        found = kind.kernel("installed:6.1.0-50-amd64", cache=Cache(tmp_path), progress=Progress())
        assert isinstance(found, InstalledKernel) and found.release == "6.1.0-50-amd64"
        return
    with pytest.raises(InputError, match=f"the machine {name} has no kernels of its own"):
        kind.kernel("installed:6.1.0-50-amd64", cache=Cache(tmp_path), progress=Progress())
