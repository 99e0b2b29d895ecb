"""sysbench fileio: read and write files on the scratch disk, with fsync as it comes."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from kduel.benchmarks import Benchmark, Raw
from kduel.benchmarks.support import sysbench
from kduel.benchmarks.support.parameters import Number, Seconds, Size, Threads, label_of
from kduel.benchmarks.support.reading import carried, expect, only_number, positive
from kduel.core.experiment import Metric

DOING = {
    "seqwr": "sequential write (creation)",
    "seqrewr": "sequential rewrite",
    "seqrd": "sequential read",
    "rndrd": "random read",
    "rndwr": "random write",
    "rndrw": "random r/w",
}
"""How sysbench calls its modes in its output."""
READS = ("seqrd", "rndrd", "rndrw")
WRITES = ("seqwr", "seqrewr", "rndwr", "rndrw")


class SysbenchFileio(Benchmark):
    """File system, page cache and block layer together. The files are made, used and removed by the script."""

    name = "sysbench-fileio"
    summary = "Files on the scratch disk: MiB/s, operations and fsyncs a second, latency (sysbench fileio)"
    packages = sysbench.PACKAGES
    needs_scratch = True

    class Parameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """sysbench's own, but 2 seconds in place of 10."""

        mode: Literal["seqwr", "seqrewr", "seqrd", "rndrd", "rndwr", "rndrw"] = "seqwr"
        file_total_size: Size = "2G"
        file_num: Threads = 128
        file_block_size: Size = "16K"
        file_fsync_freq: Number = 100
        io_mode: Literal["sync", "mmap"] = "sync"
        threads: Threads = 1
        time: Seconds = 2
        cold: bool = True
        """Write the prepared files out and drop the page cache before the run; sysbench does not, and then the run
        pays for what preparing left in memory, or lives on it."""

    def label(self, parameters: Any) -> str:
        return label_of(
            "sysbench-fileio-{mode}",
            parameters,
            file_total_size="{}",
            file_num="{}files",
            file_block_size="block{}",
            file_fsync_freq="fsync{}",
            io_mode="{}",
            threads="{}t",
            time="{}s",
        )

    def metrics(self, parameters: Any) -> tuple[Metric, ...]:
        metrics = []
        if parameters.mode in WRITES:
            metrics += [
                Metric(
                    "written",
                    "MiB/s",
                    "higher",
                    "Write throughput, fsyncs included.",
                    "mean",
                    aspect="storage-throughput",
                ),
                Metric(
                    "writes-per-second",
                    "1/s",
                    "higher",
                    "Write operations: the throughput in blocks.",
                    "mean",
                    aspect="storage-operations",
                ),
            ]
        if parameters.mode in READS:
            metrics += [
                Metric("read", "MiB/s", "higher", "Read throughput.", "mean", aspect="storage-throughput"),
                Metric(
                    "reads-per-second",
                    "1/s",
                    "higher",
                    "Read operations: the throughput in blocks.",
                    "mean",
                    aspect="storage-operations",
                ),
            ]
        if parameters.mode in WRITES and syncs(parameters):
            about = "How often data was forced to the disk: the cost of the journal and of the disk's flush."
            metrics.append(Metric("fsyncs-per-second", "1/s", "higher", about, "mean", aspect="storage-operations"))
        metrics += [*sysbench.latency_metrics("operation"), sysbench.fixed_time(parameters.time)]
        return tuple(metrics)

    def script(self, parameters: Any) -> str:
        p = parameters
        files = f"--file-num={p.file_num} --file-total-size={p.file_total_size} --file-block-size={p.file_block_size}"
        lines = [
            'cd "$KDUEL_SCRATCH"',
            f"sysbench fileio {files} --file-test-mode={p.mode} --verbosity=2 prepare",
            *(["sync", "echo 3 >/proc/sys/vm/drop_caches"] if p.cold else []),
            f"sysbench fileio {files} --file-test-mode={p.mode} --file-fsync-freq={p.file_fsync_freq}"
            f" --file-io-mode={p.io_mode} --threads={p.threads} --time={p.time} run",
            "rm -f test_file.*",
        ]
        return "\n".join(lines) + "\n"

    def seconds(self, parameters: Any) -> float:
        mebibytes = in_mebibytes(parameters.file_total_size)
        return float(parameters.time) + 1 + mebibytes / 300

    def parse(self, raw: Raw, parameters: Any) -> dict[str, float]:
        text = raw.stdout
        expect(r"Doing (\S.*) test", text, "the mode", DOING[parameters.mode])
        expect(r"(\S+) files, \S+ each", text, "the number of files", parameters.file_num)
        values = sysbench.read_report(text, parameters.threads)
        carried(values["total-events"], 950, "the latency p95")
        per_second = (("reads-per-second", "reads"), ("writes-per-second", "writes"), ("fsyncs-per-second", "fsyncs"))
        for name, kind in per_second:
            values[name] = only_number(rf" *{kind}/s: +(\S+)", text, f"{kind} per second")
        values["read"] = only_number(r" *read, MiB/s: +(\S+)", text, "MiB read per second")
        values["written"] = only_number(r" *written, MiB/s: +(\S+)", text, "MiB written per second")
        wanted = [metric.name for metric in self.metrics(parameters)]
        for name in wanted:
            if not name.startswith("latency-"):
                positive(values[name], name)
        return {name: values[name] for name in wanted}


def syncs(parameters: Any) -> bool:
    """Whether the run calls fsync along the way, not only once at its end."""
    return bool(parameters.file_fsync_freq)


def in_mebibytes(size: str) -> float:
    """A Size in MiB."""
    scale = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2}
    return float(size.rstrip("KMGT")) * scale.get(size[-1], 1 / 1024**2)


PLUGIN = SysbenchFileio()
