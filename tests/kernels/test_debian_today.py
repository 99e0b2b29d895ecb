"""What Debian's own archive serves today: formats, splits and suites change there without notice."""

from __future__ import annotations

import subprocess

import pytest
from heard import Heard

from kduel.core.cache import Cache
from kduel.kernels import resolve
from kduel.kernels.apt.archive import Archive
from kduel.kernels.debian import PLUGIN
from kduel.kernels.files.image import embedded_config, identify, uncompressed_kernel
from kduel.kernels.files.modules import modules_with_dependencies

pytestmark = pytest.mark.network


def test_the_series_that_studies_use(real_cache: Cache, progress: Heard) -> None:
    lines = {line.spec for line in PLUGIN.available(cache=real_cache, progress=progress)}
    for series in ("5.10", "6.1", "6.12"):
        assert {f"debian:{series}", f"debian:{series}-cloud", f"debian:{series}-rt"} <= lines
    assert any(spec.startswith("debian:7.") for spec in lines)


@pytest.mark.parametrize("spec", ["debian:6.1-cloud", "debian:7-cloud"])
def test_whole_and_bootable(spec: str, real_cache: Cache, progress: Heard) -> None:
    kernel = resolve(spec, cache=real_cache, progress=progress)
    assert identify(kernel.image).release == kernel.release
    assert kernel.config is not None and "CONFIG_PVH=y" in kernel.config.read_text()
    assert embedded_config(kernel.image) is None, (
        "Debian does not set IKCONFIG: the config must come from the package"
    )
    assert kernel.modules is not None and kernel.modules.name == kernel.release
    assert modules_with_dependencies(kernel.modules, ["squashfs", "overlay"])
    elf = uncompressed_kernel(kernel, real_cache)
    assert elf is not None and f"Linux version {kernel.release} (".encode() in elf.read_bytes()
    told = subprocess.run(["file", "-b", str(kernel.image)], capture_output=True, text=True, check=False)
    assert told.returncode or kernel.release in told.stdout
    assert resolve(spec, cache=real_cache, progress=progress, offline=True) == kernel


def test_sources_and_configs_are_served_too(real_cache: Cache, progress: Heard) -> None:
    archive = Archive(real_cache, progress)
    assert archive.candidates("linux-source-6.12")[0].size > 100e6
    assert archive.candidates("linux-image-*-rt-amd64")
