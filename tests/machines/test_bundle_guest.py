"""A bundle made here starts a guest where there is nothing but the bundle, and no network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.skipif(os.geteuid() != 0, reason="taking the network away takes root")
def test_a_run_without_network_from_a_bundle(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    said = kduel(tmp_path, "bundle", "study.toml")
    [bundle] = tmp_path.glob("kduel-bundle-*.tar")
    assert bundle.stem.rpartition("-")[2] in said.partition("SHA-256 ")[2], "the name follows from the content"
    elsewhere = {"KDUEL_CACHE": str(tmp_path / "cache"), "prefix": ("unshare", "--net")}
    kduel(tmp_path, "unbundle", bundle.name, **elsewhere)
    kduel(tmp_path, "run", "study.toml", "--offline", "--out", "run", **elsewhere)
    assert (tmp_path / "run/report/index.html").exists()
    assert "0 of them new" in kduel(tmp_path, "unbundle", bundle.name, **elsewhere)
