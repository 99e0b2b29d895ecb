"""Time of a boot by part: stages by the host's clock, and the kernel's own initcalls, contender by contender."""

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from msgspec import Struct

from kduel.benchmarks.support.bootlog import (
    MARKS,
    STAGES,
    ConsoleLine,
    Init,
    Timeline,
    console_lines,
    initcalls,
    timeline,
)
from kduel.core import untrusted
from kduel.core.errors import InputError
from kduel.core.format import with_sign
from kduel.store.integrity import trials_of
from kduel.store.rundir import RunDir

LOG_LIMIT = 16 << 20
"""Bytes of a log that are read."""
HOW_TO_SEE_INITCALLS = (
    "What the kernel itself did is not in the log: boot with `initcall_debug log_buf_len=4M`, as cmdline of each contender or "
    "of the machine."
)
EMULATED_CLOCK = (
    "The clock of this machine counts instructions, one a nanosecond: initcalls are in this virtual time, and stages, by the "
    "host's clock, show how long its emulator took, not how long hardware takes."
)
COLUMN = 24
"""Characters of a column."""
WORDS = {
    "load": "until 'Linux version'",
    "kernel": "until 'Freeing unused kernel'",
    "start": "until the first process",
    "userspace": "until login: or the script",
}


class BootTimelines(Struct, frozen=True, kw_only=True):
    name: str
    timelines: list[Timeline]
    initcalls: list[dict[str, float]]
    """Microseconds by function, a table a boot; of those boots that reported any."""

    def stage(self, name: str) -> list[float]:
        """A stage in seconds, of each boot that has it."""
        return [stages[name] for line in self.timelines if name in (stages := line.stages())]

    def until(self, mark: str) -> list[float]:
        """The time from the beginning to a mark, of each boot that has both."""
        lines = [line.moments for line in self.timelines if {"begin", mark} <= line.moments.keys()]
        return [moments[mark] - moments["begin"] for moments in lines]

    def calls(self) -> dict[str, list[float]]:
        """Microseconds of each initcall, of each boot that reported it."""
        names = {name for table in self.initcalls for name in table}
        return {name: [table[name] for table in self.initcalls if name in table] for name in names}


def read_boots(path: Path) -> list[BootTimelines]:
    """All boots of a run, the baseline's first. Raises InputError where it is no run, or no boot of it left a console."""
    run = RunDir.open(path)
    lock = run.lock()
    found = {c.name: BootTimelines(name=c.name, timelines=[], initcalls=[]) for c in lock.contenders}
    consoles: list[tuple[str, list[ConsoleLine]]] = []
    for record in trials_of(run, lock):
        trial = run.directory(record.id)
        lines = console_lines(_text(trial / "console.log"))
        if record.contender in found and timeline(lines).moments:
            consoles.append((record.contender, lines))
            if calls := initcalls(_text(trial / "environment" / "dmesg").splitlines()):
                found[record.contender].initcalls.append(calls)
    init = same_init([lines for _, lines in consoles])
    for name, lines in consoles:
        found[name].timelines.append(timeline(lines, init))
    if not consoles:
        marks = ", ".join(words for _, _, words in MARKS)
        raise InputError(
            f"no trial of {path} has a console log of its boot",
            f"Looked for in trials/*/console.log: {marks}. Machines reached by SSH keep no console log.",
        )
    return list(found.values())


def clock_warning(path: Path) -> str:
    """Reason why the times of a run's boots are not those of hardware, or an empty string."""
    machine = RunDir.open(path).lock().machine
    return machine.timing_warning if machine.evidence.varies else EMULATED_CLOCK


def same_init(consoles: Sequence[Sequence[ConsoleLine]]) -> Init:
    """The source of init's first line in all boots: the kernel's, unless a complete boot lacks its lines."""
    whole = [lines for lines in consoles if "ready" in timeline(lines).moments]
    return "kernel" if all("init" in timeline(lines, "kernel").moments for lines in whole) else "greeting"


def _text(path: Path) -> str:
    try:
        return untrusted.read(path, LOG_LIMIT)
    except OSError:
        return ""


def as_text(boots: Sequence[BootTimelines], limit: int = 15) -> str:
    """The table of stages, then the initcalls: the slowest, and those that differ most; `limit` rows each, 0 for all."""
    counts = ", ".join(f"{each.name} {len(each.timelines)}" for each in boots)
    lines = [f"Boots by the host's clock in seconds, medians (and ranges) of so many boots: {counts}."]
    lines += ["Each row has medians of its own: those of the stages need not add up to that of all stages.", ""]
    width = max(len(f"{stage} ({words})") for stage, words in WORDS.items())
    lines.append(row("stage", column_heads(boots), width))
    whole = [each.until("ready") for each in boots]
    for stage in STAGES:
        lines.append(row(f"{stage} ({WORDS[stage]})", cells([each.stage(stage) for each in boots]), width))
    lines += [row("all stages", cells(whole), width), ""]
    lines.append(row("from the beginning to", [""] * (2 * len(boots) - 1), width))
    for mark, _, words in MARKS:
        words = "login: or the script" if mark == "ready" else words
        lines.append(row(f"  {words}", cells([each.until(mark) for each in boots]), width))
    for each in boots:
        late = [line.late for line in each.timelines if line.late]
        if late:
            lines += [
                "",
                f"{each.name}: the console started {median(late):.2f} s late by the kernel's clock, so that its stage "
                "`load` is too long and `kernel` too short by that. `earlycon` on the command line corrects it.",
            ]
    return "\n".join([*lines, "", *initcall_lines(boots, limit), ""])


def initcall_lines(boots: Sequence[BootTimelines], limit: int) -> list[str]:
    """Tables of the slowest initcalls and of those that differ most from the baseline's."""
    told = [each.calls() for each in boots]
    if not all(told):
        silent = [each.name for each, calls in zip(boots, told, strict=True) if not calls]
        return [HOW_TO_SEE_INITCALLS if not any(told) else f"{', '.join(silent)}: {HOW_TO_SEE_INITCALLS}"]
    middle = [{name: median(times) for name, times in calls.items()} for calls in told]
    names = sorted({name for calls in told for name in calls})
    width = max(28, *(min(len(name), 60) for name in names))
    columns = column_heads(boots)

    def table(title: str, rank: Callable[[str], float]) -> list[str]:
        chosen = sorted(names, key=rank, reverse=True)[: limit or None]
        rows = [row(name[:60], cells([calls.get(name, []) for calls in told], 1000), width) for name in chosen]
        return [row(title, columns, width), *rows, ""]

    def largest(name: str) -> float:
        return max(calls.get(name, 0.0) for calls in middle)

    def difference(name: str) -> float:
        return max((abs(calls.get(name, 0.0) - middle[0].get(name, 0.0)) for calls in middle[1:]), default=0.0)

    lines = table("slowest initcalls, ms", largest)
    if len(told) > 1:
        lines += table("largest differences, ms", difference)
    totals = [[sum(table.values()) for table in each.initcalls] for each in boots]
    return [*lines, row("all initcalls of a boot, ms", cells(totals, 1000), width)]


def cells(values: Sequence[Sequence[float]], divide: float = 1) -> list[str]:
    """The median of each contender's boots, and their range; then what each but the baseline differs by from the baseline."""
    shown = []
    for seen in values:
        ends = f" ({min(seen) / divide:.3f}–{max(seen) / divide:.3f})" if len(seen) > 1 else ""
        shown.append(f"{median(seen) / divide:.3f}{ends}" if seen else "-")
    for seen in values[1:]:
        if not (seen and values[0]):
            shown.append("-")
            continue
        base = median(values[0])
        change = median(seen) - base
        share = f" {with_sign(100 * change / base, '.0f')} %" if base else ""
        shown.append(f"{with_sign(change / divide, '.3f')}{share}")
    return shown


def column_heads(boots: Sequence[BootTimelines]) -> list[str]:
    """The names of the contenders, then those of their differences from the baseline, cut to a column's width."""
    names = [each.name for each in boots]
    return [head[:COLUMN] for head in [*names, *(f"{name} diff." for name in names[1:])]]


def row(name: str, columns: Sequence[str], width: int) -> str:
    return (f"{name:{width}}" + "".join(f" {column:>{COLUMN}}" for column in columns)).rstrip()
