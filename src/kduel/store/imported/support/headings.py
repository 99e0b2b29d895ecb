"""Headings of tables: what a column is, by its name. Where a heading may mean several things, nothing is guessed."""

import re
from collections.abc import Mapping, Sequence

from kduel.core.errors import InputError

TRIALS = ("trial", "run", "iteration", "iter", "repetition", "rep", "repeat", "round", "block", "#", "")
"""What the column of the trials' numbers may be called; a data frame's index has no name."""
NUMBERS = {"no", "nr", "id", "number"}
INDEX = "unnamed: 0"
"""A data frame's index that was read and written again."""
IDENTITY = ("contender", "benchmark", "metric", "unit", "better")
KERNELS = {"kernel", "kernelversion", "release", "version", "uname"}
"""Words in the heading of a column that names the contender."""
MOMENTS = {"time", "timestamp", "date", "datetime", "epoch", "uptime", "elapsed"}
"""Words in the heading of a moment: lines that differ in it are samples of one series, and no trials."""
DATES = {"timestamp", "date", "datetime", "epoch"}
"""Those that are never a duration."""
PARAMETERS = {
    "threads", "nthreads", "task", "tasks", "groups", "jobs", "numjobs", "clients", "connections", "concurrency", "workers",
    "cores", "cpus", "ncpus", "nproc", "iodepth", "depth", "blocksize", "bs",
}  # fmt: skip
"""Words in the heading of a parameter, of which the lines of one benchmark have one value."""
NO_CONTENDER = {
    *MOMENTS, *PARAMETERS, "interval", "s", "sec", "secs", "second", "seconds", "ms", "us", "ns", "percent", "percentage",
    "percentile", "quantile", "cpu", "size",
} - {"groups", "depth", "workers", "concurrency"}  # fmt: skip
"""Words in the heading of a time, a share or a parameter, of which each line has another."""
METRICS = {
    "fps", "frametime", "latency", "throughput", "bandwidth", "iops", "ops", "tps", "qps", "rps", "rate", "score", "value",
    "count", "mean", "avg", "average", "median", "min", "max", "stddev", "stdev", "std", "duration", "runtime", "usage", "load",
    "memory", "mem", "rss", "temp", "temperature", "power", "gpu", "ram", "util", "utilization", "requests", "errors",
}  # fmt: skip
"""Words of which a contender's name does not consist."""
KINDS_OF_METRICS = {
    "user", "sys", "idle", "iowait", "read", "write", "rx", "tx", "bytes", "watts", "watt", "joules", "energy", "misses", "instructions", "cycles",
    "hits", "faults", "switches", "migrations", "mhz", "ghz", "freq", "frequency", "ipc", "rpm", "delta", "diff", "difference", "ratio",
    "change", "speedup", "pvalue", "samples", "sd", "sem", "ci", "err",
}  # fmt: skip
"""Further ones, and what is calculated from other columns."""
BESIDE = {
    "idle": {"menu", "teo", "ladder", "haltpoll", "batch", "fifo", "rr"},
    "rpm": {"deb", "apk"},
}
"""Of those, what is a contender's name beside one of its kind: a governor of idle CPUs, a policy, a form of packages."""
QUALIFIERS = {
    "p", "c", "real", "cache", "branch", "page", "context", "core", "fan", "single", "multi", "per", "total", "n",
}  # fmt: skip
"""Words beside those."""
QUANTILES = {"percentile", "quantile", "percentage"}
"""Words in the heading of shares, of which each line of a distribution has another."""
SIZES = {
    "size", "message", "msg", "buffer", "buf", "batch", "packet", "payload", "chunk", "record", "request", "file",
}  # fmt: skip
"""Words of the heading of a size that is asked for, as long as it is the same for a contender; else it may be measured."""
STATUS = (
    {"exit", "code"},
    {"exit", "status"},
    {"exitcode"},
    {"returncode"},
    {"return", "code"},
    {"rc"},
    {"retval"},
    {"failed"},
    {"failures"},
)
"""Words of a heading of what is 0 where a trial was carried out."""
EPOCH = 1e9
"""Seconds since 1970 in 2001: above that a time without a unit is a date."""
A_MONTH = 2.5e6 / EPOCH
"""Of that time, what a table's lines are apart at most."""
SECONDS = {"ms": 1e-3, "msec": 1e-3, "us": 1e-6, "usec": 1e-6, "ns": 1e-9, "nsec": 1e-9}
"""By the word of a unit in a heading."""
STAGES = {"firmware", "loader", "initrd", "userspace"}
"""Words in the heading of a boot's stages, of which another one is called `kernel`."""
VALUE_OF_PARAMETER = re.compile(r"\d+ ?(?:[kKMGT]i?B?|B|t|threads?|clients?|jobs?|groups?)|p\d{1,2}(?:\.?\d+)?")
TRIAL = r"(?:run|trial|iteration|iter|repetition|rep|repeat|round|sample)[ _.#-]*\d+|#\d+"
UNIT = re.compile(r"\w ?\[[^\[\]:]*(?:: *\w*)?\]$")


def role_of(name: str) -> str:
    """The name of a column; one that says what the column is for as this house writes it."""
    plain = name.casefold()
    words = words_of(name)
    if plain == INDEX:
        return ""
    if plain in TRIALS or plain in IDENTITY:
        return plain
    if len(words) > 1 and len(words - NUMBERS) == 1 and (word := min(words - NUMBERS)) in TRIALS:
        return word
    return "run" if words == {"run"} and "#" in name else name


def words_of(name: str) -> set[str]:
    """The words of a heading in lower case: of `elapsed_ms`, `elapsedMs` and `Elapsed [ms]` the same two."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", name)}


def is_kernel(name: str) -> bool:
    """True for a column of kernels, such as `Kernel version`."""
    words = words_of(name)
    return bool(words & KERNELS) and words <= {*KERNELS, "linux"}


def kernels_among(names: Sequence[str], first: Mapping[str, str]) -> list[str]:
    """The columns of kernels; beside stages of a boot one called `kernel` is such a stage, if the `first` line has a number there."""
    stages = any(STAGES & words_of(name) for name in names)
    return [
        name
        for name in names
        if is_kernel(name)
        and not (stages and words_of(name) == {"kernel"} and re.fullmatch(r"\s*\d*[.,]?\d*\s*", first.get(name, "")))
    ]


def is_parameter(name: str) -> bool:
    """True for a column of a benchmark's parameter, such as `nr_threads`; one with a unit is what was measured."""
    words = words_of(name)
    return (
        "[" not in name
        and (words == {"block", "size"} or bool(words & PARAMETERS))
        and (words <= {*PARAMETERS, "block", "size", "nr", "num", "number", "of", "n"})
    )


def is_size(name: str) -> bool:
    """True for a column of a size that is asked for; a heading without a word in ASCII says nothing."""
    words = words_of(name)
    return bool(words) and words <= SIZES


def is_moment(name: str, values: Sequence[float]) -> bool:
    """True for times that are dates by their numbers: since 1970, and close to each other, as durations of such a size are not."""
    unit = min((SECONDS[word] for word in words_of(name) & SECONDS.keys()), default=1.0)
    return min(values) * unit > EPOCH and max(values) < min(values) * (1 + A_MONTH)


def check_contenders(where: str, names: list[str], numbered: bool) -> None:
    """Raises InputError unless the columns `names` are surely contenders; `numbered`: other columns identify rows."""
    remedy = (
        "Leave it out, or name the column of the trials' numbers 'trial' and that of the contenders 'contender'; for one "
        "file a contender: NAME=FILE. If it is a contender, give it a name that says so, such as pages-4k, patch-1 or with-change."
    )
    for name in names:
        if UNIT.search(name) or "%" in name or not any(map(str.isalnum, name)) or names_metric(name, names):
            raise InputError(f"{where}: the column {name[:60]!r} is a metric, and no contender", remedy)
        if NO_CONTENDER & words_of(name) or VALUE_OF_PARAMETER.fullmatch(name):
            raise InputError(
                f"{where}: the column {name[:60]!r} is a time, a share or a parameter, and no contender", remedy
            )
    check_trials(where, names, TRIAL)
    check_one_each(where, names)
    if not numbered:
        first = " and ".join(repr(name[:60]) for name in names[:2])
        raise InputError(
            f"{where} does not say whether {first} are contenders or metrics",
            "Of contenders: name the column of the trials' numbers 'trial', or that of the benchmarks 'benchmark'. Of metrics: "
            "name the column of the contenders 'contender', or give a file for each contender, NAME=FILE.",
        )


REPETITION = re.compile(
    r"(?P<base>.*?\w)(?:[ _#-]+(?:run|trial|rep|iter|iteration)?[ _#-]*|[ _-]*\()(?P<rest>\d{1,3})\)?", re.IGNORECASE
)
SUMMARIES = {
    "average",
    "avg",
    "mean",
    "geomean",
    "gmean",
    "total",
    "sum",
    "median",
    "min",
    "max",
    "stddev",
    "stdev",
    "std",
    "overall",
}
"""Names of lines, or parts of headings, that are calculated from others."""
_SUMMARY = rf"{'|'.join(sorted(SUMMARIES))}|sd|p\d+"
FIGURE = re.compile(
    rf"(?P<base>.*\w)[ _-]+(?P<rest>{_SUMMARY})|(?P<rest_>{_SUMMARY})[ _-]+(?P<base_>\w.*)", re.IGNORECASE
)
"""`old_2`, `old (2)`; `old avg`, `std old`: what may be one of several columns of each contender."""


def check_one_each(where: str, names: Sequence[str]) -> None:
    """Raises InputError where several contenders have the same several columns: repetitions, which count from 0 or 1, or figures of different kinds."""
    for pattern, what in ((REPETITION, "repetitions"), (FIGURE, "figures")):
        parts: dict[str, dict[str, str]] = {}
        for name in names:
            if found := pattern.fullmatch(name):
                base, rest = (found[key] or found.groupdict().get(f"{key}_") for key in ("base", "rest"))
                parts.setdefault(str(base), {})[str(rest).casefold()] = name
        for base, columns in parts.items():
            others = [one for one in parts if one != base and parts[one].keys() == columns.keys()]
            if pattern is REPETITION and sorted(map(int, columns)) not in (
                [*range(len(columns))],
                [*range(1, len(columns) + 1)],
            ):
                continue
            if len(columns) > 1 and others:
                first, second, *_ = columns.values()
                raise InputError(
                    f"{where}: the columns {first[:60]!r} and {second[:60]!r} are {what} of {base[:60]!r}, as others are of {others[0][:60]!r}",
                    "Write a line for each repetition and a column for each contender: trial,old,new; or a column for each metric: "
                    "contender,trial,latency [ms: lower]. If they are contenders, name them otherwise: 6.1-100Hz.",
                )


def names_metric(name: str, names: Sequence[str]) -> bool:
    """True for the name of a metric, or of what belongs to another column, as `old_stddev` to `old`."""
    if BESIDE.get(name.casefold(), set()) & {other.casefold() for other in names}:
        return False
    words = words_of(name)
    for other in map(words_of, names):
        words = words - other if other < words else words
    words = {word for word in words if not word.isdigit()}
    known = METRICS | KINDS_OF_METRICS | STAGES
    return bool(words & known) and words <= known | NO_CONTENDER | QUALIFIERS


def check_trials(where: str, names: list[str], pattern: str) -> None:
    """Raises InputError where several columns are the trials of one metric."""
    trials = [name for name in names if re.fullmatch(pattern, name, re.IGNORECASE)]
    if len(trials) > 1:
        raise InputError(
            f"{where}: the columns {trials[0][:60]!r} and {trials[1][:60]!r} are trials",
            "Write a line for each trial, with a column for each metric, such as latency [ms: lower].",
        )
