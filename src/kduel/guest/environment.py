"""What a trial's raw environment files say, as one dictionary for the lint, the gates and the report."""

from __future__ import annotations

import gzip
import re
import zlib
from pathlib import Path
from typing import Any

_LIMIT = 4 << 20
_PATH_AND_VALUE = re.compile(r"^(/[^:]+):(.*)$")
_VOLATILE = re.compile(
    r"kernel/(random/|ns_last_pid|hostname|pty/nr|keys/|cap_last_cap|version|osrelease|ostype)|vm/stat_refresh"
)
"""Sysctls that count, or that say what is said elsewhere."""


def read_environment(directory: Path) -> dict[str, Any]:
    """From a trial's environment/ directory. What was not captured is missing from the result, never made up.

    Keys: release, architecture, uname, cmdline, clocksource, clocksource_end, clocksources (list), cpus (int),
    cpu_model, cpu_flags (list), memory_kib (int), config, mitigations, sysctl, packages (each str to str), preempt,
    settings (other files of /sys, by path).
    """
    found: dict[str, Any] = {}
    for name in ("release", "architecture", "uname", "cmdline"):
        if text := _text(directory / name).strip():
            found[name] = text
    clock = _pairs(directory / "clocksource")
    for path, value in clock.items():
        if path.endswith("/current_clocksource"):
            found["clocksource"] = value.strip()
        elif path.endswith("/available_clocksource"):
            found["clocksources"] = value.split()
    for path, value in _pairs(directory / "clocksource-end").items():
        if path.endswith("/current_clocksource"):
            found["clocksource_end"] = value.strip()
    found.update(_cpus(_text(directory / "cpuinfo")))
    if match := re.search(r"^MemTotal:\s+(\d+) kB", _text(directory / "meminfo"), re.MULTILINE):
        found["memory_kib"] = int(match[1])
    if config := read_config(directory / "config.gz"):
        found["config"] = config
    if mitigations := {Path(p).name: v for p, v in _pairs(directory / "vulnerabilities").items()}:
        found["mitigations"] = mitigations
    sysctl = {path.removeprefix("/proc/sys/"): value for path, value in _pairs(directory / "sysctl").items()}
    if sysctl := {k.replace("/", "."): v.replace("\t", " ") for k, v in sysctl.items() if not _VOLATILE.match(k)}:
        found["sysctl"] = sysctl
    packages = (line.split(" ", 1) for line in _text(directory / "packages").splitlines() if " " in line)
    if table := dict(packages):
        found["packages"] = table
    settings = _pairs(directory / "sys")
    if preempt := preemption(settings.get("/sys/kernel/debug/sched/preempt", ""), found.get("uname", "")):
        found["preempt"] = preempt
    if settings:
        found["settings"] = settings
    return found


def preemption(debugfs: str, uname: str) -> str:
    """none, voluntary, full, lazy or rt: from /sys/kernel/debug/sched/preempt, else from `uname -a`; or empty."""
    if "PREEMPT_RT" in uname:
        return "rt"
    if match := re.search(r"\((\w+)\)", debugfs):
        return match[1]
    if "PREEMPT_DYNAMIC" in uname:
        return ""
    if "PREEMPT" in uname:
        return "full"
    return ""


def read_config(path: Path) -> dict[str, str]:
    """A gzipped kernel .config: option without CONFIG_ to y, m, n or its value; {} where there is none."""
    try:
        with gzip.open(path, "rb") as stream:
            text = stream.read(_LIMIT).decode("utf-8", errors="replace")
    except (OSError, EOFError, zlib.error):
        return {}
    return parse_config(text)


def parse_config(text: str) -> dict[str, str]:
    """A kernel .config's text, as `read_config` gives it."""
    options: dict[str, str] = {}
    for line in text.splitlines():
        if match := re.match(r"CONFIG_(\w+)=(.*)$", line):
            options[match[1]] = match[2]
        elif match := re.match(r"# CONFIG_(\w+) is not set$", line):
            options[match[1]] = "n"
    return options


def _cpus(cpuinfo: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if count := len(re.findall(r"^processor\s*:", cpuinfo, re.MULTILINE)):
        found["cpus"] = count
    if match := re.search(r"^(?:model name|Model|uarch|cpu)\s*:\s*(.+)$", cpuinfo, re.MULTILINE):
        found["cpu_model"] = match[1].strip()
    if match := re.search(r"^(?:flags|Features|isa)\s*:\s*(.+)$", cpuinfo, re.MULTILINE):
        found["cpu_flags"] = match[1].split()
    return found


def _pairs(path: Path) -> dict[str, str]:
    """Lines of `grep . FILES`; several lines of one file are joined by newlines."""
    found: dict[str, str] = {}
    for line in _text(path).splitlines():
        if match := _PATH_AND_VALUE.match(line):
            found[match[1]] = f"{found[match[1]]}\n{match[2]}" if match[1] in found else match[2]
    return found


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(_LIMIT).decode("utf-8", errors="replace")
    except OSError:
        return ""
