"""hyperfine's --export-json: one wall time a run. Without a name, its commands are the contenders."""

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from kduel.core.errors import InputError
from kduel.store.imported.support import foreign

SUMMARY = "command,mean,stddev,median,"
"""The beginning of what --export-csv writes."""


class HyperfineResult(Struct):
    """A command with its runs; exit codes and memory came with later versions."""

    command: str
    times: list[float] | None = None
    exit_codes: list[int | None] = []
    memory_usage_byte: list[int] | None = None
    parameters: dict[str, str] = {}


class HyperfineDocument(Struct):
    results: list[HyperfineResult]


class Hyperfine(foreign.ForeignFormat):
    name = "hyperfine"
    summary = "hyperfine --export-json; of several commands each is a contender"

    def recognises(self, head: str) -> bool:
        if head.startswith(SUMMARY):
            return True
        return bool(re.match(r'\s*\{\s*"results"\s*:\s*\[', head)) and '"command"' in head

    def contender_of(self, path: Path, given: str | None, alone: bool) -> str | None:
        return given or (None if alone else foreign.file_stem(path))

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[foreign.ForeignRow]:
        if foreign.beginning(path).startswith(SUMMARY.encode()):
            raise InputError(
                f"{path.name} is hyperfine's summary, which has no time of a single run", "Export with --export-json."
            )
        results = foreign.read_json(path, HyperfineDocument, "hyperfine --export-json").results
        commands = [result.command for result in results]
        for result in results:
            place = f"command {result.command[:80]!r}"
            if not result.times:
                raise InputError(
                    f"{foreign.location_text(path, place)} has no times of its runs",
                    "Export with --export-json, not as a summary.",
                )
            if failed := failure_of(result):
                if contender is None or all(map(failure_of, results)):
                    raise InputError(
                        f"{foreign.location_text(path, place)}: {failed}, so its time measures nothing",
                        "Correct the command and measure again, without --ignore-failure.",
                    )
                skipped.append(f"{foreign.location_text(path, place)}: {failed}, so its time measures nothing.")
                continue
            name = result.command
            if commands.count(name) > 1 and not result.parameters:
                raise InputError(
                    f"{path.name}: the command {name[:80]!r} is there twice",
                    "Name each by --command-name, or give a file for each.",
                )
            if commands.count(name) > 1 and result.parameters:
                # One command with several values of a parameter that a --setup uses.
                values = ", ".join(f"{key}={value}" for key, value in result.parameters.items())
                name = values if contender is None else f"{name} ({values})"
            settings = tuple(result.parameters.items()) if contender is not None and name == result.command else ()
            arm, benchmark = (name, "hyperfine") if contender is None else (contender, name)
            for run, time in enumerate(result.times, 1):
                yield foreign.ForeignRow(
                    arm, run, benchmark, "wall_time", "s", "lower", time, place, least=0.0, settings=settings
                )
            for run, size in enumerate(result.memory_usage_byte or [], 1):
                yield foreign.ForeignRow(
                    arm, run, benchmark, "peak_memory", "B", "lower", foreign.json_number(path, place, "memory", size), place,
                    "max", least=0.0,
                )  # fmt: skip


def failure_of(result: HyperfineResult) -> str:
    """The first run that failed, and how; empty where none did."""
    for run, status in enumerate(result.exit_codes, 1):
        if status != 0:
            return f"run {run} {'was killed by a signal' if status is None else f'ended with status {status}'}"
    return ""


PLUGIN = Hyperfine()
