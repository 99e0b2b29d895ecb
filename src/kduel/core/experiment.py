"""The types that everything else is expressed in: see docs/architecture.md."""

import re
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field, structs

from kduel.core.errors import InputError
from kduel.core.evidence import Evidence

Better = Literal["higher", "lower", "none"]
Role = Literal["primary", "exploratory"]
Scope = Literal["these", "class"]
"""What a verdict of several machines is about: those that measured, or the class that they are a sample of."""
Aspect = Literal[
    "", "throughput", "background-throughput", "memory-bandwidth", "storage-throughput", "storage-operations",
    "storage-latency", "scheduling", "wakeup-latency", "realtime-latency", "frame-latency", "request-latency",
    "operation-time", "operation-rate", "path-length", "cpu-time", "activity", "fairness", "boot-time", "build-time",
    "memory", "size", "modules", "power", "idle-power", "energy", "efficiency", "clock", "temperature",
]  # fmt: skip
"""What a metric measures; empty for what fits none of them, which then appears in no summary by aspect."""
Statistic = Literal["value", "mean", "median", "p95", "p99", "p999", "min", "max", "count", "total", "sd"]


class Metric(Struct, frozen=True, forbid_unknown_fields=True):
    """One number that a benchmark yields per trial.

    `statistic` defines how the many samples inside a boot became one number (the lint treats "max" differently).
    `fixed_at` is the value, in `unit`, that the harness itself would set (a configured duration): a metric that
    sits there measures the harness, and gets a finding.
    `least` and `most` bound what the metric can be at all, None where nothing does: a benchmark's output that gives a
    value outside is refused. Durations, counts, sizes and rates are never negative."""

    name: str
    unit: str
    better: Better
    about: str = ""
    statistic: Statistic = "value"
    fixed_at: float | None = None
    group: str = ""
    """The subsystem that it belongs to, for reports."""
    optional: bool = False
    """Whether a kernel may lack what it measures: a trial without it is no failure."""
    exact: bool = False
    """Whether chance has no part in it, as in the size of what is built: one pair decides, unless repetitions differ."""
    least: float | None = 0.0
    most: float | None = None
    derived: str = ""
    """How the parser calculates the value, in words; empty where the program prints it, perhaps in another unit."""
    aspect: Aspect = ""
    """What it measures. Summaries, trade-offs, advice and lint go by this, never by the metric's name."""
    words: str = ""
    """What is done, as a sentence names it: `fork, exit, wait`. Empty where the step's name says it."""


class Contender(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A kernel to be compared, with its command line, sysctls and scheduler. The first one is the baseline."""

    kernel: str
    """A kernel specification: `debian:6.12`, `debian-source:6.12,config=tinyconfig`, `tree:DIR`, a vmlinuz, `host`."""
    name: str = ""
    """How reports call it; by default the specification made short."""
    cmdline: str = ""
    """Words added to the kernel's command line."""
    sysctl: dict[str, str | int] = field(default_factory=dict)
    """Sysctls set before settling, such as {"kernel.sched_autogroup_enabled" = 0}."""
    scheduler: str = ""
    """A sched_ext scheduler and its arguments: `scx_bpfland -m performance`. Empty: the kernel's own."""
    policy: str = ""
    """The policy of the benchmarks: `other`, `batch`, `idle`, `rr:50`, `fifo:50`, `deadline:R,D,P`, `nice:5`."""
    modules: str = ""
    """A directory with the modules of a bare kernel image, where it needs any."""
    machine: dict[str, str | int] = field(default_factory=dict)
    """Settings in place of those of [machine], such as {"cpus" = 4}: what guests of this contender have."""


LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
"""What a step may be called: its directory is named after it."""


class Step(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One benchmark with one set of parameters, as a trial runs it. `label` names it and is unique in a study."""

    label: str
    benchmark: str
    parameters: dict[str, Any] = field(default_factory=dict)
    primary: list[str] = field(default_factory=list)
    """Names of the metrics that decide when the run may stop."""
    slices: int | None = None
    """In how many slices it is measured, in place of the study's number; 1 keeps it in one piece."""
    turns: int | None = None
    """Milliseconds of its turns where guests of a block take turns, in place of the study's; 0 runs it whole."""
    emulated: Role = "primary"
    """What its primary metrics are on an emulated machine."""
    load: str = ""
    """The background load that runs beside it; empty for none, or where it is a parameter of the benchmark."""
    schedstat: bool = False
    """True if the scheduler's counters around it are kept."""

    def on(self, emulated: bool) -> "Step":
        """The step on a machine that is emulated, or not."""
        return structs.replace(self, primary=[]) if emulated and self.emulated == "exploratory" else self


class Factor(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A circumstance that a study varies. The other levels are compared with the first."""

    name: str
    levels: list[str]


class StepCell(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A step's place among those that differ only in the levels of factors."""

    family: str
    levels: dict[str, str]
    """By factor."""


class Design(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The factors of a study, and which level each contender and each step has of them."""

    factors: list[Factor]
    """Those of contenders first: the first one is what the study is about."""
    cells: dict[str, dict[str, str]]
    """By contender: its level of each factor of contenders."""
    steps: dict[str, StepCell] = field(default_factory=dict)
    """By label, the steps that differ in a factor: its levels share a boot."""
    fraction: int = 1
    """One in so many cells was carried out."""
    interactions: int = 2
    """Between how many factors interactions are estimated."""


SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


class Bound(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The table [bound]: what single measurements should not exceed."""

    metric: str
    """The name of measurements that a benchmark keeps, such as `latency`, or LABEL/latency of one step."""
    limit: str
    """A number with its unit: "150 us"."""
    share: float = 1e-6
    """Of all measurements, how many may exceed the limit."""

    def __post_init__(self) -> None:
        match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *([a-zµ]+)", self.limit)
        if match is None or match[2] not in SECONDS or not float(match[1]) > 0:
            raise ValueError(f"limit {self.limit!r} is no time with a unit, such as 150 us")
        if not 0 < self.share < 1:
            raise ValueError(f"share {self.share:g} is not between 0 and 1")

    def in_unit(self, unit: str) -> float:
        """The limit in another unit of time."""
        number, name = re.fullmatch(r"([0-9.]+) *([a-zµ]+)", self.limit).groups()  # type: ignore[union-attr]
        return float(f"{float(number) * SECONDS[name] / SECONDS[unit]:.12g}")


class Settle(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The wait between boot and the first benchmark.

    "fixed" waits `seconds`; "idle" waits until the guest is idle, at most `seconds`."""

    mode: Literal["idle", "fixed"] = "idle"
    seconds: float = 10.0


TrialStatus = Literal["ok", "partial", "void"]
"""ok: every step gave its metrics; partial: some did; void: none may be used (panic, hang, failed gate...)."""
LEAST_ALPHA = 1e-6
"""Below it the bounds of repeated looks lose their digits, and no run is long enough to pass them."""
ALPHA_BELOW = 0.5
"""From there on a verdict would be a toss of a coin."""
LEFT_OUT = "left-out"
"""The code of a trial that was not run, because its contender cannot be measured."""
EMULATOR_FAULT = "emulator-fault"
"""The code of a trial that a known fault of the emulator ended."""
BLOCK_INTERRUPTED = "block-interrupted"
HOST_DISTURBED = "host-disturbed"
"""The code of a trial during which other work on the host took more than the study allows."""


class Void(Struct, frozen=True, forbid_unknown_fields=True):
    """The reason why nothing of a trial may be used."""

    code: str
    """For scripts: panic, oops, hang, deadline, wrong-machine, left-out, ..."""
    message: str = ""
    """For people: a paragraph, with the console's relevant lines."""

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    @property
    def brief(self) -> str:
        """Its first line; with the next one where it ends with a colon, as what happened is there."""
        said = [line.strip() for line in str(self).splitlines() if line.strip()]
        return " ".join(said[: 2 if said[0].endswith(":") else 1])


RESOLUTION = "resolution_ns"
"""The fact of an exact machine, and of a trial in which it resolves less, below which it resolves no time."""


def resolution_in(facts: Mapping[str, Any]) -> float:
    """Seconds below which a machine or a trial with these facts resolves no time; 0 where they say nothing of that."""
    given = facts.get(RESOLUTION)
    return given * 1e-9 if isinstance(given, int) else 0.0


class MachineRecord(Struct, kw_only=True, forbid_unknown_fields=True):
    """The machine of a run, as lock.json and the results have it."""

    kind: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    """The study's table [machine], without the kind."""
    exact: bool = False
    """Whether repeated trials give bit-identical numbers."""
    timing_warning: str = ""
    """What a reader must know of times measured there."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What the machine reports of itself: accelerator, versions, ...; the keys are those of its kind."""

    @property
    def evidence(self) -> Evidence:
        """The evidence that its trials are: counted, or samples."""
        return Evidence.COUNTED if self.exact else Evidence.SAMPLED

    @property
    def unreal(self) -> bool:
        """True if its times are not those of real hardware. What is to be known of this very machine's is something else."""
        return bool(self.timing_warning) and self.kind != "local"

    @property
    def resolution(self) -> float:
        """Seconds below which it resolves no time; 0 where it says nothing of that."""
        return resolution_in(self.facts)


def check_alpha(alpha: float, called: str) -> None:
    """Raises InputError, naming it as `called`, for a rate of false alarms that cannot be meant."""
    if not LEAST_ALPHA <= alpha < ALPHA_BELOW:
        raise InputError(
            f"{called} is {alpha:g}",
            f"Give a probability from {LEAST_ALPHA:g} to below {ALPHA_BELOW:g}, such as 0.05.",
        )
