"""Benchmarks, one module each, here or behind an entry point of the group `kduel.benchmarks`, that offers `PLUGIN`:
shell lines that run in the trial, and a parser that turns their output into numbers."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from msgspec import Struct

from kduel.benchmarks.support.load import extra_seconds
from kduel.benchmarks.support.output import BeyondHistogramError, ParseError, ParserFault, Raw
from kduel.benchmarks.support.parameters import cut_time, label_of
from kduel.benchmarks.support.reading import check_positive, find_number
from kduel.benchmarks.support.service import Room, Service
from kduel.core.errors import HostError, InputError
from kduel.core.experiment import Metric
from kduel.core.plugins import argument_of, convert_table, named_plugin
from kduel.core.samples import Details, within_reason

__all__ = [
    "Benchmark", "Parameters", "ParseError", "ParserFault", "Raw", "Room", "Service", "benchmark", "check_values",
]  # fmt: skip

Parse = Callable[..., dict[str, float]]


def check_values(values: dict[str, float], metrics: Iterable[Metric]) -> dict[str, float]:
    """The values, where each metric has one within its range and reason, or is optional. Raises ParseError."""
    stated = {metric.name: metric for metric in metrics}
    needed = {name for name, metric in stated.items() if not metric.optional}
    if not needed <= values.keys() <= stated.keys():
        missing, extra = sorted(needed - values.keys()), sorted(values.keys() - stated.keys())
        raise ParseError(
            f"the output has no {', '.join(missing)}" if missing else f"not declared: {', '.join(extra)}"
        )
    for name, value in values.items():
        least, most = stated[name].least, stated[name].most
        if not within_reason(value):
            raise ParseError(f"{name} is {value:g}, not a finite number within reason")
        if least is not None and value < least:
            raise ParseError(f"{name} is {value:g}, but it cannot be below {least:g}")
        if most is not None and value > most * (1 + 1e-9):
            raise ParseError(f"{name} is {value:g}, but it cannot be above {most:g}")
    return {name: float(value) for name, value in values.items()}


def _guard_parser(parse: Parse) -> Parse:
    """`parse` with its values checked, and with a fault of its own as a ParseError: other steps must go on."""

    @functools.wraps(parse)
    def parse_safely(self: Benchmark[Any], raw: Raw, parameters: Any) -> dict[str, float]:
        if type(self).parse is not parse_safely:  # called by the parser of a subclass, whose metrics are others
            return parse(self, raw, parameters)
        try:
            return check_values(parse(self, raw, parameters), self.metrics(parameters))
        except BeyondHistogramError as error:
            check_values(error.known, (one for one in self.metrics(parameters) if one.name in error.known))
            raise
        except (ParseError, HostError):
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"[:200]
            raise ParserFault(f"the parser of {self.name} failed on the output ({reason})") from error

    return parse_safely


class Parameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of a benchmark in a study, each with a type, bounds and a default; none by themselves.

    A study's list for a parameter that takes one value becomes a matrix.
    """


P = TypeVar("P", bound=Struct)


class Benchmark(ABC, Generic[P]):
    """A command with a parser; its `Parameters`, the argument of the class, have the program's own defaults.

    A simple one needs no more than its attributes and a `script`: with `declared_metrics` and `patterns` the inherited
    `metrics` and `parse` suffice. docs/plugins.md has an example.
    """

    name: ClassVar[str]
    """The field's own name for it."""
    summary: ClassVar[str]
    """One line for `kduel list benchmarks`: what it measures and what it is good for."""
    Parameters: type[P]
    """The `P` of `Benchmark[P]`."""
    label_template: ClassVar[str] = ""
    """The beginning of its labels, with the parameters that are always in it: `hackbench-{groups}g`. Its name by default."""
    label_formats: ClassVar[Mapping[str, str]] = {}
    """Form in which a label names other parameters that are not at their default: `{"time": "{}s"}`."""
    by_clock: ClassVar[bool] = False
    """Whether it stops after its `time`, so that several shorter ones measure the same."""
    declared_metrics: ClassVar[tuple[Metric, ...]] = ()
    """Its metrics, the main one first, where they depend on no parameter."""
    patterns: ClassVar[Mapping[str, str]] = {}
    """For each metric a regular expression for the whole line of stdout that has it, with one group for the number."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Debian packages that the guest root needs for it."""
    modules: ClassVar[tuple[str, ...]] = ()
    """Kernel modules that are loaded before settling, where they are not built in."""
    kernel_options: ClassVar[tuple[str, ...]] = ()
    """Options of the kernel, without CONFIG_, that it cannot do without: checked before the first boot."""
    only_on: ClassVar[str] = ""
    """The one kind of machine that can carry it out; empty where any can."""
    programs: ClassVar[tuple[str, ...]] = ()
    """Our own static programs (names in kduel.guest.programs) that the trial needs in its path."""
    distributions: ClassVar[tuple[str, ...]] = ()
    """Names of the measurements that `details` keeps whole, such as `latency` of the metric `latency-p99`."""
    takes_policy: ClassVar[bool] = False
    """True if the program itself puts its tasks under $KDUEL_POLICY; all others are launched under it."""
    needs_scratch: ClassVar[bool] = False
    """True if it works on the scratch disk ($KDUEL_SCRATCH, a fresh file system)."""
    trial_files: ClassVar[tuple[str, ...]] = ()
    """Files of the trial that `parse` reads, too, such as console.log; in `Raw.files` they hide the step's own."""
    duration: ClassVar[float] = 5.0
    """Seconds that its script takes, about, where no parameter `time` says it."""
    besides: ClassVar[float] = 0.0
    """Seconds that it takes besides, about."""
    counts: ClassVar[bool] = False
    """True if its figures are counts of instructions, which only a machine whose clock counts them can give."""

    def label(self, parameters: P) -> str:
        """A short name for this benchmark with these parameters, [a-z0-9.-]+, such as `sysbench-cpu-2t`."""
        return label_of(self.label_template or self.name, parameters, **self.label_formats)

    def metrics(self, parameters: P) -> tuple[Metric, ...]:
        """Metrics that `parse` gives, the main one first."""
        return self.declared_metrics

    def counts_instructions(self, parameters: P) -> bool:
        """True if its figures are `counts` with these parameters."""
        return self.counts

    def files_for(self, parameters: P) -> list[tuple[str, Path]]:
        """Files of this host that the trial needs in its path: name and file. Raises InputError where one is missing."""
        return []

    @abstractmethod
    def script(self, parameters: P) -> str:
        """POSIX shell lines, run as root by `sh -e` in an empty directory; stdout and stderr are kept.

        $KDUEL_STEP is the step's directory (files written there come home), $KDUEL_SCRATCH the fresh scratch file
        system, $KDUEL_PROGRAMS the directory of our static programs. A non-zero end voids the step.
        """

    @_guard_parser
    def parse(self, raw: Raw, parameters: P) -> dict[str, float]:
        """Metric name to value, in the metric's unit, for all of `metrics`; by default what the `patterns` find, each
        above 0. Raises ParseError for what is missing or garbled; `check_values` holds the result against the
        metrics."""
        return {
            name: check_positive(find_number(pattern, raw.stdout, f"the {name}"), f"the {name}")
            for name, pattern in self.patterns.items()
        }

    def details(self, raw: Raw, parameters: P) -> Details:
        """Details of the output beyond one number a metric; nothing, for most. Raises ParseError as `parse` does."""
        return Details()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if found := argument_of(cls, Benchmark):
            cls.Parameters = found
        if "parse" in vars(cls):
            cls.parse = _guard_parser(cls.parse)  # type: ignore[method-assign]

    def seconds(self, parameters: P) -> float:
        """About how long the script takes, with the load that it runs under, for the ETA."""
        under = extra_seconds(getattr(parameters, "load", "idle"))
        return self.besides + float(getattr(parameters, "time", self.duration)) + under

    def cut(self, parameters: P, slices: int) -> list[P]:
        """Parameters of each of so many slices, or fewer, together as long as the whole step; `[parameters]` refuses to be cut
        (fixed work, cold caches, files that take long to prepare). By default a benchmark refuses, unless it stops `by_clock`."""
        return cut_time(parameters, slices) if self.by_clock else [parameters]

    def may_be_held(self) -> bool:
        """True if its step may be held in between, while another guest runs: by default one that stops by the clock,
        unless it keeps single latencies or works on a disk, whose host does not stand still."""
        return self.by_clock and not self.distributions and not self.needs_scratch

    def timeout(self, parameters: P) -> float:
        """Seconds after which the script is hung rather than slow: emulators are slow."""
        return 60.0 + 10.0 * self.seconds(parameters)

    def packages_for(self, parameters: P) -> tuple[str, ...]:
        """Debian packages for these parameters; `packages`, unless the study names its own."""
        return self.packages

    def modules_for(self, parameters: P) -> tuple[str, ...]:
        """Kernel modules that its program loads itself where they are not built in; most need none."""
        return ()

    def loaded_modules(self, parameters: P) -> tuple[str, ...]:
        """Kernel modules for these parameters that are loaded before settling."""
        return self.modules

    def service(self, parameters: P) -> Service | None:
        """The server or the data that its script uses; most use none."""
        return None

    def needs_peer(self, parameters: P) -> bool:
        """True if its script works with a peer: another machine, at the address $KDUEL_PEER, whose shell runs the standard input
        of the program `peer`. This machine's address is $KDUEL_ADDRESS. By default one whose parameter `path` is "link"."""
        return bool(getattr(parameters, "path", "") == "link")

    def room(self, parameters: P) -> Room:
        """Memory and scratch disk that its script takes; most take little."""
        return Room()

    def policy_tasks(self, parameters: P) -> int | None:
        """Number of tasks that take the policy, where `takes_policy`: a deadline policy is admitted for only so many."""
        return None

    def read_parameters(self, table: dict[str, Any]) -> P:
        """The typed parameters from a study's table. Raises InputError naming the key."""
        return convert_table(table, self.Parameters, f"benchmark {self.name}", "parameters")


OF_ROBOTS = ("aim9", "unixbench", "will-it-scale")
"""Suites of kernel test robots whose tests are operations of kbench here."""


def benchmark(name: str) -> Benchmark[Any]:
    """The benchmark of that name. Raises InputError that lists what there is."""
    if name in OF_ROBOTS:
        raise InputError(
            f"there is no benchmark {name!r}",
            "Measure the nearest operation of kbench, such as -b pipe: docs/robot-reports.md has it for each test, and "
            "`kduel init --from-report MAIL` finds it.",
        )
    chosen: Benchmark[Any] = named_plugin("benchmarks", "benchmark", name)
    return chosen
