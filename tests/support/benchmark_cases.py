"""The captured outputs, as cases for tests: see `capture` and `capture_own`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import msgspec
from fuzzing import Texts, Values, numbers_in

from kduel.benchmarks import Benchmark, ParseError, ParserFault, Raw, benchmark
from kduel.core.plugins import plugins

CAPTURED = Path(__file__).parents[1] / "benchmarks/captured"
NAMES = sorted({"schbench"} | {name for name, found in plugins("benchmarks").items() if found.packages})
"""The benchmarks that run programs of others: those from Debian's packages, and schbench, which no package has."""
DOCUMENTED = {"schbench", "turbostat"}
"""Those whose output was captured from their documentation, in one version: no package, or no hardware."""


class Case:
    """One captured step."""

    def __init__(self, path: Path) -> None:
        content: dict[str, Any] = json.loads(path.read_text())
        self.directory = path.with_name(path.name.removesuffix(".json"))
        self.name = str(self.directory.relative_to(CAPTURED))
        self.benchmark: Benchmark = benchmark(content["benchmark"])
        self.parameters = self.benchmark.read_parameters(content["parameters"])
        self.metrics = {metric.name: metric for metric in self.benchmark.metrics(self.parameters)}
        self.expected: dict[str, float] | None = content.get("expected")
        self.error: str = content.get("error", "")
        self.raw = Raw.read(self.directory)
        self.texts = {"stdout": self.raw.stdout, "stderr": self.raw.stderr, **self.raw.files}
        """Everything that a parser may look at, by name."""
        self.written = [name for name, text in self.texts.items() if text]
        self.whole = self.outcome({})
        """What the untouched output gives."""

    def __repr__(self) -> str:
        return self.name

    def outcome(self, replaced: Texts) -> Values | None:
        """The values with some texts replaced; None where they are refused. A fault of the parser is raised."""
        texts = self.texts | replaced
        raw = msgspec.structs.replace(
            self.raw,
            stdout=texts.pop("stdout"),
            stderr=texts.pop("stderr"),
            files=texts,
        )
        try:
            return self.benchmark.parse(raw, self.parameters)
        except ParserFault:
            raise
        except ParseError:
            return None

    def untrue(self, values: Values) -> str:
        """As fuzzing.Target says: any value but those of the untouched output."""
        changed = {name: value for name, value in values.items() if (self.whole or {}).get(name) != value}
        return f"gave {changed}" if changed else ""

    def impossible(self, values: Values, texts: Texts) -> str:
        """As fuzzing.Target says."""
        needed = {name for name, metric in self.metrics.items() if not metric.optional}
        if not needed <= values.keys() <= self.metrics.keys():
            return f"gave {', '.join(values)} for {', '.join(self.metrics)}"
        present: set[str] | None = None
        for name, value in values.items():
            metric = self.metrics[name]
            least = -math.inf if metric.least is None else metric.least
            most = math.inf if metric.most is None else metric.most
            if not math.isfinite(value) or not least <= value <= most * (1 + 1e-9):
                return f"{name} is {value}, not from {least:g} to {most:g}"
            if not metric.derived:
                present = numbers_in(texts) if present is None else present
                if f"{value:.10g}" not in present:
                    return f"{name} is {value}, which stands nowhere in the text"
        return ""


CASES = [Case(path) for path in sorted(CAPTURED.glob("*/*.json"))]
GOOD = [case for case in CASES if case.expected is not None]
