"""The captured outputs, as cases for tests: see `capture`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from kduel.benchmarks import Benchmark, ParseError, Raw, benchmark

CAPTURED = Path(__file__).parent / "captured"
NAMES = (
    "cyclictest",
    "fio",
    "hackbench",
    "perf-sched-messaging",
    "perf-sched-pipe",
    "perf-stat",
    "schbench",
    "stress-ng",
    "sysbench-cpu",
    "sysbench-fileio",
    "sysbench-memory",
    "vmstat",
)
"""The benchmarks that are tested here: all that run programs of others."""


class Case:
    """One captured step."""

    def __init__(self, path: Path) -> None:
        content: dict[str, Any] = json.loads(path.read_text())
        self.directory = path.with_name(path.name.removesuffix(".json"))
        self.name = str(self.directory.relative_to(CAPTURED))
        self.benchmark: Benchmark = benchmark(content["benchmark"])
        self.parameters = self.benchmark.read_parameters(content["parameters"])
        self.expected: dict[str, float] | None = content.get("expected")
        self.error: str = content.get("error", "")
        self.raw = Raw.read(self.directory)
        self.texts = {"stdout": self.raw.stdout, "stderr": self.raw.stderr, **self.raw.files}
        """Everything that a parser may look at, by name."""
        self.written = [name for name, text in self.texts.items() if text]
        self.whole = self.outcome()
        """What the untouched output gives."""

    def __repr__(self) -> str:
        return self.name

    def outcome(self, **replaced: str) -> dict[str, float] | None:
        """The values with some texts replaced; None for a ParseError."""
        texts = self.texts | replaced
        raw = msgspec.structs.replace(
            self.raw,
            stdout=texts.pop("stdout"),
            stderr=texts.pop("stderr"),
            files=texts,
        )
        try:
            return self.benchmark.parse(raw, self.parameters)
        except ParseError:
            return None


CASES = [Case(path) for path in sorted(CAPTURED.glob("*/*.json"))]
GOOD = [case for case in CASES if case.expected is not None]
