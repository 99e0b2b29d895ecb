"""rocksdb: operations a second and their latency of an embedded key-value store (db_bench)."""

import re
from typing import Annotated, Literal

from msgspec import Meta

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.benchmarks.support import reading
from kduel.benchmarks.support.metrics import latencies, with_aspect
from kduel.benchmarks.support.parameters import Count, Threads
from kduel.benchmarks.support.service import need
from kduel.core.experiment import Metric


class RocksdbParameters(Parameters, frozen=True):
    """db_bench's own. `sync`: each write with fsync."""

    test: Literal["fillseq", "fillrandom", "overwrite", "readrandom", "readseq"] = "readrandom"
    operations: Count = 20_000
    threads: Threads = 1
    value_size: Annotated[int, Meta(ge=1, le=1 << 20)] = 100
    sync: bool = False


class Rocksdb(Benchmark[RocksdbParameters]):
    """Tests that need a database fill it first, in key order."""

    name = "rocksdb"
    summary = "Operations a second and latency of RocksDB (db_bench): page cache, pread, write, file system, futex"
    packages = ("rocksdb-tools",)
    label_template = "rocksdb-{test}"
    label_formats = {"operations": "{}x", "threads": "{}t", "value_size": "{}b"}
    needs_scratch = True
    declared_metrics = (
        *with_aspect("throughput", Metric("operations-per-second", "1/s", "higher", "All threads together.", "mean")),
        *latencies("us", "operations", "p50", "p99", "p99.9"),
    )

    def script(self, parameters: RocksdbParameters) -> str:
        p = parameters
        fill = "" if p.test.startswith("fill") else "fillseq,"
        return need(("db_bench",), self.packages) + (
            f"db_bench --benchmarks={fill}{p.test} --num={p.operations} --threads={p.threads} --seed=7 --histogram "
            f'--value_size={p.value_size} --sync={int(p.sync)} --db="$KDUEL_SCRATCH/db"\n'
        )

    def seconds(self, parameters: RocksdbParameters) -> float:
        return 2.0 + parameters.operations * parameters.threads * (0.01 if parameters.sync else 5e-5)

    def parse(self, raw: Raw, parameters: RocksdbParameters) -> dict[str, float]:
        p = parameters
        parts = re.split(rf"^{p.test} +: ", raw.stdout, flags=re.MULTILINE)
        if len(parts) != 2:
            raise ParseError(f"the output has not one result of {p.test}")
        text = parts[1]
        total = p.operations * p.threads
        line = r" *{} micros/op {} ops/sec \S+ seconds {} operations;.*"
        reading.expect(line.format(r"\S+", r"\S+", r"(\S+)"), text, "the number of operations", total)
        reading.expect(r"Count: (\S+) Average: .*", text, "the number of timed operations", total)
        reading.check_samples(total, 999, "the latency p99.9")
        found = reading.find_one(r"Percentiles: (P50: .*)", text, "the percentiles").split()
        if found[::2] != ["P50:", "P75:", "P99:", "P99.9:", "P99.99:"] or len(found) != 10:
            raise ParseError("the percentiles are not those that db_bench prints")
        times = {
            f"latency-{name}": reading.read_number(found[at], f"the latency {name}")
            for name, at in (("p50", 1), ("p99", 5), ("p99.9", 7))
        }
        reading.check_ascending(times)
        rate = reading.find_number(line.format(r"\S+", r"(\S+)", r"\S+"), text, "the rate")
        return {"operations-per-second": reading.check_positive(rate, "the rate"), **times}


PLUGIN = Rocksdb()
