"""Benchmarks, one module each: shell lines that run in the trial, and a parser that turns their output into numbers.

A module here, or one behind an entry point of the group `kduel.benchmarks`, offers `PLUGIN`, a `Benchmark`.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct

from kduel.core.errors import HostError
from kduel.core.experiment import Metric
from kduel.core.plugins import named_plugin, typed
from kduel.core.samples import Details, within_reason
from kduel.core.untrusted import Garbled, entries, exit_status, read

Parse = Callable[..., dict[str, float]]


class ParseError(Exception):
    """The output is not what the program prints: the step gives no number. The message names what is missing."""


class ParserFault(ParseError):
    """The parser failed on output that it should have refused: a fault of the benchmark. The step gives no number."""


class Files(Mapping[str, str]):
    """Files by name, each read when a parser accesses it, so that no other file is in memory."""

    def __init__(self, paths: dict[str, Path], limit: int) -> None:
        self._paths, self._limit = paths, limit

    def __getitem__(self, name: str) -> str:
        return read(self._paths[name], self._limit)

    def __contains__(self, name: object) -> bool:
        return name in self._paths

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._paths))

    def __len__(self) -> int:
        return len(self._paths)


class Raw(Struct, frozen=True):
    """What one step of one trial left behind. Text is decoded leniently; it is not to be trusted."""

    stdout: str
    stderr: str
    exit_status: int
    files: Mapping[str, str] = {}
    """Further files that the step's script wrote into its directory ($KDUEL_STEP), by name."""

    @classmethod
    def read(cls, directory: Path, limit: int = 16 << 20, trial_files: Sequence[str] = ()) -> Raw:
        """From a step's directory, and files of these names of the trial that it is in, where they are there.

        A file above `limit` bytes is cut there. Raises ParseError without exit.json, HostError.
        """

        own = {"stdout", "stderr", "exit.json"}
        try:
            return cls(
                stdout=read(directory / "stdout", limit),
                stderr=read(directory / "stderr", limit),
                exit_status=exit_status(directory),
                files=Files(
                    {
                        **{p.name: p for p in entries(directory) if p.name not in own and p.is_file()},
                        **{name: p for name in trial_files if (p := directory.parent / name).is_file()},
                    },
                    limit,
                ),
            )
        except (OSError, Garbled) as error:
            raise ParseError(f"the step left no complete output: {error}") from error


class Benchmark(ABC):
    """A command with a parser. `name` is the field's own name for it; the `Parameters` have the program's defaults."""

    name: ClassVar[str]
    summary: ClassVar[str]
    """One line for `kduel list benchmarks`: what it measures and what it is good for."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Debian packages that the guest root needs for it."""
    programs: ClassVar[tuple[str, ...]] = ()
    """Our own static programs (names in kduel.guest.programs) that the trial needs in its path."""
    takes_policy: ClassVar[bool] = False
    """Whether the program itself puts its tasks under $KDUEL_POLICY; all others are launched under it."""
    needs_scratch: ClassVar[bool] = False
    """Whether it works on the scratch disk ($KDUEL_SCRATCH, a fresh file system)."""

    draws: ClassVar[bool] = False
    """Whether its script draws from $KDUEL_SEED, which is the same for all arms of a block."""
    trial_files: ClassVar[tuple[str, ...]] = ()
    """Files of the trial itself that `parse` reads too, such as console.log; they are in `Raw.files` where they are
    there, and hide what the step left under the same name."""

    class Parameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """Overridden by each benchmark; a study's list for one of these becomes a matrix."""

    @abstractmethod
    def label(self, parameters: Any) -> str:
        """A short name for this benchmark with these parameters, [a-z0-9.-]+, such as `sysbench-cpu-2t`."""

    @abstractmethod
    def metrics(self, parameters: Any) -> tuple[Metric, ...]:
        """What `parse` will give, the main one first."""

    def counted(self, parameters: Any) -> bool:
        """Whether its figures are counts of instructions, which only a machine whose clock counts them can give."""
        return False

    @abstractmethod
    def script(self, parameters: Any) -> str:
        """POSIX shell lines, run as root by `sh -e` in an empty directory; stdout and stderr are kept.

        $KDUEL_STEP is the step's directory (files written there come home), $KDUEL_SCRATCH the fresh scratch file
        system, $KDUEL_PROGRAMS the directory of our static programs. A non-zero end voids the step.
        """

    @abstractmethod
    def parse(self, raw: Raw, parameters: Any) -> dict[str, float]:
        """Metric name to value, in the metric's unit, for all of `metrics`.

        Raises ParseError where anything is missing or garbled: a parser never invents a value. What any benchmark's
        `parse` returns is held against its metrics (`checked`); a parser need not do that itself.
        """

    def details(self, raw: Raw, parameters: Any) -> Details:
        """Details of the output beyond one number a metric; nothing, for most. Raises ParseError as `parse` does."""
        return Details()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "parse" in vars(cls):
            cls.parse = _guarded(cls.parse)  # type: ignore[method-assign]

    def seconds(self, parameters: Any) -> float:
        """About how long the script takes, for the ETA."""
        return float(getattr(parameters, "time", 5.0))

    def timeout(self, parameters: Any) -> float:
        """Seconds after which the script is hung rather than slow: emulators are slow."""
        return 60.0 + 10.0 * self.seconds(parameters)

    def packages_for(self, parameters: Any) -> tuple[str, ...]:
        """Debian packages for these parameters; `packages`, unless the study names its own."""
        return self.packages

    def modules_for(self, parameters: Any) -> tuple[str, ...]:
        """Kernel modules that its program loads itself where they are not built in; most need none."""
        return ()

    def policy_tasks(self, parameters: Any) -> int | None:
        """How many tasks take the policy, where `takes_policy`: a deadline policy is admitted for only so many."""
        return None

    def read_parameters(self, table: dict[str, Any]) -> Any:
        """The typed parameters from a study's table. Raises InputError naming the key."""
        return typed(table, self.Parameters, f"benchmark {self.name}", "parameters")


def checked(values: dict[str, float], metrics: Iterable[Metric]) -> dict[str, float]:
    """The values, where all metrics that are not optional have one and each lies within its metric's own range.

    Raises ParseError for a metric without a value, for one that is infinite, no number or not `within_reason`, and for one
    below `least` or above `most` (a share of 1e-9 is left to rounding).
    """
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


def _guarded(parse: Parse) -> Parse:
    """`parse` with its values checked, and with a fault of its own as a ParseError: output is not to be trusted, and
    must not end a run whose other steps are sound."""

    @functools.wraps(parse)
    def guarded(self: Benchmark, raw: Raw, parameters: Any) -> dict[str, float]:
        if type(self).parse is not guarded:  # called by the parser of a subclass, whose metrics are others
            return parse(self, raw, parameters)
        try:
            return checked(parse(self, raw, parameters), self.metrics(parameters))
        except (ParseError, HostError):
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"[:200]
            raise ParserFault(f"the parser of {self.name} failed on the output ({reason})") from error

    return guarded


def benchmark(name: str) -> Benchmark:
    """The benchmark of that name. Raises InputError that lists what there is."""
    chosen: Benchmark = named_plugin("benchmarks", "benchmark", name)
    return chosen
