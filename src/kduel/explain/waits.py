"""The slowest wake-ups on exact CPUs: which tasks had the CPU until the woken task ran, as QEMU's plug-in `turns`
sees switches between tasks; nothing is traced in the guest."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from xml.sax.saxutils import escape

from msgspec import Struct

from kduel.core.text import PLAIN_WIDTH, plural, visible
from kduel.explain.layout import Figures, Line, lay_out

IDLE = 0
"""Number of the task that has a CPU without work."""
CLOCK = "clock"


class BrokenSwitchesError(ValueError):
    """The plug-in's lines are not of this guest's wake-ups."""


class Run(Struct, frozen=True):
    """A task on a CPU from one switch to the next. Nanoseconds from the wake-up on."""

    cpu: int
    task: int
    name: str
    begin: int
    end: int

    @property
    def title(self) -> str:
        """`hog 3`, or `nothing (it polled)`."""
        return visible(self.name, 40) if self.task != IDLE else "nothing (it polled)"


class Wait(Struct, frozen=True):
    """A wake-up of a task, up to its first instruction."""

    condition: str
    worker: str
    cpu: int
    """On which it ran."""
    waited: int
    """Nanoseconds."""
    runs: list[Run]
    """What all CPUs executed meanwhile, in the order of the CPUs and of time; not the task itself on its CPU."""

    def by_task(self) -> list[tuple[str, int, int, int]]:
        """The tasks that had the worker's CPU, longest first: title, nanoseconds, number of runs, longest run."""
        found: dict[int, list[Run]] = {}
        for run in self.runs:
            if run.cpu == self.cpu:
                found.setdefault(run.task, []).append(run)
        rows = [
            (runs[0].title, sum(lengths), len(runs), max(lengths))
            for runs in found.values()
            if (lengths := [run.end - run.begin for run in runs])
        ]
        return sorted(rows, key=lambda row: -row[1])


class Waits(Struct, frozen=True, kw_only=True):
    """The slowest wake-ups of a step in one kernel, slowest first."""

    contender: str
    release: str
    qemu: str
    cpus: int
    resolution: int
    """Nanoseconds."""
    waits: list[Wait]


class WaitsExplanation(Struct, frozen=True):
    """The slowest wake-ups of a step in each kernel, the baseline first."""

    benchmark: str
    kernels: list[Waits]


class Switches:
    """The plug-in's account of which task each CPU went on with, and of when programs read the clock."""

    def __init__(self, text: str, shift: int = 0) -> None:
        """`shift` is the logarithm of the nanoseconds that an instruction takes. Raises BrokenSwitchesError."""
        self.clocks: list[int] = []
        self.times: dict[int, list[int]] = {}
        self.tasks: dict[int, list[tuple[int, str]]] = {}
        try:
            for line in text.splitlines():
                time, what, *rest = line.split(" ", 3)
                if what == CLOCK:
                    self.clocks.append(int(time) << shift)
                else:
                    self.times.setdefault(int(what), []).append(int(time) << shift)
                    self.tasks.setdefault(int(what), []).append((int(rest[0]), rest[1]))
        except (ValueError, IndexError) as error:
            raise BrokenSwitchesError(f"the plug-in's line {line[:80]!r} is no switch") from error

    def runs(self, cpu: int, begin: int, end: int) -> Iterator[Run]:
        """Runs of a CPU in a time, cut to it; times from its begin on."""
        times, tasks = self.times.get(cpu, []), self.tasks.get(cpu, [])
        for place in range(max(bisect_right(times, begin) - 1, 0), bisect_right(times, end)):
            until = times[place + 1] if place + 1 < len(times) else end
            first, last = max(times[place], begin) - begin, min(until, end) - begin
            if last > first:
                yield Run(cpu, *tasks[place], first, last)

    def cpu_of(self, task: int, time: int, slack: int) -> int:
        """The CPU that a task had at a time, which is known to `slack` nanoseconds. Raises BrokenSwitchesError."""
        for cpu, times in self.times.items():
            first, last = bisect_right(times, time - slack), bisect_right(times, time + slack)
            if any(number == task for number, _ in self.tasks[cpu][max(first - 1, 0) : last]):
                return cpu
        raise BrokenSwitchesError(f"task {task} says that it ran, and no CPU had it then")


Told = tuple[str, Sequence[int], Sequence[tuple[int, int, int]]]
"""What a program told under a condition: the condition's name, the clock at each of the plug-in's marks, and of each slow wake-up
the task, when it was woken and when it ran."""


def plugin_time(time: int, clocks: Sequence[int], marks: Sequence[int]) -> int:
    """Time of the plug-in at a time of the program's clock, on the line through the marks next to it. The plug-in is ahead: it counts a
    block of code whole, also where a page fault ends it, and so runs faster where processes are forked."""
    if len(clocks) == 1:
        return time - clocks[0] + marks[0]
    place = min(max(bisect_right(clocks, time), 1), len(clocks) - 1)
    (clock, after), (mark, next_mark) = clocks[place - 1 : place + 1], marks[place - 1 : place + 1]
    return mark + (time - clock) * (next_mark - mark) // (after - clock)


def find_waits(switches: Switches, told: Sequence[Told], slack: int) -> list[Wait]:
    """The wake-ups that a program told, slowest first; its clock and the plug-in's differ by `slack` nanoseconds at most, once what the plug-in is ahead is taken back. Raises BrokenSwitchesError where marks and conditions do not match."""
    if len(switches.clocks) != sum(len(clocks) for _, clocks, _ in told):
        raise BrokenSwitchesError(
            f"the clock was read {len(switches.clocks)} times under {plural(len(told), 'condition')}"
        )
    found, noted = [], iter(switches.clocks)
    for condition, clocks, slowest in told:
        marks = list(islice(noted, len(clocks)))
        for task, sent, woke in slowest:
            begin, end = (plugin_time(time, clocks, marks) for time in (sent, woke))
            cpu = switches.cpu_of(task, end, slack)
            runs = [run for one in sorted(switches.times) for run in switches.runs(one, begin, end)]
            # The last one: a task has its own name only after its first run.
            name = next(name for number, name in reversed(switches.tasks[cpu]) if number == task)
            others = [run for run in runs if run.cpu != cpu or run.task != task]
            found.append(Wait(condition, visible(name, 40), cpu, woke - sent, others))
    return sorted(found, key=lambda wait: -wait.waited)


def as_text(found: WaitsExplanation, limit: int = 3, width: int = PLAIN_WIDTH) -> str:
    """The `limit` slowest waits in each kernel, each with the tasks that had its CPU; 0 for all."""
    lines: list[Line] = [
        f"{found.benchmark}: the slowest wake-ups, and which tasks had the CPU until the woken one ran",
        "(one boot of each kernel with this step alone)",
    ]
    for kernel in found.kernels:
        lines += ["", f"{kernel.contender} ({kernel.release}):"]
        for wait in kernel.waits[: limit or None]:
            where = "" if wait.condition in ("", "plain") else f", under condition {wait.condition}"
            lines.append(
                f"{wait.worker} ran {microseconds(wait.waited)} us after it was woken, on CPU {wait.cpu}{where}:"
            )
            for title, total, runs, longest in wait.by_task():
                note = f"{runs} runs, the longest {microseconds(longest)} us" if runs > 1 else ""
                lines.append(Figures((microseconds(total), "us"), title, note=note))
        if not kernel.waits:
            lines.append("No worker slept when it was woken.")
    last = found.kernels[-1]
    lines += ["", f"{last.cpus} CPUs of QEMU {last.qemu}; times are resolved to {microseconds(last.resolution)} us."]
    return "\n".join([*lay_out(lines, width), ""])


def microseconds(nanoseconds: int) -> str:
    """`1,284`, `37.4`."""
    return f"{nanoseconds / 1000:,.0f}" if nanoseconds >= 100_000 else f"{nanoseconds / 1000:,.1f}"


LANE, LEFT, WIDE, TOP = 34, 70, 900, 40
COLOURS = ("#0969da", "#cf222e", "#1a7f37", "#bf8700", "#8250df", "#bc4c00", "#1b7c83", "#e85aad", "#57606a")


def as_svg(explained: WaitsExplanation) -> str:
    """Picture of the slowest wait with the contender: CPUs as lanes, tasks as colours."""
    found = explained.kernels[-1]
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDE + 30}" height="{TOP + LANE * found.cpus + 50}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    if not found.waits:
        return "\n".join([*out, '<text x="10" y="20">No worker slept when it was woken.</text>', "</svg>", ""])
    wait = found.waits[0]
    names = list(dict.fromkeys(run.name for run in wait.runs if run.task != IDLE))
    colours = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(names)}
    out.append(
        f'<text x="10" y="20" font-weight="bold">{escape(visible(found.contender))}: {escape(wait.worker)} was woken at 0 and ran '
        f"{microseconds(wait.waited)} us later, on CPU {wait.cpu}</text>"
    )
    for cpu in range(found.cpus):
        weight = "bold" if cpu == wait.cpu else "normal"
        out.append(f'<text x="10" y="{TOP + LANE * cpu + 17}" font-weight="{weight}">CPU {cpu}</text>')
        out.append(f'<rect x="{LEFT}" y="{TOP + LANE * cpu}" width="{WIDE}" height="24" fill="#eaeef2"/>')
    scale = WIDE / wait.waited
    for run in wait.runs:
        if run.task == IDLE:
            continue
        x, y, wide = LEFT + run.begin * scale, TOP + LANE * run.cpu, (run.end - run.begin) * scale
        name = escape(visible(run.name))
        out.append(
            f'<rect x="{x:.1f}" y="{y}" width="{max(wide, 0.5):.1f}" height="24" fill="{colours[run.name]}">'
            f"<title>{name}: {microseconds(run.end - run.begin)} us</title></rect>"
        )
        if wide > 7 * len(run.name) + 6:
            out.append(f'<text x="{x + 4:.1f}" y="{y + 16}" fill="white">{name}</text>')
    axis = TOP + LANE * found.cpus + 8
    out += [
        f'<text x="{LEFT + WIDE * part / 4:.0f}" y="{axis}" text-anchor="middle">{microseconds(wait.waited * part // 4)}</text>'
        for part in range(5)
    ]
    out.append(f'<text x="{LEFT}" y="{axis + 22}">us since the wake-up; grey: a CPU without work</text>')
    return "\n".join([*out, "</svg>", ""])
