"""Checks from the output of its gates that a trial ran under its scheduler, policy and knobs."""

import re
from pathlib import Path

from msgspec import Struct, field

from kduel.core.experiment import Contender, Void
from kduel.core.untrusted import MalformedError, exit_status, read

SAME = ("ops", "enable_seq", "nr_rejected")
SHOWN = 6
"""Lines of the kernel's and the scheduler's own words that a reason quotes."""


class SchedulerSnapshot(Struct, kw_only=True):
    facts: dict[str, str] = field(default_factory=dict)
    knobs: dict[str, str] = field(default_factory=dict)
    """Values when the gate looked, by file (and, in a file of features, the feature)."""
    failed: str = ""
    kernel: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    @property
    def words(self) -> str:
        """The kernel's reason, else the scheduler's, else nothing."""
        lines = [line for line in self.kernel if "enabled" not in line] or self.said
        return "".join(f"\n  {line}" for line in lines[-SHOWN:])


def parse_snapshot(text: str) -> SchedulerSnapshot:
    """A gate's output. Lines that it does not know are left out: a guest may print anything."""
    look = SchedulerSnapshot()
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        rest = rest.strip()[:400]
        if name == "failed" and not look.failed:
            look.failed = rest
        elif name == "kernel":
            look.kernel.append(rest)
        elif name == "said":
            look.said.append(rest)
        elif name in ("state", "enable_seq", "nr_rejected", "switch_all", "process"):
            look.facts[name] = rest
        elif name == "root/ops":
            look.facts["ops"] = rest
        elif name == "knob":
            path, _, value = rest.partition(" ")
            look.knobs[f"{path} {value.removeprefix('NO_')}" if path.endswith("/features") else path] = value
    return look


def check_gates(trial: Path, contender: Contender, *, anew: bool = False) -> Void | None:
    """Reason why a trial is void, if any of its gates failed, whatever its contender and values. `trial` is its
    directory, with gates/; `anew`: the scheduler was started for each step."""
    begun = read_snapshot(trial / "setup" / "stdout")
    if begun.failed:
        name, why = split_failure(begun.failed)
        return Void(name, f"{why}{begun.words}")
    gates = trial / "gates"
    before = {path.name.removesuffix(".before"): read_snapshot(path) for path in sorted(gates.glob("*.before"))}
    after = {path.name.removesuffix(".after"): read_snapshot(path) for path in sorted(gates.glob("*.after"))}
    if not before and (status := setup_status(trial)):
        late = ": its time was up" if status in (124, 137) else ""
        what = f"what starts the scheduler and sets the knobs ended with status {status}{late}{begun.words}"
        return Void("setup-failed", what)
    if not before or set(before) != set(after):
        return Void("gates-missing", "the gates around the benchmarks left no complete record")
    started = next(iter(before.values()))
    for step in before:
        for when, look in (("before", before[step]), ("after", after[step])):
            name, why = compare_with_first(look, before[step] if anew else started, contender)
            if name:
                return Void(name, f"{when} {step}: {why}{look.words}")
    return None


def sysctls_seen(trial: Path) -> dict[str, str]:
    """The sysctls that the contender set, by name, as the first gate saw them. `trial` is its directory, with gates/."""
    first = next(iter(sorted((trial / "gates").glob("*.before"))), None)
    knobs = read_snapshot(first).knobs if first else {}
    return {
        path.removeprefix("/proc/sys/").replace("/", "."): value
        for path, value in knobs.items()
        if path.startswith("/proc/sys/")
    }


def setup_status(trial: Path) -> int:
    """The exit status of the setup; 0 where it is not known."""
    try:
        return exit_status(trial / "setup")
    except MalformedError:
        return 0


def split_failure(failure: str) -> tuple[str, str]:
    """A `failed` line's name and words."""
    name, _, why = failure.partition(" ")
    return (name, why) if re.fullmatch(r"[a-z-]{3,40}", name) else ("gate-failed", failure)


def read_snapshot(path: Path) -> SchedulerSnapshot:
    """The gate's record in a file, read leniently and bounded; an empty one where there is none."""
    try:
        return parse_snapshot(read(path, 1 << 16))
    except OSError:
        return SchedulerSnapshot()


def compare_with_first(look: SchedulerSnapshot, started: SchedulerSnapshot, contender: Contender) -> tuple[str, str]:
    """Code and words for what is wrong with a snapshot, compared with the first one of the contender."""
    if look.failed:
        return split_failure(look.failed)
    if "state" not in look.facts:
        return "gates-missing", "the gate's record has no state"
    if look.knobs != started.knobs:
        changed = next(
            path for path in {**started.knobs, **look.knobs} if look.knobs.get(path) != started.knobs.get(path)
        )
        was, now = (knobs.get(changed, "not there") for knobs in (started.knobs, look.knobs))
        return "knob-changed", f"{changed} was {was} and is {now}"
    state = look.facts["state"]
    if not contender.scheduler:
        if state not in ("disabled", "absent"):
            return "scheduler-in-the-way", f"the kernel's own scheduler was to run, and sched_ext is {state}"
        return "", ""
    process = look.facts.get("process", "")
    if state != "enabled":
        return "scheduler-ejected", f"sched_ext is {state}, {describe_process(process)}. The kernel's reason:"
    wanted = Path(contender.scheduler.split()[0]).name.removeprefix("scx_")
    ops = look.facts.get("ops", "")
    if not ops.startswith(wanted):
        return "wrong-scheduler", f"the kernel runs {ops or 'none'}, not {wanted}"
    if not process.endswith(" alive"):
        return "scheduler-ended", describe_process(process)
    if look.facts.get("switch_all") != "1":
        return "not-all-tasks", "the scheduler does not have all tasks (switch_all is not 1)"
    for name in SAME:
        if look.facts.get(name) != started.facts.get(name):
            return "scheduler-changed", f"{name} was {started.facts.get(name)} and is {look.facts.get(name)}"
    return "", ""


def describe_process(process: str) -> str:
    """The scheduler's process in words. SIGKILL and SIGTERM look alike in the kernel's log, not here."""
    match = re.fullmatch(r"[0-9]+ ended ([0-9]{1,9})", process)
    if not match:
        return "its process is alive" if process.endswith(" alive") else "its process has exited"
    status = int(match[1])
    if status > 128:
        return f"its process was killed by signal {status - 128}"
    return f"its process ended with status {status}"
