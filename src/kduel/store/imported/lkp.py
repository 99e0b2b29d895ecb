"""LKP's matrix.json: every statistic of a group of runs, one value a run."""

import re
from collections.abc import Iterator
from pathlib import Path

from kduel.core.errors import InputError
from kduel.core.experiment import Better
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, json_number, location_text, read_json

SOURCE = "stats_source"
MONITORS = re.compile(
    r"boot-time|cpuidle|cpufreq|diskstats|dmesg|ftrace|interrupts|iostat|kmsg|latency_stats|last_state|lock_stat|meminfo|"
    r"mpstat|nfsstat|numa-\w+|perf-c2c|perf-profile|perf-sched|perf-stat|perf-node|pmeter|proc-vmstat|sched_debug|slabinfo|softirqs|"
    r"stderr|time|turbostat|uptime|vmstat"
)
"""What LKP records beside each benchmark: it has no better side, and there are thousands of it."""
HIGHER = re.compile(
    r".*(per_sec|_per_second|/s|/sec|ops|tps|throughput\w*|bw\w*|iops|[KMG]bps|[KMG]B_sec|rate|score|jobs-per-min)",
    re.IGNORECASE,
)
LOWER = re.compile(r".*(latency\w*|time|seconds|duration|[_.]([num]?s|msec|usec|nsec)|elapsed)", re.IGNORECASE)


def better_of(metric: str) -> Better:
    return "higher" if HIGHER.fullmatch(metric) else "lower" if LOWER.fullmatch(metric) else "none"


class Lkp(ForeignFormat):
    """lkp-tests, of which each run has a number in its result root. Which side of a statistic is better follows from its name."""

    name = "lkp"
    summary = "matrix.json of a result root of lkp-tests, a trial being one run"
    begins = rf'\s*\{{\s*"([\w.-]+\.[^"]*|{SOURCE})"\s*:\s*\['

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        matrix = read_json(path, dict[str, list[float | str]], "lkp-tests (matrix.json)")
        runs = matrix.pop(SOURCE, None)
        left_out = 0
        for key, values in matrix.items():
            benchmark, dot, metric = key.partition(".")
            if not dot or MONITORS.fullmatch(benchmark):
                left_out += 1
                continue
            if runs is not None and len(values) > len(runs):
                raise InputError(
                    f"{location_text(path, key[:80])}: {len(values)} values of {len(runs)} runs",
                    "Make it again from the runs (bin/unite-stats).",
                )
            better = better_of(metric)
            for trial, value in enumerate(values, 1):
                yield ForeignRow(
                    str(contender), trial, benchmark, metric, "", better, json_number(path, key[:80], "a value", value), key[:80],
                    numbered=True,
                )  # fmt: skip
        if left_out:
            skipped.append(f"{path.name}: {left_out} statistics of monitors, which have no better side.")


PLUGIN = Lkp()
