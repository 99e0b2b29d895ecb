"""sysbench memory: read or write memory block by block."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from kduel.benchmarks import Benchmark, Raw
from kduel.benchmarks.support import sysbench
from kduel.benchmarks.support.parameters import Seconds, Size, Threads, label_of
from kduel.benchmarks.support.reading import agree, expect, only_number, positive
from kduel.core.experiment import Metric

ENDLESS = "900T"


class SysbenchMemory(Benchmark):
    """Memory bandwidth from user space; small blocks live in the caches."""

    name = "sysbench-memory"
    summary = "Memory bandwidth, which depends on huge pages, NUMA placement and mitigations (sysbench memory)"
    packages = sysbench.PACKAGES

    class Parameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """sysbench's own, but 2 seconds in place of 10, and never an end by the amount (sysbench's 100 GiB)."""

        threads: Threads = 1
        time: Seconds = 2
        block_size: Size = "1K"
        operation: Literal["write", "read"] = "write"
        access: Literal["seq", "rnd"] = "seq"
        scope: Literal["global", "local"] = "global"

    def label(self, parameters: Any) -> str:
        return label_of(
            "sysbench-memory-{operation}-{threads}t",
            parameters,
            time="{}s",
            block_size="block{}",
            access="{}",
            scope="{}",
        )

    def metrics(self, parameters: Any) -> tuple[Metric, ...]:
        return (
            Metric(
                "throughput",
                "MiB/s",
                "higher",
                "Bytes moved; blocks of 1 KiB stay in the first cache.",
                "mean",
                aspect="memory-bandwidth",
            ),
            Metric(
                "latency-max", "ms", "lower", "The longest interruption of one block: grows with the duration.", "max"
            ),
        )

    def script(self, parameters: Any) -> str:
        return (
            f"sysbench memory --threads={parameters.threads} --time={parameters.time}"
            f" --memory-block-size={parameters.block_size} --memory-total-size={ENDLESS}"
            f" --memory-oper={parameters.operation} --memory-access-mode={parameters.access}"
            f" --memory-scope={parameters.scope} run\n"
        )

    def parse(self, raw: Raw, parameters: Any) -> dict[str, float]:
        text = raw.stdout
        expect(r" *operation: (\S+)", text, "the operation", parameters.operation)
        expect(r" *scope: (\S+)", text, "the scope", parameters.scope)
        report = sysbench.read_report(text, parameters.threads)
        moved = only_number(r"(\S+) MiB transferred \([^()\n]*\)", text, "the MiB transferred")
        rate = only_number(r"[^ \n]+ MiB transferred \((\S+) MiB/sec\)", text, "MiB per second")
        agree(rate, moved / report["total-time"], "MiB per second")
        return {"throughput": positive(rate, "MiB per second"), "latency-max": report["latency-max"]}


PLUGIN = SysbenchMemory()
