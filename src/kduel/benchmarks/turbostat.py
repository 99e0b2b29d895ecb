"""turbostat: clock, busy share, temperature and power of the processor while sysbench works, by the processor's own counters."""

from typing import Annotated, Literal

from msgspec import Meta

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.benchmarks.support import sysbench
from kduel.benchmarks.support.parameters import Count, Seconds
from kduel.benchmarks.support.reading import (
    check_positive,
    check_unique,
    read_number,
    split_lines,
)
from kduel.core.experiment import Metric

Column = Literal["Busy%", "Bzy_MHz", "PkgTmp", "PkgWatt", "CorWatt", "RAMWatt"]
DERIVED = "events / total time"
BUSY = "Share of the time in which CPUs did not idle, mean over all of them."
CLOCK = "Clock while they did not idle: the result of turbo and governor."
HOTTEST = "Of the hottest package, at the end."
COLUMNS = {
    "Busy%": Metric("busy", "%", "none", BUSY, "mean"),
    "Bzy_MHz": Metric("busy-clock", "MHz", "none", CLOCK, "mean", aspect="clock"),
    "PkgTmp": Metric("package-temperature", "°C", "lower", HOTTEST, "mean", aspect="temperature"),
    "PkgWatt": Metric("package-power", "W", "lower", "Of all packages under load.", "mean", aspect="power"),
    "CorWatt": Metric("core-power", "W", "lower", "Of the cores under load.", "mean"),
    "RAMWatt": Metric("memory-power", "W", "lower", "Of the memory under load.", "mean"),
}
"""Metric for each of turbostat's columns."""
PLACES = ("Package", "Node", "Die", "Core", "CPU", "APIC", "X2APIC")
"""Columns that locate a row; the summary has a dash in them. A table without them has no other row."""


class TurbostatParameters(Parameters, frozen=True):
    """`threads` 0 is one for each CPU."""

    threads: Annotated[int, Meta(ge=0, le=10_000)] = 0
    time: Seconds = 10
    cpu_max_prime: Count = 10_000
    columns: Annotated[tuple[Column, ...], Meta(min_length=1)] = ("Busy%", "Bzy_MHz", "PkgTmp", "PkgWatt")


class Turbostat(Benchmark[TurbostatParameters]):
    """A column that the machine's turbostat does not show fails the step: it is never 0."""

    name = "turbostat"
    summary = "Clock, temperature and power under sysbench, by turbostat (real x86 machines with msr, as root)"
    packages = ("linux-cpupower", *sysbench.PACKAGES)
    label_formats = {"threads": "{}t", "time": "{}s", "cpu_max_prime": "prime{}"}

    def metrics(self, parameters: TurbostatParameters) -> tuple[Metric, ...]:
        rate = Metric("events-per-second", "events/s", "higher", "The throughput meanwhile.", "mean", derived=DERIVED)
        return (*(COLUMNS[column] for column in parameters.columns), rate)

    def script(self, parameters: TurbostatParameters) -> str:
        p = parameters
        threads = p.threads or '"$(nproc)"'
        return (
            f"modprobe msr 2>/dev/null || :\nturbostat --quiet --Summary --show {','.join(p.columns)}"
            f' --out "$KDUEL_STEP/turbostat" sysbench cpu --threads={threads} --time={p.time}'
            f" --cpu-max-prime={p.cpu_max_prime} run\n"
        )

    def parse(self, raw: Raw, parameters: TurbostatParameters) -> dict[str, float]:
        row = read_summary(raw.files.get("turbostat", ""))
        report = sysbench.read_primes(raw.stdout, parameters.threads, parameters.cpu_max_prime)
        values = {"events-per-second": report["total-events"] / report["total-time"]}
        for column in parameters.columns:
            if column not in row:
                raise ParseError(f"turbostat shows no {column} on this machine; it shows {', '.join(row)}")
            values[COLUMNS[column].name] = check_positive(read_number(row[column], column), column)
        return {metric.name: values[metric.name] for metric in self.metrics(parameters)}


def read_summary(text: str) -> dict[str, str]:
    """The system's summary by column: the first row below the one header. Raises ParseError where there is no such."""
    lines = [line.split() for line in split_lines(text, "turbostat's table") if line.strip()]
    heads = [
        place for place, words in enumerate(lines) if {"Busy%", "Avg_MHz", "Bzy_MHz", "PkgWatt", "PkgTmp"} & {*words}
    ]
    if len(heads) != 1 or heads[0] + 1 >= len(lines):
        raise ParseError(f"turbostat wrote {len(heads)} tables with a row, where one is expected")
    head, row = lines[heads[0]], lines[heads[0] + 1]
    if len(head) != len(row):
        raise ParseError(f"turbostat's table has {len(head)} columns and a row of {len(row)}")
    check_unique(head, "the column")
    places = [word for name, word in zip(head, row, strict=True) if name in PLACES]
    if {*places} - {"-"} or (not places and len(lines) > heads[0] + 2):
        raise ParseError("the first row of turbostat's table is not the summary of the whole system")
    return dict(zip(head, row, strict=True))


PLUGIN = Turbostat()
