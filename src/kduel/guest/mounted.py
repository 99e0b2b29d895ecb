"""Roots that a kernel mounts by itself where a board has no initial RAM disk: a served directory, or a disk."""

import hashlib
import shutil
from pathlib import Path

from kduel.core.errors import HostError
from kduel.core.temporary import as_temporary_error, temporary_directory
from kduel.guest import scratch
from kduel.guest.cpio import unpack

OURS = "kduel"
"""The directory in each such root that distinguishes it from what is somebody else's."""
SAID = "script.sha256"
"""The file in which a trial reports which script its root contained."""


def fill(directory: Path, archive: bytes) -> None:
    """Let `directory` hold what the archive of an initial RAM disk holds, and nothing else. The directory itself stays,
    as it is what a server offers. Raises HostError where something else than such a root lies in it."""
    check_ours(directory)
    # Ours is the last to go and the first to come: whoever is interrupted finds the directory to be ours still.
    for old in sorted(directory.iterdir(), key=lambda path: path.name == OURS):
        shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
    for name in (OURS, "run", "tmp", "scratch"):
        (directory / name).mkdir()
        (directory / name).chmod(0o755)
    unpack(archive, directory)


def check_ours(directory: Path) -> None:
    """Make the directory where it is not there. Raises HostError where something else than such a root lies in it."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()) and not (directory / OURS).is_dir():
            raise HostError(
                f"{directory} holds files that are not KDuel's, and each trial replaces what is there",
                "Give the board an empty directory of its own: tree = ...",
            )
    except OSError as error:
        raise HostError(
            f"{directory} cannot hold a board's root: {error.strerror}", "Give another: tree = ..."
        ) from None


def disk(archive: bytes) -> bytes:
    """An ext4 file system with what the archive of an initial RAM disk holds. Raises HostError."""
    with temporary_directory() as place, as_temporary_error():
        tree, image = place / "root", place / "root.ext4"
        fill(tree, archive)
        scratch.format_ext4(image, 8 + (len(archive) * 5 >> 22), "root", tree)
        return image.read_bytes()


def describe_other_script(into: Path, script: str) -> str:
    """Sentence if a trial's root held another trial's script; empty where it held its own."""
    try:
        said = (into / SAID).read_text(errors="replace").split()[:1]
    except OSError:
        said = []
    if said == [hashlib.sha256(script.encode()).hexdigest()]:
        return ""
    return "its root holds another trial's script: it was not replaced, or its server returned a cached copy"
