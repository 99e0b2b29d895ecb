"""Identity of this host, by what its kernel and its system reveal of it."""

import hashlib
from pathlib import Path

BOOT_ID, MACHINE_ID = Path("/proc/sys/kernel/random/boot_id"), Path("/etc/machine-id")


def machine_hash() -> str:
    """A hash of this host's machine ID, as machine-id(5) recommends; empty where it has none."""
    known = content(MACHINE_ID)
    return hashlib.sha256(b"kduel " + known).hexdigest()[:16] if known else ""


def boot_id() -> str:
    """Identity of the present boot, another one after each start; empty where the kernel shows none."""
    return text_of(BOOT_ID)


def text_of(path: Path) -> str:
    """A file's text without white space around it; empty where it cannot be read."""
    return content(path).decode(errors="replace")


def content(path: Path) -> bytes:
    """Without white space around it; empty where it cannot be read."""
    try:
        return path.read_bytes().strip()
    except OSError:
        return b""
