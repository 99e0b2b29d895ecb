"""The scheduler's own counters around a step: /proc/schedstat before and after it, by name, as columns differ between
versions (Documentation/scheduler/sched-stats.rst); an unknown version is refused."""

import functools
import re
from collections.abc import Iterator
from pathlib import Path

from kduel.benchmarks.support import delays
from kduel.benchmarks.support.output import ParseError
from kduel.core.experiment import Metric
from kduel.core.toml import table_beside
from kduel.core.untrusted import read

GROUP = "scheduler"
BEFORE, AFTER, SWITCH = "schedstat.before", "schedstat.after", "schedstat.switch"
"""Files in the step's directory: the counters, and whether the kernel counted."""
OTHERS_BEFORE, OTHERS_AFTER = "pressure.before", "pressure.after"
"""The same of /proc/pressure and the context switches of /proc/stat, which every kernel counts that has them."""
SYSCTL = "/proc/sys/kernel/sched_schedstats"
"""Most counters of a stock kernel stand still without it."""
ENABLE = f"[ ! -e {SYSCTL} ] || echo 1 >{SYSCTL}\n"
"""Shell line that switches the counters on for good."""
_CPU = {
    "yields": 0, "schedules": 2, "idle-switches": 3, "wakeups": 4, "wakeups-local": 5, "run-time": 6, "run-delay": 7,
    "time-slices": 8,
}  # fmt: skip
"""Columns of a CPU's line, the same in versions 15 to 17; version 14 has three more for sched_yield in front."""
_BALANCE = ("calls", "balanced", "failed", "imbalance", "pulled", "pulled-hot", "no-queue", "no-group")
_BALANCE_17 = (*_BALANCE[:3], *(f"imbalance-{kind}" for kind in ("load", "util", "task", "misc")), *_BALANCE[4:])
_LAST = (
    "active", "active-failed", "active-pushed", *("",) * 6, "wakeups-remote", "wakeups-affine", "wakeups-balance",
)  # fmt: skip
_IDLE_FIRST, _BUSY_FIRST = ("idle", "busy", "newidle"), ("busy", "idle", "newidle")
_DOMAIN = {
    "14": (_IDLE_FIRST, _BALANCE),
    "15": (_IDLE_FIRST, _BALANCE),
    "16": (_BUSY_FIRST, _BALANCE),
    "17": (_BUSY_FIRST, _BALANCE_17),
}
"""By version: the order of the three kinds of balancing, and the counters of each."""
_TABLE = table_beside(__file__)
_ABOUT, _KEPT, _OTHERS = _TABLE["cpus"], _TABLE["domains"], _TABLE["others"]
_SHARE = "remote-share"
LEVELS = 8
"""Domains of a CPU, the smallest one first, that are told apart."""
_UNITS = {
    **dict.fromkeys(("pressure-cpu", "pressure-io", "pressure-memory"), "ms"),
    "run-time": "ms", "run-delay": "ms", "local-share": "%", _SHARE: "%", "delay-per-slice": "us", **delays.UNITS,
}  # fmt: skip
_DERIVED = {
    "local-share": "wakeups-local by wakeups, in per cent",
    _SHARE: "wakeups-remote by wakeups of all levels, in per cent",
    "delay-per-slice": "run-delay by time-slices",
    **delays.DERIVED,
}


def wrap(lines: str, switch: str = SYSCTL, delay_switch: str = delays.SWITCH) -> str:
    """Shell lines that run `lines` between two copies of the counters, which count meanwhile, as tasks' delays do; the switches
    are put back after."""
    where, copy = '"${KDUEL_STEP:-.}"/', "cat /proc/schedstat 2>/dev/null >"
    others = "grep -s -e total= -e ^ctxt /proc/pressure/cpu /proc/pressure/io /proc/pressure/memory /proc/stat >"
    switches = {"kept": switch, "delayed": delay_switch}
    keep = "".join(f"{name}=\n[ ! -r {file} ] || {name}=$(cat {file})\n" for name, file in switches.items())
    put_back = "; ".join(f'[ -z "${name}" ] || echo "${name}" >{file} || :' for name, file in switches.items())
    put_on = "".join(f'[ -z "${name}" ] || echo 1 >{file} || :\n' for name, file in switches.items())
    counted = f"""\
cat {switch} 2>/dev/null >{where}{SWITCH} || :
{others}{where}{OTHERS_BEFORE} || :
{copy}{where}{BEFORE} || :
(
{lines}
)
{copy}{where}{AFTER} || :
{others}{where}{OTHERS_AFTER} || :
"""
    return f"{keep}trap '{put_back}' EXIT\ntrap 'exit 143' TERM\n{put_on}{delays.wrap_lines(counted, where)}"


def of_level(counter: str, level: int) -> str:
    return f"domain{level}-{counter}"


def is_of_level(group: str, metric: str) -> bool:
    return group == GROUP and re.match("sched-domain[0-9]+-", metric) is not None


@functools.cache
def metrics() -> tuple[Metric, ...]:
    """The metrics of a step whose counters are kept, summed over all CPUs. They are exploratory: none of them is better or worse."""
    about = {name: (name, text) for name, text in (_ABOUT | _OTHERS | delays.ABOUT | _KEPT).items()}
    for level in range(LEVELS):
        about |= {
            of_level(name, level): (name, f"{text}, domains of level {level}")
            for name, text in (_KEPT | {_SHARE: f"{_KEPT['wakeups-remote']}, of all"}).items()
        }
    return tuple(
        Metric(
            f"sched-{name}", _UNITS.get(plain, "count"), "none",
            f"{text}{'' if plain.startswith('pressure-') else ', over all CPUs'}, during the step",
            group=GROUP, optional=True, derived=_DERIVED.get(plain, ""),
        )
        for name, (plain, text) in about.items()
    )  # fmt: skip


def read_step(directory: Path) -> dict[str, float]:
    """Values of `metrics` from a step's copies. Raises ParseError."""
    return read_counters(directory) | read_beside(directory)


def read_beside(directory: Path) -> dict[str, float]:
    """Switches, pressure and delays, which all versions of the kernel give alike. Raises ParseError."""
    return read_others(directory) | delays.read_delays(directory)


def read_counters(directory: Path) -> dict[str, float]:
    """Counters of /proc/schedstat; none where they are missing or stood still. Raises ParseError."""
    try:
        before, after, switch = (read(directory / name) for name in (BEFORE, AFTER, SWITCH))
    except FileNotFoundError:
        return {}
    if not before.strip() or not after.strip() or switch.strip() not in ("", "1"):
        return {}
    return difference(before, after)


def read_others(directory: Path) -> dict[str, float]:
    """Context switches and pressure during a step, as far as both copies have them. Raises ParseError where one fell."""
    first, last = (_others_in(directory / name) for name in (OTHERS_BEFORE, OTHERS_AFTER))
    grown = {name: last[name] - first[name] for name in _OTHERS if name in first and name in last}
    if fallen := [name for name, value in grown.items() if value < 0]:
        raise ParseError(f"{fallen[0]} fell during the step")
    return {f"sched-{name}": value for name, value in grown.items()}


def _others_in(file: Path) -> dict[str, float]:
    """Totals by name; pressure in ms, of `some` task."""
    try:
        text = read(file)
    except FileNotFoundError:
        return {}
    found = {
        f"pressure-{match[1]}": int(match[2]) / 1000
        for match in re.finditer(r"^/proc/pressure/(\w{1,9}):some .{1,99} total=([0-9]{1,18})$", text, re.MULTILINE)
    }
    if switches := re.search(r"^/proc/stat:ctxt ([0-9]{1,18})$", text, re.MULTILINE):
        found["switches"] = float(switches[1])
    return found


def difference(before: str, after: str) -> dict[str, float]:
    """Growth of each counter between two texts of /proc/schedstat. Raises ParseError for a version that is not known."""
    first, last = sum_counters(before), sum_counters(after)
    if first.keys() != last.keys():
        raise ParseError("/proc/schedstat before and after the step have other counters")
    grown = {name: last[name] - first[name] for name in last}
    for name in ("run-time", "run-delay"):
        grown[name] /= 1e6
    if fallen := [name for name, value in grown.items() if value < 0]:
        raise ParseError(f"the counter {fallen[0]} of /proc/schedstat fell during the step")
    if grown["wakeups"]:
        grown["local-share"] = 100 * grown["wakeups-local"] / grown["wakeups"]
        remote = [name for name in grown if name.startswith("domain") and name.endswith("wakeups-remote")]
        grown |= {name.replace("wakeups-remote", _SHARE): 100 * grown[name] / grown["wakeups"] for name in remote}
    if grown["time-slices"]:
        grown["delay-per-slice"] = 1000 * grown["run-delay"] / grown["time-slices"]
    return {f"sched-{name}": value for name, value in grown.items()}


def sum_counters(text: str) -> dict[str, float]:
    """Counters by name, summed over CPUs and domains, and by level; times in ns. Raises ParseError."""
    match = re.match(r"version ([0-9]{1,4})$", text.split("\n", 1)[0])
    if match is None or match[1] not in _DOMAIN:
        said = match[1] if match else "unknown"
        raise ParseError(f"/proc/schedstat is of version {said}; its counters are known for {', '.join(_DOMAIN)}")
    version = match[1]
    kinds, counters = _DOMAIN[version]
    columns = [f"{kind}-{counter}" for kind in kinds for counter in counters] + list(_LAST)
    totals = dict.fromkeys([*_CPU, *_KEPT], 0.0)
    by_level: dict[int, dict[str, float]] = {}
    skipped = 3 if version == "14" else 0
    for name, words in _lines(text):
        if name.startswith("cpu"):
            numbers = _numbers(words, 9 + skipped, name)[skipped:]
            for counter, column in _CPU.items():
                totals[counter] += numbers[column]
        else:
            # The mask of CPUs, and since version 17 the domain's name before it.
            numbers = _numbers(words[2 if version == "17" else 1 :], len(columns), name)
            own = by_level.setdefault(int(name.removeprefix("domain")), dict.fromkeys(_KEPT, 0.0))
            for counter, number in zip(columns, numbers, strict=True):
                if counter in _KEPT:
                    totals[counter] += number
                    own[counter] += number
    if len(by_level) > 1:
        for level in range(min(len(by_level), LEVELS)):
            totals |= {of_level(counter, level): number for counter, number in by_level.get(level, {}).items()}
    return totals


def _lines(text: str) -> Iterator[tuple[str, list[str]]]:
    for line in text.splitlines():
        name, *words = line.split() or [""]
        if re.fullmatch(r"(cpu|domain)[0-9]{1,5}", name):
            yield name, words


def _numbers(words: list[str], count: int, name: str) -> list[int]:
    if len(words) != count or not all(re.fullmatch(r"[0-9]{1,20}", word) for word in words):
        raise ParseError(f"the line {name} of /proc/schedstat has not {count} numbers")
    return [int(word) for word in words]
