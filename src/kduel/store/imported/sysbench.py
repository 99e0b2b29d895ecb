"""Output of sysbench 1.0 and later: a trial is one call, so that calls are appended to one file."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kduel.core.experiment import Aspect, Better, Statistic
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, check_complete, text_lines
from kduel.store.imported.values_csv import number

BEGIN = re.compile(r"sysbench 1\.\S+ \(using .*")
THREADS = re.compile(r"Number of threads: (\d{1,6})")
END = re.compile(r"    execution time \(avg/stddev\): +\S+")
KINDS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"Prime numbers limit: \d+"), "cpu"),
    (re.compile(r"  operation: (\S+)"), "memory"),
    (re.compile(r"Doing (.+?)(?: test)?"), "fileio"),
    (re.compile(r"SQL statistics:"), "oltp"),
)
"""Lines that tell the test, and what else its name has."""

SETTING = re.compile(
    r" *(?:(Prime numbers limit|block size|total size|scope): (\S+)|(Block size) (\S+)|()(\d+ files, \S+ each)|()(Using \S+ I/O mode)"
    r"|(Extra file open flags|Read/Write ratio for combined random IO test): (\S+)|(Periodic FSYNC) (.*)|(Calling fsync\(\)) (after each .*))"
)
"""With what a test was called: name and value."""
QUERIES = re.compile(r" {8}(read|write): +(\d+)")
EVENT_COUNT = re.compile(r"    total number of events: +(\d+)")
TRANSACTIONS = re.compile(r"    transactions: +(\d+) .*")


class Figure(NamedTuple):
    pattern: re.Pattern[str]
    metric: str
    unit: str
    better: Better
    statistic: Statistic
    aspect: Aspect


def rate(pattern: str, metric: str, aspect: Aspect, unit: str = "1/s") -> Figure:
    return Figure(re.compile(pattern), metric, unit, "higher", "mean", aspect)


def latency(pattern: str, metric: str, statistic: Statistic) -> Figure:
    return Figure(re.compile(pattern), metric, "ms", "lower", statistic, "request-latency")


EVENTS = rate(r"    events/s \(eps\): +(\S+)", "events-per-second", "throughput")
"""Of every test from 1.1 on, beside the rate of the test itself."""
FIGURES = (
    rate(r"    events per second: +(\S+)", "events-per-second", "throughput"),
    rate(r"\S+ MiB transferred \((\S+) MiB/sec\)", "throughput", "memory-bandwidth", "MiB/s"),
    rate(r"    reads/s: +(\S+)", "reads-per-second", "storage-operations"),
    rate(r"    writes/s: +(\S+)", "writes-per-second", "storage-operations"),
    rate(r"    fsyncs/s: +(\S+)", "fsyncs-per-second", "storage-operations"),
    rate(r" +read:  IOPS=(\S+) .*", "reads-per-second", "storage-operations"),
    rate(r" +write: IOPS=(\S+) .*", "writes-per-second", "storage-operations"),
    rate(r" +fsync: IOPS=(\S+)", "fsyncs-per-second", "storage-operations"),
    rate(r"    transactions: +\d+ +\((\S+) per sec\.\)", "transactions-per-second", "throughput"),
    latency(r" +avg: +(\S+)", "latency-mean", "mean"),
    latency(r" +95th percentile: +(\S+)", "latency-p95", "p95"),
    latency(r" +99th percentile: +(\S+)", "latency-p99", "p99"),
)


class Sysbench(ForeignFormat):
    name = "sysbench"
    summary = "what sysbench prints (>>FILE), a trial being one call"
    calls = True
    begins = BEGIN.pattern

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        trials: dict[str, int] = {}
        kind, threads, found, settings = "other", "", list[tuple[int, str, Figure]](), list[tuple[str, str]]()
        complete, queries = True, dict[str, int]()
        for line, text in text_lines(path):
            if BEGIN.fullmatch(text):
                check_complete(path, line, complete, "execution time")
                kind, threads, found, complete, settings, queries = "other", "", [], False, [], {}
            elif complete:
                continue
            elif told := THREADS.fullmatch(text):
                threads = f"-{told[1]}t"
            elif END.fullmatch(text):
                complete = True
                name = f"sysbench-{kind}{threads}"
                trials[name] = trials.get(name, 0) + 1
                for place, value, one in found:
                    yield ForeignRow(
                        str(contender), trials[name], name, one.metric, one.unit, one.better, number(path, place, value), place,
                        one.statistic, least=0.0, aspect=one.aspect, settings=(*settings,),
                    )  # fmt: skip
            else:
                if asked := SETTING.fullmatch(text):
                    name, value = (one for one in asked.groups() if one is not None)
                    settings.append((name or "files" if "files" in value else name or "mode", value))
                if asked := QUERIES.fullmatch(text):
                    queries[asked[1]] = int(asked[2])
                elif kind == "other" and (asked := EVENT_COUNT.fullmatch(text)):
                    # What tells the test mutex, which names itself as little, from the test threads.
                    settings.append(("events", "one a thread" if threads == f"-{asked[1]}t" else "many a thread"))
                elif (asked := TRANSACTIONS.fullmatch(text)) and (count := int(asked[1])):
                    # Of one transaction: what tells read_only from write_only.
                    settings += [(f"queries, {way}", f"{number / count:.0f}") for way, number in queries.items()]
                for pattern, test in KINDS:
                    if match := pattern.fullmatch(text):
                        kind = "-".join((test, *(word.replace(" ", "-") for word in match.groups())))
                found += [(line, match[1], one) for one in FIGURES if (match := one.pattern.fullmatch(text))]
                if (told := EVENTS.pattern.fullmatch(text)) and all(one.better == "lower" for _, _, one in found):
                    found.append((line, told[1], EVENTS))
        check_complete(path, "its end", complete, "execution time")


PLUGIN = Sysbench()
