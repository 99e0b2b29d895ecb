"""A real kernel, built as a user would have it: only for ./run-tests --all, since it takes minutes.

KDUEL_TEST_BUILD names the source, such as debian-source:6.1; the kernel is kept in the cache, as any other.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

import pytest

from kduel.core.cache import Cache
from kduel.core.progress import Progress
from kduel.kernels import resolve
from kduel.kernels.compile.recipe import read_settings
from kduel.kernels.compile.toolchain import TARGETS
from kduel.kernels.sizes.account import account_for

SOURCE = os.environ.get("KDUEL_TEST_BUILD", "")
pytestmark = [
    pytest.mark.network,
    pytest.mark.skipif(not SOURCE, reason="KDUEL_TEST_BUILD names no source: this takes minutes"),
]


class Heard(Progress):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


@pytest.mark.parametrize("arch", ["x86_64", "ppc", "arm64"])
def test_the_recipe_takes_whole_and_every_byte_is_told(arch: str, need: Callable[..., str]) -> None:
    target = TARGETS[arch]
    need(target.tool("gcc"))
    heard = Heard()
    kernel = resolve(f"{SOURCE},arch={arch},config=tinyconfig+guest", cache=Cache(), progress=heard)
    assert not heard.warnings, "the guest's options take on every architecture"
    assert kernel.architecture == target.machine
    assert kernel.config is not None and kernel.vmlinux is not None
    assert read_settings(kernel.config.read_text())["VIRTIO_CONSOLE"] == "y"
    found = account_for(kernel.vmlinux, kernel.vmlinux.with_name("objects.gz"))
    printed = subprocess.run([target.tool("size"), kernel.vmlinux], capture_output=True, text=True, check=True).stdout
    assert [*map(str, found.totals.values())] == printed.splitlines()[1].split()[:3]
    assert sum(piece.size for piece in found.pieces) == sum(found.totals.values())
    places = found.bytes_by(lambda piece: piece.directory)
    assert places["(linker)"] < 0.01 * sum(places.values()), "nearly every symbol finds its object"
    assert found.bytes_by(lambda piece: piece.option)["INET"] > 100_000
