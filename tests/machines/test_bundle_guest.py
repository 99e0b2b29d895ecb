"""A bundle made here starts a guest where there is nothing but the bundle, and no network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from made_repositories import Served

from kduel.core.cache import Cache
from kduel.core.progress import Progress
from kduel.kernels import resolve

pytestmark = [pytest.mark.guest, pytest.mark.network]
SOURCE = Path(__file__).parents[2] / "src"
STUDY = """
[study]
name = "carried"
[[contender]]
kernel = "debian:6.12-cloud"
[[contender]]
kernel = "debian:6.12-cloud"
name = "again"
[machine]
kind = "qemu"
boot_deadline = 900
accel = "tcg"
priority = "normal"
cpus = 1
memory = "512M"
[host]
max_wait = 100 # other tests are no fault
[settle]
mode = "fixed"
seconds = 0
[blocks]
fixed = 1
[[benchmark]]
use = "kbench"
operation = "null-call"
"""


WITHOUT = ("apt-get", "dpkg-deb", "mmdebstrap", "sqfstar", "mksquashfs")
"""What only making a root, and Debian's kernels, take."""


def kduel(place: Path, *words: object, prefix: tuple[str, ...] = (), **more: str) -> str:
    done = subprocess.run(
        [*prefix, sys.executable, "-m", "kduel", *map(str, words)],
        env=os.environ | {"PYTHONPATH": str(SOURCE)} | more,
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.essential
@pytest.mark.skipif(os.geteuid() != 0, reason="taking the network away takes root")
def test_a_run_without_network_from_a_bundle(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    said = kduel(tmp_path, "bundle", "study.toml")
    [bundle] = tmp_path.glob("kduel-bundle-*.tar")
    assert bundle.stem.rpartition("-")[2] in said.partition("SHA-256 ")[2], "the name follows from the content"
    elsewhere = {"KDUEL_CACHE": str(tmp_path / "cache"), "prefix": ("unshare", "--net")}
    kduel(tmp_path, "bundle", "--unpack", bundle.name, **elsewhere)
    kduel(tmp_path, "run", "study.toml", "--offline", "--out", "run", **elsewhere)
    assert (tmp_path / "run/report/index.html").exists()
    assert "0 of them new" in kduel(tmp_path, "bundle", "--unpack", bundle.name, **elsewhere)


@pytest.mark.skipif(os.geteuid() != 0, reason="taking the network away takes root")
def test_the_root_alone_serves_a_host_without_apt(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Made on one host and fetched by another, which has its kernels as files."""
    (tmp_path / "served").mkdir()
    said = kduel(tmp_path, "bundle", "--root", "--output", "served/root.tar")
    digest = said.rpartition("SHA-256 ")[2].strip()
    # QEMU runs as another user, who may not enter pytest's own directories.
    programs = Path(tempfile.mkdtemp(prefix="kduel-bin-"))
    programs.chmod(0o755)
    request.addfinalizer(lambda: shutil.rmtree(programs))
    for directory in ("/usr/bin", "/usr/sbin"):
        for program in Path(directory).iterdir():
            if program.name not in WITHOUT and not (programs / program.name).exists():
                (programs / program.name).symlink_to(program)
    elsewhere = {"KDUEL_CACHE": str(tmp_path / "cache"), "PATH": str(programs)}
    with Served(tmp_path / "served") as served:
        address = f"{served.address}/root.tar"
        with pytest.raises(AssertionError, match="holds something else"):
            kduel(tmp_path, "bundle", "--unpack", address, "--sha256", "0" * 64, **elsewhere)
        assert not (tmp_path / "cache/root").exists()
        kduel(tmp_path, "bundle", "--unpack", address, "--sha256", digest, **elsewhere)
    kernel = resolve("debian:6.12-cloud", cache=Cache(), progress=Progress())
    study = STUDY.replace('kernel = "debian:6.12-cloud"', f'kernel = "{kernel.image}"\nmodules = "{kernel.modules}"')
    (tmp_path / "study.toml").write_text(study)
    try:
        kduel(tmp_path, "run", "study.toml", "--out", "run", prefix=("unshare", "--net"), **elsewhere)
    except AssertionError as error:
        # Beside other tests a guest may measure its clock wrongly; so small a plan leaves no trial to be made again.
        if "wrong-clock" not in str(error):
            raise
        shutil.rmtree(tmp_path / "run")
        kduel(tmp_path, "run", "study.toml", "--out", "run", prefix=("unshare", "--net"), **elsewhere)
    assert (tmp_path / "run/report/index.html").exists()
