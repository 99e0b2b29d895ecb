"""Delays of tasks during a step: the kernel's account of each task (taskstats, of getdelays), which `kdelay`
adds up over those that ended and those that live. A kind of delay that a kernel does not count has no number."""

import re
import shlex
from pathlib import Path

from msgspec import structs

from kduel.benchmarks.support.output import ParseError
from kduel.benchmarks.support.service import Service
from kduel.core.toml import table_beside
from kduel.core.untrusted import read

PROGRAM = "kdelay"
KEPT = "delays"
"""Its file in the step's directory."""
SWITCH = "/proc/sys/kernel/task_delayacct"
"""Off by default since 5.14; only tasks that begin after it was switched on have delays other than for CPUs."""
LATE_IO = 6, 12
"""From here on a task that sleeps leaves its queue late, and the wait for a device that begins then is another task's
(__block_task): it has some that are longer than it lives, and others that nobody can tell from right ones."""
ABOUT: dict[str, str] = table_beside(__file__)
UNITS = {name: "ms" for name in ABOUT if name != "tasks"}
DERIVED = {"task-wait": "the delays for CPUs by tasks"}


def wrap_lines(lines: str, place: str) -> str:
    """Shell lines that run `lines` in a shell of their own, with the account around it where the program is there."""
    return f"""\
set --
! command -v {PROGRAM} >/dev/null || set -- {PROGRAM} {place}{KEPT}
"$@" sh -ec {shlex.quote(lines)}
"""


def switch_on(service: Service) -> Service:
    """A service whose tasks have delays, too: it begins before the steps do."""
    kept = '"$KDUEL_SERVICE/delayacct"'
    start = f"if [ -w {SWITCH} ]; then cat {SWITCH} >{kept} && echo 1 >{SWITCH}; fi\n{service.start}"
    return structs.replace(service, start=start, stop=f"{service.stop}\n[ ! -r {kept} ] || cat {kept} >{SWITCH}\n")


def read_delays(directory: Path) -> dict[str, float]:
    """Waits of tasks during a step; {} where the kernel has no account of it. Raises ParseError."""
    try:
        text = read(directory / KEPT)
    except FileNotFoundError:
        return {}
    if re.search("^absent ", text, re.MULTILINE):
        return {}
    found = {
        match[1]: [int(word) for word in match[2].split()]
        for match in re.finditer(r"^(\w+)((?: [0-9]{1,19})+)$", text, re.MULTILINE)
    }
    release = re.search(r"^release (\d{1,9})\.(\d{1,9})", text, re.MULTILINE)
    if release is None or (int(release[1]), int(release[2])) >= LATE_IO:
        found.pop("io", None)
    try:
        (tasks,), (longest,), (_, waited) = found["tasks"], found["longest"], found["cpu"]
        if not tasks:
            return {}  # Not even the step's own: a kernel without CONFIG_TASK_DELAY_ACCT has zeros.
        values = {"tasks": float(tasks), "task-wait-longest": longest / 1e6, "task-wait": waited / 1e6 / tasks}
        # Before 5.14 there is no switch ("-"), and all is counted.
        if found.get("switch") != [0]:
            values |= {f"delay-{kind}": found[kind][1] / 1e6 for kind in found if f"delay-{kind}" in ABOUT}
    except (KeyError, ValueError, IndexError) as error:
        raise ParseError(f"the file {KEPT} of the step is not {PROGRAM}'s: {error}") from error
    return {f"sched-{name}": value for name, value in values.items()}
