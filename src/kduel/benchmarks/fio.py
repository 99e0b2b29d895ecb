"""fio: one pattern of input and output on the scratch disk."""

from typing import Literal

from msgspec import Struct, field

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw, Room
from kduel.benchmarks.support import reading
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Count, Number, Seconds, Size, Threads, to_mebibytes
from kduel.core.experiment import Metric

REPORT = "fio.json"
Pattern = Literal["read", "write", "randread", "randwrite", "rw", "randrw"]
DIRECTIONS = {
    "read": ("read",), "randread": ("read",), "write": ("write",), "randwrite": ("write",),
    "rw": ("read", "write"), "randrw": ("read", "write"),
}  # fmt: skip
PERCENTILES = ("50.000000", "99.000000")
WAITING = ("psync", "sync")
"""Engines that have one operation under way and no more."""


class Latency(Struct):
    """Nanoseconds."""

    max: reading.Natural
    percentile: dict[str, reading.Natural] = field(default_factory=dict)


class Direction(Struct):
    total_ios: reading.Natural
    bw_bytes: reading.Natural
    iops: reading.Amount
    runtime: reading.Natural
    """Milliseconds."""
    io_bytes: reading.Natural
    clat_ns: Latency


class FioJob(Struct):
    error: int
    read: Direction
    write: Direction


class FioReport(Struct):
    """Part of fio's JSON (fio 3)."""

    jobs: list[FioJob]


class FioParameters(Parameters, frozen=True):
    """fio's own, but a file of 64 MiB that is gone over for 2 seconds."""

    rw: Pattern = "read"
    bs: Size = "4K"
    size: Size = "64M"
    ioengine: Literal["psync", "sync", "libaio", "io_uring"] = "psync"
    iodepth: Count = 1
    numjobs: Threads = 1
    direct: bool = False
    fsync: Number = 0
    """Force data to the disk after so many writes; 0: never."""
    time: Seconds = 2

    def __post_init__(self) -> None:
        if self.iodepth > 1 and self.ioengine in WAITING:
            raise ValueError(f"iodepth {self.iodepth} needs ioengine libaio or io_uring; {self.ioengine} waits")


class Fio(Benchmark[FioParameters]):
    """File system and block layer; with `direct` without the page cache, else mostly the page cache itself."""

    name = "fio"
    summary = "One I/O pattern on the scratch disk: bandwidth, operations a second, latency p50 and p99 (fio)"
    packages = ("fio",)
    needs_scratch = True
    besides = 2.0
    label_template = "fio-{rw}-{bs}"
    label_formats = {
        "size": "{}", "ioengine": "{}", "iodepth": "qd{}", "numjobs": "{}jobs", "fsync": "fsync{}", "time": "{}s"
    }  # fmt: skip

    def metrics(self, parameters: FioParameters) -> tuple[Metric, ...]:
        cache = "the page cache left out" if parameters.direct else "through the page cache"
        return tuple(metric for way in DIRECTIONS[parameters.rw] for metric in direction_metrics(way, cache))

    def room(self, parameters: FioParameters) -> Room:
        return Room(scratch=parameters.numjobs * to_mebibytes(parameters.size), keys="size or numjobs")

    def script(self, parameters: FioParameters) -> str:
        p = parameters
        return (
            f'fio --name=kduel --directory="$KDUEL_SCRATCH" --rw={p.rw} --bs={p.bs} --size={p.size}'
            f" --ioengine={p.ioengine} --iodepth={p.iodepth} --numjobs={p.numjobs} --direct={int(p.direct)}"
            f" --fsync={p.fsync} --time_based --runtime={p.time} --group_reporting --unlink=1"
            f' --output-format=json --output="$KDUEL_STEP/{REPORT}"\n'
        )

    def parse(self, raw: Raw, parameters: FioParameters) -> dict[str, float]:
        report = reading.read_json_file(raw, REPORT, FioReport)
        if len(report.jobs) != 1:
            raise ParseError(f"{REPORT} has {len(report.jobs)} groups of jobs, not one")
        job = report.jobs[0]
        if job.error:
            raise ParseError(f"fio ended with error {job.error}")
        values: dict[str, float] = {}
        for way in DIRECTIONS[parameters.rw]:
            found = getattr(job, way)
            values |= read_rates(found, way) | read_latencies(found, way)
        return values


def direction_metrics(way: str, cache: str) -> tuple[Metric, ...]:
    """The metrics of one direction; `cache` says in words how the page cache takes part."""
    bandwidth = Metric(f"{way}-bandwidth", "MiB/s", "higher", f"Throughput, {cache}.", "mean")
    operations = Metric(f"{way}-iops", "1/s", "higher", "Operations: the throughput in blocks.", "mean")
    return (
        *with_aspect("storage-throughput", bandwidth),
        *with_aspect("storage-operations", operations),
        *with_aspect(
            "storage-latency",
            Metric(f"{way}-latency-p50", "us", "lower", "Half of the operations were no slower.", "median"),
            Metric(f"{way}-latency-p99", "us", "lower", "99 of 100 operations were no slower.", "p99"),
        ),
    )


def read_rates(found: Direction, way: str) -> dict[str, float]:
    """Bandwidth and operations of one direction. Raises ParseError where nothing was moved, or the figures do not fit."""
    reading.check_positive(found.total_ios, f"the number of {way} operations")
    reading.check_positive(found.bw_bytes, f"the {way} bandwidth")
    seconds = reading.check_positive(found.runtime, f"the {way} run time") / 1000
    reading.check_agreement(found.bw_bytes, found.io_bytes / seconds, f"the {way} bandwidth")
    reading.check_agreement(found.iops, found.total_ios / seconds, f"the {way} operations per second")
    return {f"{way}-bandwidth": found.bw_bytes / 2**20, f"{way}-iops": found.iops}


def read_latencies(found: Direction, way: str) -> dict[str, float]:
    """Latencies of one direction. Raises ParseError where there are none, or they do not fit."""
    try:
        p50, p99 = (found.clat_ns.percentile[key] for key in PERCENTILES)
    except KeyError as error:
        raise ParseError(f"{REPORT} has no {way} latency percentile {error.args[0]}") from error
    reading.check_positive(p50, f"the {way} latency p50")
    reading.check_samples(found.total_ios, 990, f"the {way} latency p99")
    # The percentiles are edges of a histogram's steps, which may lie a little above the maximum.
    reading.check_ascending({"p50": p50, "p99": p99, "1.1 x max": 1.1 * found.clat_ns.max + 100})
    return {f"{way}-latency-p50": p50 / 1000, f"{way}-latency-p99": p99 / 1000}


PLUGIN = Fio()
