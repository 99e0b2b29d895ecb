"""fio 3, --output-format=json: a trial is one call, so that reports are appended to one file."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from msgspec import Struct, field

from kduel.benchmarks.fio import PERCENTILES, Direction, direction_metrics, read_latencies, read_rates
from kduel.core.errors import InputError
from kduel.store.imported.support.call_output import CallOutput, PrintedFormat
from kduel.store.imported.support.foreign import json_documents, location_text

WAYS = ("read", "write", "trim")
SETTINGS = (
    "iodepth", "numjobs", "ioengine", "direct", "size", "rwmixread", "fsync", "fdatasync", "runtime", "rate", "rate_iops",
)  # fmt: skip
"""Options of which a job's name shows nothing."""
ALL_CLIENTS = "All clients"
"""What fio --client calls the sum of all jobs, whatever they did."""
FEWEST = 100
"""Operations below which there is no p99."""


class Job(Struct):
    """A job, or all of a group; of several with one name each is there without --group_reporting."""

    jobname: str
    error: int
    read: Direction
    write: Direction
    trim: Direction | None = None
    options: dict[str, str] = field(default_factory=dict, name="job options")
    job_start: int = 0
    """In milliseconds since 1970; newer versions have it."""


class Report(Struct):
    """One call."""

    jobs: list[Job] = []
    client_stats: list[Job] = []
    """In place of those, of a call with --client: every job of every client, and all of them as one."""
    options: dict[str, str] = field(default_factory=dict, name="global options")

    def every(self) -> list[Job]:
        """The jobs, without what fio adds up of them."""
        return self.jobs + [job for job in self.client_stats if job.jobname != ALL_CLIENTS]

    def name_of(self, job: Job) -> str:
        """The job's name, with what it did: one job file may be used for several patterns."""
        options = self.options | job.options
        return " ".join([job.jobname, *(options[key] for key in ("rw", "bs") if key in options)])

    def settings_of(self, job: Job) -> tuple[tuple[str, str], ...]:
        """The options of a job that its name does not have."""
        options = self.options | job.options
        return tuple((key, options[key]) for key in SETTINGS if key in options)


class Fio(PrintedFormat):
    name = "fio"
    summary = "fio --output-format=json (>>FILE), with or without --client, a trial being one call"
    derived = "rates of jobs with one name added up"
    begins = r'\s*\{\s*"fio version"'

    def check(self, path: Path, contender: str | None) -> None:
        for call, report in enumerate(json_documents(path, Report, "fio --output-format=json (fio 3)"), 1):
            if not report.every():
                raise InputError(
                    f"{location_text(path, f'call {call}')}: a report without jobs",
                    "Remove this call from the file, and repeat it.",
                )

    def call_outputs(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[CallOutput]:
        began: dict[tuple[str, int], int] = {}
        for call, report in enumerate(json_documents(path, Report, "fio --output-format=json (fio 3)"), 1):
            jobs: dict[str, list[Job]] = {}
            every = report.every()
            if len(every) < len(report.jobs) + len(report.client_stats):
                skipped.append(f"{location_text(path, f'call {call}')}: what fio adds up of all clients")
            for job in every:
                earlier = began.setdefault((job.jobname, job.job_start), call)
                if earlier != call and job.job_start:
                    raise InputError(
                        f"{location_text(path, f'call {call}')}: the job {job.jobname[:80]!r} began when that of call {earlier} did",
                        "Keep the last report of each call, or measure without --status-interval.",
                    )
                if job.error:
                    raise InputError(
                        f"{location_text(path, f'call {call}')}: the job {job.jobname[:80]!r} ended with error {job.error}",
                        "Remove this call from the file, and repeat it.",
                    )
                jobs.setdefault(report.name_of(job), []).append(job)
            for name, alike in jobs.items():
                where = f"call {call}, job {name[:80]!r}"
                moved = {way: busy for way in WAYS if (busy := [one for job in alike if (one := moved_by(job, way))])}
                metrics = [metric for way in moved for metric in direction_metrics(way, "")]
                read = partial(read_ways, moved, location_text(path, where), skipped)
                yield CallOutput(where, name, metrics, read, report.settings_of(alike[0]))


def moved_by(job: Job, way: str) -> Direction | None:
    """One direction of a job; None where it moved nothing."""
    found: Direction | None = getattr(job, way)
    return found if found is not None and found.total_ios else None


def read_ways(moved: dict[str, list[Direction]], place: str, skipped: list[str]) -> dict[str, float]:
    """The metrics of each direction of all jobs with one name. Raises ParseError."""
    found: dict[str, float] = {}
    for way, jobs in moved.items():
        rates = [read_rates(one, way) for one in jobs]
        found |= {name: sum(one[name] for one in rates) for name in rates[0]}
        latency = jobs[0].clat_ns.percentile.keys() >= {*PERCENTILES}
        if len(jobs) > 1:
            skipped.append(
                f"{place}: {way} latencies of {len(jobs)} jobs with one name (fio --group_reporting has them)"
            )
        elif not latency or jobs[0].total_ios < FEWEST:
            lacking = "of too few operations" if latency else "without the percentiles 50 and 99"
            skipped.append(f"{place}: {way} latencies {lacking}")
        else:
            found |= read_latencies(jobs[0], way)
    return found


PLUGIN = Fio()
