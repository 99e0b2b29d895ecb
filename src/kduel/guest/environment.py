"""The content of a trial's raw environment files, as one dictionary for the lint, the gates and the report."""

import functools
import gzip
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kduel.core.regular_files import open_regular
from kduel.core.untrusted import read, whole_number
from kduel.guest.conditions import read_conditions
from kduel.guest.topology import is_of_topology, read_topology

_LIMIT = 4 << 20
_OPTION = re.compile(r"CONFIG_(\w+)=(.*)$|# CONFIG_(\w+) is not set$")
_PATH_AND_VALUE = re.compile(r"^(/[^:]+):(.*)$")
_CLOCK = "/sys/devices/system/clocksource/clocksource0"
_VOLATILE = re.compile(
    r"/proc/sys/(?:kernel/(?:random/|ns_last_pid|hostname|pty/nr|keys/|version|osrelease|ostype)|vm/stat_refresh)"
)
"""Sysctls that are counters, or repeat what is recorded elsewhere."""
_MOVING = re.compile(r"temperatures$|load$|fans\.")
"""Conditions that are another at every moment."""


def environments_in(trial: Path) -> list[Path]:
    """The directories with a captured environment: one, or one for each load of a shared boot."""
    found = [trial / "environment", *sorted(trial.glob("load-*/environment"))]
    return [path for path in found if (path / "uname").is_file()]


def read_environment(directory: Path) -> dict[str, Any]:
    """Read a trial's environment/ directory. What was not captured is missing from the result, never made up.

    Keys: release, architecture, uname, cmdline, clocksource, clocksource_end, clocksources (list), cpus (int),
    cpu_model, cpu_flags (list), memory_kib (int), config, mitigations, sysctl, packages (each str to str), preempt,
    settings (other files of /sys, by path), topology (see kduel.guest.topology), conditions and temperatures (of a real
    machine: see kduel.guest.conditions), peer (a real machine's: uname, release, packages).
    """
    found: dict[str, Any] = {}
    files, at_end = read_captured(directory / "files"), read_captured(directory / "files-end")
    words = _read_text(directory / "uname").split()
    if len(words) > 3:
        found["uname"] = " ".join(words)
        found["release"] = words[2]
        found["architecture"] = words[-2] if words[-1] == "GNU/Linux" else words[-1]
    for key, path in (("cmdline", "/proc/cmdline"), ("clocksource", f"{_CLOCK}/current_clocksource")):
        if path in files:
            found[key] = files[path].strip()
    if (path := f"{_CLOCK}/current_clocksource") in at_end:
        found["clocksource_end"] = at_end[path].strip()
    if (path := f"{_CLOCK}/available_clocksource") in files:
        found["clocksources"] = files[path].split()
    found.update(_read_cpus(files.get("/proc/cpuinfo", "")))
    if match := re.search(r"^MemTotal:\s+([0-9]{1,18}) kB", files.get("/proc/meminfo", ""), re.MULTILINE):
        found["memory_kib"] = whole_number(match[1])
    packages = (line.split(" ", 1) for line in files.get("/kduel.packages", "").splitlines() if " " in line)
    config = read_config(directory / "config.gz")
    preempt = preemption(files.get("/sys/kernel/debug/sched/preempt", ""), found.get("uname", ""), config)
    conditions = read_conditions(directory / "conditions")
    tables: dict[str, Any] = {
        "config": config,
        "mitigations": {Path(path).name: text for path, text in files.items() if "/vulnerabilities/" in path},
        "sysctl": {
            path.removeprefix("/proc/sys/").replace("/", "."): " ".join(text.split())
            for path, text in files.items()
            if path.startswith("/proc/sys/") and not _VOLATILE.match(path)
        },
        "packages": dict(packages),
        "preempt": preempt,
        "topology": read_topology(files),
        "conditions": {key: value for key, value in conditions.items() if not _MOVING.match(key)},
        "temperatures": {key: value for key, value in conditions.items() if _MOVING.match(key)},
        "peer": _read_peer(_read_text(directory / "peer")),
        "settings": {
            path: text
            for path, text in files.items()
            if path.startswith("/sys/")
            and "/vulnerabilities/" not in path
            and "/clocksource" not in path
            and not is_of_topology(path)
        },
    }
    return found | {key: value for key, value in tables.items() if value}


def preemption(debugfs: str, uname: str, config: Mapping[str, str]) -> str:
    """none, voluntary, full, lazy or rt: from /sys/kernel/debug/sched/preempt, `uname -a` or the config; or empty."""
    if "PREEMPT_RT" in uname:
        return "rt"
    if match := re.search(r"\((\w+)\)", debugfs):
        return match[1]
    if "PREEMPT_DYNAMIC" in uname:
        return ""  # chosen at boot, and not visible without debugfs
    options = {"PREEMPT": "full", "PREEMPT_LAZY": "lazy", "PREEMPT_VOLUNTARY": "voluntary", "PREEMPT_NONE": "none"}
    return next((name for option, name in options.items() if config.get(option) == "y"), "")


def read_config(path: Path) -> dict[str, str]:
    """A gzipped kernel .config: option without CONFIG_ to y, m, n or its value; {} where there is none."""
    try:
        with open_regular(path) as packed, gzip.open(packed, "rb") as stream:
            text = stream.read(_LIMIT).decode("utf-8", errors="replace")
    except (OSError, EOFError, zlib.error):
        return {}
    return parse_config(text)


def parse_config(text: str) -> dict[str, str]:
    """A kernel .config's text, as `read_config` gives it."""
    return dict(_options(text))


@functools.lru_cache(maxsize=8)
def _options(text: str) -> dict[str, str]:
    """Kept, because every trial of a kernel captures the same text, which takes longer to parse than all else."""
    options: dict[str, str] = {}
    for line in text.splitlines():
        if match := _OPTION.match(line):
            name, value, unset = match.groups()
            options[name or unset] = value if name else "n"
    return options


def _read_cpus(cpuinfo: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if count := len(re.findall(r"^processor\s*:", cpuinfo, re.MULTILINE)):
        found["cpus"] = count
    if match := re.search(r"^(?:model name|Model|uarch|cpu)\s*:\s*(.+)$", cpuinfo, re.MULTILINE):
        found["cpu_model"] = match[1].strip()
    if match := re.search(r"^(?:flags|Features|isa)\s*:\s*(.+)$", cpuinfo, re.MULTILINE):
        found["cpu_flags"] = match[1].split()
    return found


def _read_peer(text: str) -> dict[str, Any]:
    """From the first line, `uname -a`, and one of name and version for each package."""
    uname, *lines = text.splitlines() or [""]
    words = uname.split()
    packages = dict(line.split(" ", 1) for line in lines if " " in line)
    found = {"uname": " ".join(words), "release": words[2]} if len(words) > 3 else {}
    return found | ({"packages": packages} if packages else {})


def read_captured(path: Path) -> dict[str, str]:
    """Output of `grep . FILES`: the text of each file by its path, less empty lines. {} where it cannot be read."""
    lines: dict[str, list[str]] = {}
    for line in _read_text(path).splitlines():
        if match := _PATH_AND_VALUE.match(line):
            lines.setdefault(match[1], []).append(match[2])
    return {name: "\n".join(text) for name, text in lines.items()}


def _read_text(path: Path) -> str:
    try:
        return read(path, _LIMIT)
    except OSError:
        return ""
