"""tasks: a workload given as data, as rt-app has it: tasks that repeat steps such as period, run, wait, wake and lock (our ktasks)."""

import hashlib
import re
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, structs

from kduel.benchmarks import ParseError, Raw
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.reading import Natural, read_json
from kduel.benchmarks.support.varied import VariedBenchmark, VariedParameters, over_conditions, under_conditions
from kduel.benchmarks.wakeup import WakeupTimes, check_distribution, microseconds
from kduel.core.experiment import Metric
from kduel.core.toml import parse_toml

MIXES = Path(__file__).parent / "mixes"
NANOSECONDS = {"us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
STEP = re.compile(
    r"(?P<verb>period|sleep|run|fork) (?P<time>[0-9]{1,9}(\.[0-9]{1,6})?)(?P<unit>us|ms|s)"
    r"|(?P<wait>wait)( (?P<times>[1-9][0-9]{0,2}))?"
    r"|(?P<wake>wake) (?P<task>\S+)( (?P<wakes>[1-9][0-9]{0,2}))?"
    r"|(?P<hold>lock|unlock) (?P<mutex>[a-z][a-z0-9-]{0,30})",
    re.ASCII,
)
STEPS = '"period 5ms", "sleep 2ms", "run 300us", "fork 20ms", "wait", "wait 3", "wake TASK", "wake TASK 3", "lock NAME", "unlock NAME"'
MOST_PROCESSES, MOST_TASKS, MOST_LOCKS = 256, 32, 16
LONGEST = 3600 * 10**9
PERIODS = 100
"""Periods from which on one lies above the 99th percentile."""

NAME = re.compile("[a-z][a-z0-9-]{0,10}")
POLICY = re.compile(
    "((other|batch|idle|ext|(fifo|rr):[1-9][0-9]?|((other|batch|ext)[ +])?nice:-?[0-9]{1,2}))?", re.ASCII
)


class Task(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Processes that repeat steps. Without a policy they have the contender's."""

    steps: Annotated[tuple[str, ...], Meta(min_length=1, max_length=64)]
    count: Annotated[int, Meta(ge=1, le=MOST_PROCESSES)] = 1
    policy: str = ""

    @property
    def begins(self) -> str:
        """`period` or `wait`, from which on it is measured; empty for a task that goes on all the time."""
        first = self.steps[0].split()[0]
        return first if first in ("period", "wait") else ""

    @property
    def works(self) -> bool:
        """True if it has work, which can be counted."""
        return any(step.startswith(("run ", "fork ")) for step in self.steps)


class TaskTimes(Struct):
    """Account of a task's processes."""

    name: str
    count: int
    points: Natural
    voluntary: Natural | None
    involuntary: Natural | None
    migrations: Natural | None
    skipped: Natural = 0
    late: Natural = 0
    latency_ns: WakeupTimes | None = None
    response_ns: WakeupTimes | None = None


class TasksOutput(Struct):
    ktasks: int
    time_ms: int
    tasks: list[TaskTimes]
    marks: list[Natural] = []
    """The clock before the tasks are let go, as the time begins and as it ends: each where the plug-in notes its own."""
    slowest: list[tuple[Natural, Natural, Natural]] = []
    """As kwake has them, of tasks that slept until they were to begin."""


class TasksParameters(VariedParameters, frozen=True):
    """Either a `mix` that comes with KDuel, or `tasks` of one's own. `speed` is how many points of pi a CPU calculates in a
    microsecond: `run 2ms` is so much work, the same for all contenders. 400 is a server CPU of 2023; four exact CPUs have 9.
    A CPU that is less than a quarter as fast is refused."""

    mix: Literal["own", "audio", "game"] = "own"
    tasks: dict[str, Task] = {}
    time: Annotated[int, Meta(ge=1, le=3600)] = 2
    speed: Annotated[float, Meta(ge=0.1, le=100_000)] = 400.0

    def __post_init__(self) -> None:
        if (self.mix == "own") != bool(self.tasks):
            raise ValueError("give either a mix (audio, game) or tasks of your own")
        words_of(self)

    @property
    def chosen(self) -> dict[str, Task]:
        return dict(self.tasks) if self.tasks else read_mix(self.mix)


class Tasks(VariedBenchmark[TasksParameters]):
    """Lateness of each task of a mix, and what those beside it get done. A period is begun whatever was done
    before it, so that a stall is noticed by each period that falls into it. One that is over is skipped, and counts with the time
    until then."""

    name = "tasks"
    summary = (
        "A workload given as data (audio, game or your own tasks): how late each task begins and ends (our ktasks)"
    )
    programs = ("ktasks", "kvary")
    takes_policy = True

    def label(self, parameters: TasksParameters) -> str:
        p, what = parameters, str(parameters.mix)
        if p.tasks:
            mark = hashlib.sha256(msgspec.json.encode(p.tasks)).hexdigest()[:6]
            what = f"{'-'.join(p.tasks)[:30].strip('-')}-{mark}"
        usual = {field.name: field.default for field in structs.fields(p)}
        forms = {"time": f"{p.time}s", "speed": f"speed-{p.speed:g}", "conditions": f"{p.conditions}c"}
        return "-".join([f"tasks-{what}", *(form for name, form in forms.items() if getattr(p, name) != usual[name])])

    def metrics(self, parameters: TasksParameters) -> tuple[Metric, ...]:
        chosen = parameters.chosen
        own = tuple(
            metric for name, task in chosen.items() for metric in metrics_of(name, task, parameters.time)
        ) + with_aspect(
            "activity",
            *(
                Metric(name, "count", "none", f"{what}, not of those that they fork.", "count", optional=optional)
                for name, what, optional in (
                    ("involuntary_switches", "Preemptions of the tasks' processes", False),
                    ("voluntary_switches", "Waits of the tasks' processes", False),
                    ("migrations", "Moves of the tasks' processes to another CPU", True),
                )
            ),
            derived="sum over tasks",
        )
        return over_conditions(own) if parameters.conditions else own

    def script(self, parameters: TasksParameters) -> str:
        return f'{under_conditions(parameters)}"$KDUEL_PROGRAMS/ktasks" {" ".join(words_of(parameters))}\n'

    def seconds(self, parameters: TasksParameters) -> float:
        return max(1, parameters.conditions) * (parameters.time + 0.5)

    def policy_tasks(self, parameters: TasksParameters) -> int | None:
        return sum(task.count for task in parameters.chosen.values() if not task.policy)

    def parse_once(self, raw: Raw, parameters: TasksParameters) -> dict[str, float]:
        out = read_ktasks(raw.stdout, parameters)
        found: dict[str, float] = {}
        for one, task in zip(out.tasks, parameters.chosen.values(), strict=True):
            found |= values_of(one, task, parameters.time)
        for name, counts in (
            ("involuntary_switches", [one.involuntary for one in out.tasks]),
            ("voluntary_switches", [one.voluntary for one in out.tasks]),
            ("migrations", [one.migrations for one in out.tasks]),
        ):
            known = [count for count in counts if count is not None]
            if len(known) == len(counts):
                found[name] = float(sum(known))
        return found


def read_ktasks(text: str, parameters: TasksParameters) -> TasksOutput:
    """ktasks' output. Raises ParseError where it is not of these tasks."""
    out = read_json(text, TasksOutput, "ktasks' output")
    if out.time_ms != 1000 * parameters.time:
        raise ParseError(f"the output is of {out.time_ms} ms; asked for were {parameters.time} s")
    if [(one.name, one.count) for one in out.tasks] != [
        (name, task.count) for name, task in parameters.chosen.items()
    ]:
        raise ParseError("the output is of other tasks")
    return out


def metrics_of(name: str, task: Task, time: int) -> tuple[Metric, ...]:
    if not task.begins:
        about = f"Work that {name} got done, in millions of points of pi."
        rate = Metric(f"{name}-rate", "Mpoints/s", "higher", about, "mean", derived="points / time")
        return with_aspect("background-throughput", rate) if task.works else ()
    periodic = task.begins == "period"

    def tail(figure: str, what: str) -> list[Metric]:
        """The 99th percentile; none where too few periods are planned for one."""
        if periodic and plans(task, time) < PERIODS:
            return []
        about = f"{name} {what} no later in 99 of 100 cases."
        return [Metric(f"{name}-{figure}-p99", "us", "lower", about, "p99", optional=not periodic)]

    late = Metric(
        f"{name}-late", "%", "lower", "Periods not done when the next one was due.",
        most=100.0, derived="100 late / periods",
    )  # fmt: skip
    return (
        *with_aspect(
            "wakeup-latency",
            *tail("latency", "began"),
            Metric(f"{name}-latency-p50", "us", "lower", f"{name} began no later in half of the cases.", "median"),
            Metric(f"{name}-latency-max", "us", "lower", f"The latest begin of {name}; grows with the time.", "max"),
        ),
        *with_aspect(
            "request-latency",
            *tail("response", "was done"),
            Metric(f"{name}-response-max", "us", "lower", f"The latest end of {name}; grows with the time.", "max"),
            *[late] * periodic,
        ),
    )


def values_of(one: TaskTimes, task: Task, time: int) -> dict[str, float]:
    """Values of one task. Raises ParseError."""
    if not task.begins:
        return {f"{one.name}-rate": one.points / time / 1e6} if task.works else {}
    latency, response = one.latency_ns, one.response_ns
    if latency is None or response is None or latency.n != response.n:
        raise ParseError(f"not all runs of {one.name} have a begin and an end")
    if not latency.n:
        raise ParseError(f"{one.name} was not woken in the time: make `time` longer, or what wakes it shorter")
    found: dict[str, float] = {}
    if task.begins == "period":
        planned = plans(task, time)
        if latency.n != planned or not one.skipped <= one.late <= planned:
            raise ParseError(f"{one.name} has {latency.n} periods and {one.late} late ones, {planned} were planned")
        found[f"{one.name}-late"] = 100 * one.late / planned
    for figure, times in (("latency", latency), ("response", response)):
        check_distribution(times, f"{one.name} {figure}")
        for percentile in ("p50", "p99", "max"):
            if getattr(times, percentile) is not None and (figure, percentile) != ("response", "p50"):
                found[f"{one.name}-{figure}-{percentile}"] = microseconds(times, percentile)
    return found


def plans(task: Task, time: int) -> int:
    """Number of periods that are planned in so many seconds; the processes begin one after the other in the first one."""
    period = duration(STEP.fullmatch(task.steps[0]))
    return sum(-(-(time * 10**9 - number * period // task.count) // period) for number in range(task.count))


def duration(step: re.Match[str] | None) -> int:
    """Nanoseconds of a step that has a time."""
    assert step is not None
    return int(Fraction(step["time"]) * NANOSECONDS[step["unit"]])


def read_mix(name: str) -> dict[str, Task]:
    path = MIXES / f"{name}.toml"
    return msgspec.convert(parse_toml(path.read_text(), str(path), ""), dict[str, dict[str, Task]])["tasks"]


def words_of(parameters: TasksParameters) -> list[str]:
    """ktasks' arguments. Raises ValueError that names the task and the step."""
    chosen = parameters.chosen
    if len(chosen) > MOST_TASKS or sum(task.count for task in chosen.values()) > MOST_PROCESSES:
        raise ValueError(f"there are at most {MOST_TASKS} tasks and {MOST_PROCESSES} processes")
    numbers: dict[str, int] = {}
    words = [f"--time {1000 * parameters.time} --speed {round(1000 * parameters.speed)}"]
    woken = {step.split()[1] for task in chosen.values() for step in task.steps if re.match(r"wake \S", step)}
    for name, task in chosen.items():
        if not NAME.fullmatch(name):
            raise ValueError(f"a task cannot be called {name!r}: give a letter and up to ten of a-z, 0-9 and -")
        if not POLICY.fullmatch(task.policy):
            raise ValueError(
                f"task {name}, policy {task.policy!r} is none: there are other, batch, idle, ext, fifo:50, rr:50, nice:5, batch nice:5"
            )
        words.append(f"task={name} count={task.count}")
        words += [f"policy={task.policy.replace(' ', '+')}"] if task.policy else []
        held: list[str] = []
        for number, text in enumerate(task.steps):
            step, where = STEP.fullmatch(text), f"task {name}, step {text!r}"
            if step is None:
                raise ValueError(f"{where} is none: steps are {STEPS}")
            if step["verb"]:
                nanoseconds = duration(step)
                if step["verb"] == "period" and (number or nanoseconds < 100_000):
                    raise ValueError(f"{where}: a period is the first step, and takes 100us at least")
                if nanoseconds > LONGEST:
                    raise ValueError(f"{where} is longer than an hour")
                works = step["verb"] in ("run", "fork")
                words.append(
                    f"{step['verb']}={round(nanoseconds / 1000 * parameters.speed) if works else nanoseconds}"
                )
            elif step["wait"]:
                if name not in woken:
                    raise ValueError(f"{where}: no task wakes {name}")
                words.append(f"wait={step['times'] or 1}")
            elif step["wake"]:
                if step["task"] not in chosen:
                    raise ValueError(f"{where}: there is no such task; there are {', '.join(chosen)}")
                words.append(f"wake={list(chosen).index(step['task'])}:{step['wakes'] or 1}")
            else:
                mutex = step["mutex"]
                if (step["hold"] == "lock") == (mutex in held):
                    raise ValueError(f"{where}: {'it has' if mutex in held else 'it does not have'} the lock then")
                held = [*held, mutex] if step["hold"] == "lock" else [one for one in held if one != mutex]
                if numbers.setdefault(mutex, len(numbers)) >= MOST_LOCKS:
                    raise ValueError(f"{where}: there are at most {MOST_LOCKS} locks")
                words.append(f"{step['hold']}={numbers[mutex]}")
        if held:
            raise ValueError(f"task {name} does not unlock {held[0]}")
        if not (task.begins or task.works or any(step.startswith("sleep ") for step in task.steps)):
            raise ValueError(f"task {name} neither works nor sleeps: give it a period, or a step such as run 1ms")
    return words


PLUGIN = Tasks()
