"""sysbench memory: read or write memory block by block; small blocks live in the caches."""

from typing import Literal

from kduel.benchmarks import Benchmark, Parameters, Raw
from kduel.benchmarks.support import sysbench
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Seconds, Size, Threads
from kduel.benchmarks.support.reading import expect, find_number
from kduel.core.experiment import Metric
from kduel.core.samples import Details

LONGEST = "The longest interruption of one block: grows with the duration."
ENDLESS = "900T"


class SysbenchMemoryParameters(Parameters, frozen=True):
    """sysbench's own, but 2 seconds in place of 10, and never an end by the amount (sysbench's 100 GiB)."""

    threads: Threads = 1
    time: Seconds = 2
    block_size: Size = "1K"
    operation: Literal["write", "read"] = "write"
    access: Literal["seq", "rnd"] = "seq"
    scope: Literal["global", "local"] = "global"


class SysbenchMemory(Benchmark[SysbenchMemoryParameters]):
    name = "sysbench-memory"
    summary = "Memory bandwidth, which depends on huge pages, NUMA placement and mitigations (sysbench memory)"
    packages = sysbench.PACKAGES
    label_template = "sysbench-memory-{operation}-{threads}t"
    by_clock = True
    label_formats = {"time": "{}s", "block_size": "block{}", "access": "{}", "scope": "{}"}
    declared_metrics = (
        *with_aspect(
            "memory-bandwidth",
            Metric("throughput", "MiB/s", "higher", "Bytes moved; blocks of 1 KiB stay in the first cache.", "mean"),
            derived="MiB transferred / total time",
        ),
        Metric("latency-max", "ms", "lower", LONGEST, "max"),
    )

    def script(self, parameters: SysbenchMemoryParameters) -> str:
        return (
            f"sysbench memory --threads={parameters.threads} --time={parameters.time}"
            f" --memory-block-size={parameters.block_size} --memory-total-size={ENDLESS}"
            f" --memory-oper={parameters.operation} --memory-access-mode={parameters.access}"
            f" --memory-scope={parameters.scope} run\n"
        )

    def parse(self, raw: Raw, parameters: SysbenchMemoryParameters) -> dict[str, float]:
        text = raw.stdout
        expect(r" *operation: (\S+)", text, "the operation", parameters.operation)
        expect(r" *scope: (\S+)", text, "the scope", parameters.scope)
        report = sysbench.read_report(text, parameters.threads)
        moved = find_number(r"(\S+) MiB transferred \([^()\n]*\)", text, "the MiB transferred")
        rate = sysbench.compute_rate(moved, read_printed_rate(raw), report, "MiB per second")
        return {"throughput": rate, "latency-max": report["latency-max"]}

    def details(self, raw: Raw, parameters: SysbenchMemoryParameters) -> Details:
        return Details(printed={"throughput": read_printed_rate(raw)})


def read_printed_rate(raw: Raw) -> float:
    """MiB per second as sysbench prints them."""
    return find_number(r"[^ \n]+ MiB transferred \((\S+) MiB/sec\)", raw.stdout, "MiB per second")


PLUGIN = SysbenchMemory()
