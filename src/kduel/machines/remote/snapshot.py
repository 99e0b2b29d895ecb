"""A machine's /proc and /sys, as far as conditions bias measurements, as a small tree of files here."""

import re
from pathlib import Path, PurePosixPath

from kduel.core.errors import HostError
from kduel.machines.remote.connection import REMEDIES, Connection, ConnectionLost, TrialRefused

FILES = (
    "/proc/loadavg /proc/meminfo /proc/[0-9]*/comm /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor "
    "/sys/devices/system/cpu/intel_pstate/no_turbo /sys/devices/system/cpu/cpufreq/boost "
    "/proc/cpuinfo /sys/devices/system/clocksource/clocksource0/current_clocksource "
    "/proc/stat /sys/devices/cpu_core/cpus /sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list "
    "/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_count "
    "/sys/devices/system/cpu/smt/active /sys/class/power_supply/*/type /sys/class/power_supply/*/status"
)
UNITS = "units"
"""A file at the top: enabled services and active timers, one a line; missing where systemd does not tell."""
SCRIPT = f"""grep -sa . {FILES}
listed() {{ systemctl list-unit-files >/dev/null 2>&1; }}
listed || {{ [ -d /run/systemd/system ] && sleep 20 && listed; }} || echo no-units
systemctl list-unit-files --state=enabled --type=service --no-legend --plain 2>/dev/null | while read -r u _; do echo "unit:$u"; done
systemctl list-units --type=timer --state=active --no-legend --plain 2>/dev/null | while read -r u _; do echo "unit:$u"; done
"""
LINE = re.compile(r"(/(?:proc|sys)/[A-Za-z0-9_./:-]+?):(.*)")
MOST_LINES = 50_000


def bring(connection: Connection, into: Path) -> Path:
    """The tree below `into`. Raises HostError where the machine cannot be reached. Nothing there is changed."""
    try:
        done = connection.run(SCRIPT, root=False, timeout=300)
    except (ConnectionLost, TrialRefused) as error:
        name = error.void if isinstance(error, TrialRefused) else "unreachable"
        raise HostError(str(error), REMEDIES.get(name, "")) from error
    units: list[str] | None = []
    texts: dict[PurePosixPath, list[str]] = {}
    for line in done.text.splitlines()[:MOST_LINES]:
        if line == "no-units":
            units = None
        elif line.startswith("unit:") and units is not None:
            units.append(line.removeprefix("unit:"))
        elif match := LINE.fullmatch(line):
            path = PurePosixPath(match[1])
            if ".." not in path.parts and len(path.parts) < 12:
                texts.setdefault(path.relative_to("/"), []).append(match[2])
    for path, lines in texts.items():
        target = into / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("\n".join(lines) + "\n", "utf-8")
    if units is not None:
        (into / UNITS).write_text("\n".join(units) + "\n", "utf-8")
    return into
