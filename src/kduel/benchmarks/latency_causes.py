"""latency-causes: what held up the latest wake-ups of a real-time task, from traces of the kernel's own events."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from msgspec import Meta

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.benchmarks.support import load
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Number
from kduel.benchmarks.support.reading import read_file, split_lines
from kduel.core.experiment import Metric

TRACES = "traces"
EVENTS = (
    "sched/sched_switch", "sched/sched_waking", "irq/irq_handler_entry", "irq/irq_handler_exit", "irq/softirq_entry",
    "irq/softirq_exit", "timer/hrtimer_start", "irq_vectors",
)  # fmt: skip
LAST_PATH = Path(__file__).with_suffix(".awk").read_text("utf-8")
LINE = re.compile(r"\s*\S.*?-(\d+)\s+\[\d+\]\s+\S+\s+(\d+\.\d+): (\w+): ?(.*)")
CAUSES = {
    "timer-late": "the timer's interrupt came late: interrupts were off, or the machine was away",
    "interrupt": "other interrupts were served",
    "softirq": "softirqs ran",
    "thread": "another thread kept the CPU",
    "switch": "leaving idle, the switch and the way back to user space took the longest",
}


class LatencyCausesParameters(Parameters, frozen=True):
    """cyclictest's threads are on all CPUs, every millisecond."""

    samples: Annotated[int, Meta(ge=5, le=1000)] = 10
    """Number of late wake-ups that are looked at."""
    over: Number = 0
    """Microseconds from which on a wake-up is late; 0: what 99 of 100 do not exceed in a second of the same boot, traced too."""
    load: load.Load = "idle"


class LatencyCauses(Benchmark[LatencyCausesParameters]):
    """Tracing makes wake-ups later: this says why they are late, and cyclictest how late they are. Each late wake-up counts for what
    took the largest part of the way from its timer's expiry to the task."""

    name = "latency-causes"
    summary = "What the latest wake-ups waited for: interrupts off, interrupts, softirqs, threads, the switch (cyclictest, ftrace)"
    packages = ("rt-tests", *load.PACKAGES)
    kernel_options = ("EVENT_TRACING",)
    label_template = "latency-causes-{load}"
    label_formats = {"samples": "{}x", "over": "over{}us"}
    declared_metrics = with_aspect(
        "realtime-latency",
        *(
            Metric(
                name, "%", "none", f"Share of the late wake-ups: {why}.", most=100.0, derived="by the longest part"
            )
            for name, why in CAUSES.items()
        ),
    )

    def script(self, parameters: LatencyCausesParameters) -> str:
        p = parameters
        client = "cyclictest -q -m -a -t -p80 -i1000"
        enable = "".join(f'[ ! -e "$T/events/{one}" ] || echo 1 >"$T/events/{one}/enable"\n' for one in EVENTS)
        # Half of the loops of all threads lie beyond the median, and so on.
        quantile = "awk '/^[0-9]/ { for (i = 2; i <= NF; i++) { n += $i; c[$1 + 0] += $i } } END { for (v = 0; v <= 100000; v++) { s += c[v]; if (s >= 0.99 * n) { print v + 1; exit } } }'"
        return load.wrap(
            p.load,
            f"""\
T=/sys/kernel/tracing
[ -e "$T/trace" ] || mount -t tracefs none "$T"
grep -q ' /sys/kernel/debug ' /proc/mounts || mount -t debugfs none /sys/kernel/debug
echo mono >"$T/trace_clock"
echo 1024 >"$T/buffer_size_kb"
echo 'comm == "cyclictest"' >"$T/events/sched/sched_waking/filter"
{enable}limit={p.over or f"$({client} -l1000 -h100000 | {quantile})"}
echo "limit $limit" >"$KDUEL_STEP/{TRACES}"
n=0
while [ "$n" -lt {p.samples} ]; do
  n=$((n + 1))
  echo >"$T/trace"
  echo 1 >"$T/tracing_on"
  {client} -l20000 -b"$limit" --tracemark >/dev/null
  echo 0 >"$T/tracing_on"
  awk '{LAST_PATH}' "$T/trace" >>"$KDUEL_STEP/{TRACES}"
done
echo 0 >"$T/events/enable"
sha256sum <"$KDUEL_STEP/{TRACES}"
""",
        )

    def seconds(self, parameters: LatencyCausesParameters) -> float:
        return 2.0 + parameters.samples * 0.3 + load.extra_seconds(parameters.load)

    def parse(self, raw: Raw, parameters: LatencyCausesParameters) -> dict[str, float]:
        text = read_file(raw, TRACES)
        if raw.stdout.split() != [hashlib.sha256(text.encode()).hexdigest(), "-"]:
            raise ParseError(f"{TRACES} is not what the trial wrote")
        paths = list(split_paths(split_lines(text, TRACES)))
        counted = Counter(cause for path in paths if (cause := cause_of(path)) is not None)
        if 2 * counted.total() < parameters.samples:
            raise ParseError(
                f"of {parameters.samples} late wake-ups {len(paths)} were found and {counted.total()} can be explained: lower `over`"
            )
        return {name: 100 * counted[name] / counted.total() for name in CAUSES}


class Event(NamedTuple):
    """A line of a trace; microseconds."""

    pid: int
    time: float
    name: str
    text: str

    def number(self, key: str) -> int:
        """A figure of the event. Raises ParseError where there is none."""
        found = re.search(rf"\b{key}=(\d+)", self.text)
        if found is None:
            raise ParseError(f"an event {self.name} has no {key}")
        return int(found[1])


def split_paths(lines: Sequence[str]) -> Iterator[list[Event]]:
    """The events of each late wake-up. Raises ParseError for a line that is none."""
    path: list[Event] = []
    for line in lines[1:]:
        if line == "path":
            if path:
                yield path
            path = []
        elif found := LINE.fullmatch(line):
            path.append(Event(int(found[1]), float(found[2]) * 1e6, found[3], found[4]))
        else:
            raise ParseError(f"{TRACES} has a line that is no event: {line[:80]!r}")
    if path:
        yield path


def cause_of(path: Sequence[Event]) -> str | None:
    """The largest part of a late wake-up, from the timer's expiry to the task; None where the trace lacks the way."""
    start, end = path[0], path[-1]
    mine = start.pid
    woken = next((e for e in path if e.name == "sched_waking" and e.number("pid") == mine), None)
    arrived = next((e for e in path if e.name == "sched_switch" and e.number("next_pid") == mine), None)
    if "hrtimer_wakeup" not in start.text or end.pid != mine or woken is None or arrived is None:
        return None
    expiry = start.number("softexpires") / 1000
    before, during = (find_spent(path, *span) for span in ((expiry, woken.time), (woken.time, arrived.time)))
    waiting = arrived.time - woken.time - during["interrupt"] - during["softirq"]
    idle = arrived.number("prev_pid") == 0
    parts = {
        "timer-late": woken.time - expiry - before["interrupt"],
        "interrupt": before["interrupt"] + during["interrupt"],
        "softirq": during["softirq"],
        "thread": 0.0 if idle else waiting,
        "switch": end.time - arrived.time + (waiting if idle else 0.0),
    }
    return max(parts, key=lambda name: parts[name])


def find_spent(path: Sequence[Event], since: float, until: float) -> dict[str, float]:
    """Microseconds between two moments in which interrupts were served, and in which softirqs ran."""
    found = {"interrupt": 0.0, "softirq": 0.0}
    inside: list[str] = []
    last = path[0].time
    for event in path:
        if inside:
            kind = "interrupt" if "interrupt" in inside else "softirq"
            found[kind] += max(0.0, min(event.time, until) - max(last, since))
        last = event.time
        kind = "softirq" if event.name.startswith("softirq_") else "interrupt"
        if event.name.endswith("_entry"):
            inside.append(kind)
        elif event.name.endswith("_exit") and kind in inside:
            inside.remove(kind)
    return found


PLUGIN = LatencyCauses()
