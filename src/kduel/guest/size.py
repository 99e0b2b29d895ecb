"""Sizes of a guest's memory and disks, as settings of machines have them."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from kduel.core.errors import InputError
from kduel.core.this_host import text_of

Size = str | int
"""Size of memory or a disk, as `mebibytes` reads it."""
MOST_DISK = 1 << 20
"""Mebibytes of a disk: its inode tables are written when it is formatted."""


def mebibytes(size: str | int, key: str, most: int | None = None) -> int:
    """`4096M`, `4G` or plain MiB. Raises InputError naming the key."""
    match = re.fullmatch(r"(\d{1,7})([MG]?)(?:iB)?", str(size).strip(), re.ASCII)
    found = int(match[1]) * (1024 if match[2] == "G" else 1) if match else 0
    if not found:
        raise InputError(f"machine qemu: {key} = {size!r} is not a size", "Write it like 4096M or 4G.")
    if most is not None and found > most:
        raise InputError(f"machine qemu: {key} = {size!r} is too large", f"Give {most // 1024}G at most.")
    return found


def why_no_memory(guests: int, memory: int, root: Path = Path("/")) -> str:
    """Reason why this host, or a control group, has not enough memory for guests of so many MiB, as far as the kernel reports it; empty
    where it has."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", text_of(root / "proc/meminfo"), re.MULTILINE)
    there = min([int(found[1]) << 10 if found else 0, *rooms_of_groups(root)]) >> 20
    if guests * memory <= there:
        return ""
    return f"{guests} guests of {memory} MiB are more than the {there} MiB of memory that are available"


def rooms_of_groups(root: Path) -> Iterator[int]:
    """Bytes that each control group of this process, and each above it, may still take, the cache of files included, as that can be freed
    (the kernel's Documentation/admin-guide: cgroup-v2.rst, cgroup-v1/memory.rst)."""
    for line in text_of(root / "proc/self/cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        if number != "0" and "memory" not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / ("" if number == "0" else "memory")
        names = ("max", "current") if number == "0" else ("limit_in_bytes", "usage_in_bytes")
        # What is on a tmpfs counts as a file there, but is in neither of these lists.
        lists = re.compile(rf"^{'' if number == '0' else 'total_'}(?:in)?active_file (\d+)$", re.MULTILINE)
        for group in (top / path.lstrip("/") / "x").parents:
            limit, used = (text_of(group / f"memory.{name}").strip() for name in names)
            cached = sum(map(int, lists.findall(text_of(group / "memory.stat"))))
            if limit.isdecimal() and used.isdecimal():
                yield max(0, int(limit) - int(used) + cached)
            if group == top:
                break


def check_memory_of_host(size: str | int) -> None:
    """Raises InputError for more memory than this host has."""
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    if mebibytes(size, "memory") > there:
        raise InputError(
            f"machine qemu: memory = {size!r} is more than this host has, {there} MiB",
            "Give less: --machine qemu:memory=4G.",
        )
