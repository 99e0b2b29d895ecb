"""Identity of this host, by what its kernel and its system reveal of it."""

import hashlib
from pathlib import Path

BOOT_ID, MACHINE_ID = Path("/proc/sys/kernel/random/boot_id"), Path("/etc/machine-id")


def machine_hash() -> str:
    """A hash of this host's machine ID, as machine-id(5) recommends; empty where it has none."""
    known = text_of(MACHINE_ID).strip()
    return hashlib.sha256(f"kduel {known}".encode()).hexdigest()[:16] if known else ""


def boot_id() -> str:
    """Identity of the present boot, another one after each start; empty where the kernel shows none."""
    return text_of(BOOT_ID).strip()


def text_of(path: Path) -> str:
    """A file's text, decoded leniently; empty where it cannot be read."""
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""
