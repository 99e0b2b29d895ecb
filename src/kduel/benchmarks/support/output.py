"""Output of a step of a trial as parsers read it, and the errors that they raise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from kduel.core.untrusted import MalformedError, entries, exit_status, read


class ParseError(Exception):
    """The output is not what the program prints: the step gives no number. The message names what is missing."""


class BeyondHistogramError(ParseError):
    """Percentiles lie beyond the histogram: they are not known but for being large. `known` are the step's other values."""

    def __init__(self, message: str, known: Mapping[str, float]) -> None:
        super().__init__(message)
        self.known = dict(known)


def need_within(limit: int, values: Mapping[str, float | None]) -> dict[str, float]:
    """The values, where none is None. Raises BeyondHistogramError for those that are, as they exceed `limit` microseconds."""
    known = {name: value for name, value in values.items() if value is not None}
    if beyond := ", ".join(name for name in values if name not in known):
        raise BeyondHistogramError(f"more than {limit} us: {beyond}; raise `histogram`", known)
    return known


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
    """Output of one step of one trial. Text is decoded leniently; it is not to be trusted."""

    stdout: str
    stderr: str
    exit_status: int
    files: Mapping[str, str] = {}
    """Further files that the step's script wrote into its directory ($KDUEL_STEP), by name."""

    @classmethod
    def read(cls, directory: Path, limit: int = 16 << 20, trial_files: Sequence[str] = ()) -> Raw:
        """Read a step's directory and these files of its trial, up to `limit` bytes. Raises ParseError, HostError."""

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
        except (OSError, MalformedError) as error:
            raise ParseError(f"the step left no complete output: {error}") from error
