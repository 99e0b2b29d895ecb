"""sysbench fileio: read and write files on the scratch disk, with fsync as it comes."""

from functools import partial
from typing import Literal

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw, Room
from kduel.benchmarks.support import sysbench
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Number, Seconds, Size, Threads, to_mebibytes
from kduel.benchmarks.support.reading import check_positive, expect, find_number
from kduel.core.experiment import Metric
from kduel.core.samples import Details

DOING = {
    "seqwr": "sequential write (creation)",
    "seqrewr": "sequential rewrite",
    "seqrd": "sequential read",
    "rndrd": "random read",
    "rndwr": "random write",
    "rndrw": "random r/w",
}
"""Names of sysbench's modes in its output."""
READS = ("seqrd", "rndrd", "rndrw")
DERIVED = "printed rate x time until the report / total time"
KINDS = ("reads", "writes", "fsyncs")
WRITES = ("seqwr", "seqrewr", "rndwr", "rndrw")

THROUGHPUT, OPERATIONS = partial(with_aspect, "storage-throughput"), partial(with_aspect, "storage-operations")
WRITE_METRICS = (
    *THROUGHPUT(Metric("written", "MiB/s", "higher", "Write throughput, fsyncs included.", "mean"), derived=DERIVED),
    *OPERATIONS(
        Metric("writes-per-second", "1/s", "higher", "Write operations: the throughput in blocks.", "mean"),
        derived=DERIVED,
    ),
)
READ_METRICS = (
    *THROUGHPUT(Metric("read", "MiB/s", "higher", "Read throughput.", "mean"), derived=DERIVED),
    *OPERATIONS(
        Metric("reads-per-second", "1/s", "higher", "Read operations: the throughput in blocks.", "mean"),
        derived=DERIVED,
    ),
)
FORCED = "How often data was forced to the disk: the cost of the journal and of the disk's flush."
FSYNC_METRICS = OPERATIONS(Metric("fsyncs-per-second", "1/s", "higher", FORCED, "mean"), derived=DERIVED)
"""With fsyncs along the way, not only one at the end."""


class SysbenchFileioParameters(Parameters, frozen=True):
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


class SysbenchFileio(Benchmark[SysbenchFileioParameters]):
    """File system, page cache and block layer together. The files are made, used and removed by the script."""

    name = "sysbench-fileio"
    summary = "Files on the scratch disk: MiB/s, operations and fsyncs a second, latency (sysbench fileio)"
    packages = sysbench.PACKAGES
    needs_scratch = True
    label_template = "sysbench-fileio-{mode}"
    label_formats = {
        "file_total_size": "{}", "file_num": "{}files", "file_block_size": "block{}", "file_fsync_freq": "fsync{}",
        "io_mode": "{}", "threads": "{}t", "time": "{}s",
    }  # fmt: skip

    def metrics(self, parameters: SysbenchFileioParameters) -> tuple[Metric, ...]:
        rates = [
            *(WRITE_METRICS if parameters.mode in WRITES else ()),
            *(READ_METRICS if parameters.mode in READS else ()),
            *(FSYNC_METRICS if parameters.mode in WRITES and parameters.file_fsync_freq else ()),
        ]
        return (*rates, *sysbench.latency_metrics("operation"), sysbench.fixed_time(parameters.time))

    def room(self, parameters: SysbenchFileioParameters) -> Room:
        return Room(scratch=to_mebibytes(parameters.file_total_size), keys="file_total_size")

    def script(self, parameters: SysbenchFileioParameters) -> str:
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

    def seconds(self, parameters: SysbenchFileioParameters) -> float:
        mebibytes = to_mebibytes(parameters.file_total_size)
        return float(parameters.time) + 1 + mebibytes / 300

    def parse(self, raw: Raw, parameters: SysbenchFileioParameters) -> dict[str, float]:
        text = raw.stdout
        expect(r"Doing (\S.*) test", text, "the mode", DOING[parameters.mode])
        expect(r"(\S+) files, \S+ each", text, "the number of files", parameters.file_num)
        values = sysbench.read_report(text, parameters.threads)
        printed = read_printed_rates(text)
        end = parameters.file_num * parameters.threads if parameters.mode in WRITES else 0
        # Each fsync at the end is in the rate, but is no event.
        operations = sum(printed[f"{kind}-per-second"] for kind in KINDS)
        check_positive(operations, "the operations per second")
        until_report = (values["total-events"] + end) / operations
        allowed = 0.01 + len(KINDS) * sysbench.ROUNDING / operations
        if until_report < (1 - allowed) * values["total-time"]:
            raise ParseError(
                f"the output contradicts itself: {operations:g} operations per second are {until_report:g} s, less than "
                f"the total time of {values['total-time']:g} s"
            )
        values |= {name: rate * until_report / values["total-time"] for name, rate in printed.items()}
        wanted = [metric.name for metric in self.metrics(parameters) if metric.name in values]
        for name in wanted:
            if not name.startswith("latency-"):
                check_positive(values[name], name)
        return {name: values[name] for name in wanted}

    def details(self, raw: Raw, parameters: SysbenchFileioParameters) -> Details:
        return Details(printed=read_printed_rates(raw.stdout))


def read_printed_rates(text: str) -> dict[str, float]:
    """Rates that sysbench prints for each kind of operation, by metric."""
    rates = {f"{kind}-per-second": find_number(rf" *{kind}/s: +(\S+)", text, f"{kind} per second") for kind in KINDS}
    rates["read"] = find_number(r" *read, MiB/s: +(\S+)", text, "MiB read per second")
    rates["written"] = find_number(r" *written, MiB/s: +(\S+)", text, "MiB written per second")
    return rates


PLUGIN = SysbenchFileio()
