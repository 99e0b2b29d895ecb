"""turbostat: clock, busy share, temperature and power of the processor while sysbench works, by the processor's own counters."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from kduel.benchmarks import Benchmark, ParseError, Raw
from kduel.benchmarks.support import sysbench
from kduel.benchmarks.support.parameters import Count, Seconds, label_of
from kduel.benchmarks.support.reading import number, only, only_whole, positive, single, whole_lines
from kduel.core.experiment import Aspect, Better, Metric

Column = Literal["Busy%", "Bzy_MHz", "PkgTmp", "PkgWatt", "CorWatt", "RAMWatt"]
COLUMNS: dict[str, tuple[str, str, Better, str, Aspect]] = {
    "Busy%": ("busy", "%", "none", "Share of the time in which CPUs did not idle, mean over all of them.", ""),
    "Bzy_MHz": (
        "busy-clock",
        "MHz",
        "none",
        "Clock while they did not idle: the result of turbo and governor.",
        "clock",
    ),
    "PkgTmp": ("package-temperature", "°C", "lower", "Of the hottest package, at the end.", "temperature"),
    "PkgWatt": ("package-power", "W", "lower", "Of all packages under load.", "power"),
    "CorWatt": ("core-power", "W", "lower", "Of the cores under load.", ""),
    "RAMWatt": ("memory-power", "W", "lower", "Of the memory under load.", ""),
}
"""By turbostat's column: the metric."""
PLACES = ("Package", "Node", "Die", "Core", "CPU", "APIC", "X2APIC")
"""Columns that locate a row; the summary has a dash in them. A table without them has no other row."""


class Turbostat(Benchmark):
    """A column that the machine's turbostat does not show fails the step: it is never 0."""

    name = "turbostat"
    summary = "Clock, temperature and power under sysbench, by turbostat (real x86 machines with msr, as root)"
    packages = ("linux-cpupower", *sysbench.PACKAGES)

    class Parameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """`threads` 0 is one for each CPU."""

        threads: Annotated[int, Meta(ge=0, le=10_000)] = 0
        time: Seconds = 10
        cpu_max_prime: Count = 10_000
        columns: Annotated[tuple[Column, ...], Meta(min_length=1)] = ("Busy%", "Bzy_MHz", "PkgTmp", "PkgWatt")

    def label(self, parameters: Any) -> str:
        return label_of("turbostat", parameters, threads="{}t", time="{}s", cpu_max_prime="prime{}")

    def metrics(self, parameters: Any) -> tuple[Metric, ...]:
        return (
            *(
                Metric(name, unit, better, about, "mean", aspect=aspect)
                for name, unit, better, about, aspect in (COLUMNS[column] for column in parameters.columns)
            ),
            Metric(
                "events-per-second",
                "events/s",
                "higher",
                "The throughput meanwhile.",
                "mean",
                derived="events / total time",
            ),
        )

    def script(self, parameters: Any) -> str:
        p = parameters
        threads = p.threads or '"$(nproc)"'
        return (
            f"modprobe msr 2>/dev/null || :\nturbostat --quiet --Summary --show {','.join(p.columns)}"
            f' --out "$KDUEL_STEP/turbostat" sysbench cpu --threads={threads} --time={p.time}'
            f" --cpu-max-prime={p.cpu_max_prime} run\n"
        )

    def parse(self, raw: Raw, parameters: Any) -> dict[str, float]:
        row = read_summary(raw.files.get("turbostat", ""))
        threads = only_whole(r"Number of threads: (\S+)", raw.stdout, "the number of threads")
        if parameters.threads not in (0, threads):
            raise ParseError(f"it ran with {threads} threads; asked for was {parameters.threads}")
        only(rf"Prime numbers limit: ({parameters.cpu_max_prime})", raw.stdout, "the limit of primes asked for")
        report = sysbench.read_report(raw.stdout, threads)
        values = {"events-per-second": report["total-events"] / report["total-time"]}
        for column in parameters.columns:
            if column not in row:
                raise ParseError(f"turbostat shows no {column} on this machine; it shows {', '.join(row)}")
            values[COLUMNS[column][0]] = positive(number(row[column], column), column)
        return {metric.name: values[metric.name] for metric in self.metrics(parameters)}


def read_summary(text: str) -> dict[str, str]:
    """The system's summary by column: the first row below the one header. Raises ParseError where there is no such."""
    lines = [line.split() for line in whole_lines(text, "turbostat's table") if line.strip()]
    heads = [
        place for place, words in enumerate(lines) if {"Busy%", "Avg_MHz", "Bzy_MHz", "PkgWatt", "PkgTmp"} & {*words}
    ]
    if len(heads) != 1 or heads[0] + 1 >= len(lines):
        raise ParseError(f"turbostat wrote {len(heads)} tables with a row, where one is expected")
    head, row = lines[heads[0]], lines[heads[0] + 1]
    if len(head) != len(row):
        raise ParseError(f"turbostat's table has {len(head)} columns and a row of {len(row)}")
    single(head, "the column")
    places = [word for name, word in zip(head, row, strict=True) if name in PLACES]
    if {*places} - {"-"} or (not places and len(lines) > heads[0] + 2):
        raise ParseError("the first row of turbostat's table is not the summary of the whole system")
    return dict(zip(head, row, strict=True))


PLUGIN = Turbostat()
