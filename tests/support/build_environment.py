"""KDuel's Python environment on a disk of its own, for a test machine on which KDuel itself runs.

A virtual environment with what requirements.txt names, from the one that the tests run in: nothing is fetched. The
compiler for our own programs stays out (340 MB): what the tests measure there needs none.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

from kduel.core.cache import Cache

RECIPE = 1
REQUIREMENTS = Path(__file__).parents[2] / "requirements.txt"
PLACE = "/opt/kduel"
"""Where it is meant to be mounted."""
LEFT_OUT = ("ziglang",)
DISK = 640 << 20


def environment(cache: Cache) -> Path:
    """The disk's image, to be attached read-only."""
    key = hashlib.sha256(f"{RECIPE} {sys.version}".encode() + REQUIREMENTS.read_bytes()).hexdigest()[:24]
    return cache.entry("test-environment", key, build) / "disk.img"


def build(directory: Path) -> None:
    """An ext4 file system without a table of partitions."""
    tree = directory / "tree"
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", "--symlinks", str(tree)], check=True)
    packages = next(tree.glob("lib/python3.*/site-packages"))
    assert packages.parent.name == f"python{sys.version_info[0]}.{sys.version_info[1]}", (
        "Debian's Python is another one"
    )
    for line in REQUIREMENTS.read_text().splitlines():
        match = re.match(r"([A-Za-z0-9._-]+)==([^ ]+)", line)
        if match is None or match[1] in LEFT_OUT or not installed(match[1], match[2]):
            continue
        for file in distribution(match[1]).files or ():
            if ".." not in file.parts and "tests" not in file.parts and file.suffix != ".pyc":
                target = packages / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.locate(), target)
    # The disk is read-only there, and an emulator takes minutes to compile all that is imported.
    compiled = ["-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash", str(packages)]
    subprocess.run(["/usr/bin/python3", *compiled], check=False, stdout=subprocess.DEVNULL)
    image = directory / "disk.img"
    with image.open("wb") as stream:
        stream.truncate(DISK)
    subprocess.run(
        ["/usr/sbin/mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal", "-d", tree, image], check=True
    )
    shutil.rmtree(tree)


def installed(name: str, version: str) -> bool:
    """Whether this environment has it: a requirement may be for another Python."""
    return distribution(name).version == version


if __name__ == "__main__":
    print(environment(Cache()))
