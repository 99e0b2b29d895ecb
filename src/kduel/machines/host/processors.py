"""The processors of this host: their model, and which of them guests are pinned to."""

import os
import platform
import re
from pathlib import Path


def host_cpus(count: int) -> list[int]:
    """CPUs of this host to pin vCPUs to: the last ones, one a core while they last; [] where there are too few."""
    allowed = sorted(os.sched_getaffinity(0), reverse=True)
    if len(allowed) < count:
        return []
    firsts: list[int] = []
    others: list[int] = []
    seen: set[str] = set()
    for cpu in allowed:
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        core = siblings.read_text().strip() if siblings.exists() else str(cpu)
        (others if core in seen else firsts).append(cpu)
        seen.add(core)
    return sorted((firsts + others)[:count])


def host_cpu() -> str:
    match = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return match[1] if match else platform.machine()


def is_virtual(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """True if this host is a virtual machine itself, as far as its CPU says."""
    return re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo.read_text(), re.MULTILINE) is not None
