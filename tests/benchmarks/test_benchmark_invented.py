"""Values that a parser once made up, or took from a number cut short: each of these outputs is refused."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from kduel.benchmarks import ParseError, Raw, benchmark

CAPTURED = Path(__file__).parent / "captured"
MOST = 262_143_328_850


def captured(group: str, label: str) -> tuple[str, dict[str, object], Raw]:
    """Benchmark, parameters and what the step left."""
    case = json.loads((CAPTURED / group / f"{label}.json").read_text())
    return case["benchmark"], case["parameters"], Raw.read(CAPTURED / group / label)


def parse(group: str, label: str, pattern: str, changed: str, file: str = "stdout") -> dict[str, float]:
    """What comes of a captured output with one place of it changed."""
    name, table, raw = captured(group, label)
    texts = {"stdout": raw.stdout, "stderr": raw.stderr, **raw.files}
    texts[file], times = re.subn(pattern, changed, texts[file], count=1)
    assert times == 1
    chosen = benchmark(name)
    whole = Raw(texts.pop("stdout"), texts.pop("stderr"), 0, texts)
    return chosen.parse(whole, chosen.read_parameters(table))


SCHBENCH = ("schbench-documented", "schbench-1m-10s-warmup5")
TURBOSTAT = ("turbostat-documented", "turbostat-4t-1s-prime2000")
SIZE = ("kernel-size-debian-cloud", "size")
POWER = ("power-documented", "power-4t-1s-prime2000-domains-core")
SYSTEMD = ("systemd-documented", "boot-time")
LMBENCH = ("lmbench-3.0-a9-documented", "lmbench-latency-program-lmbench")
KBENCH = ("kduel-programs", "null-call-0.05s")
KLOAD = ("kduel-programs", "kload-cpu-6-200000i")
DESKTOP = ("kduel-programs", "desktop-2hogs-100hz-100f-work-20000")
WAKEUP = ("kduel-programs", "wakeup-2w-1000hz-500r-2hogs")
MEMORY = ("linux-x86_64-6.12", "memory-figures-allocatable-total-free-available-slab-code-data-init-reserved")
PERF = ("linux-perf-6.12.107-1", "perf-stat-idle-1s")
FIO = ("fio-3.33-3", "fio-randread-4k-8m-direct-1s")
INVENTED = [
    # Percentiles without the samples that carry them.
    (*SCHBENCH, r"30212 total", "0 total", "stdout", "p99.9 is of 0 samples"),
    (*SCHBENCH, r"30212 total", "999 total", "stdout", "p99.9 is of 999 samples, and takes 1000"),
    (*SCHBENCH, r"30246 total", "99 total", "stdout", "p99 is of 99 samples, and takes 100"),
    # Numbers that are the end of the output, and may be the beginning of longer ones.
    (*TURBOSTAT, r"27\.42\n", "27.4", "turbostat", "cut"),
    (*TURBOSTAT, r"27\.42\n", "2", "turbostat", "cut"),
    ("icount-documented", "boot", r"4567890\n", "4567", "stdout", "cut"),
    (*SIZE, r"\d\d\n$", "", "image", "no line with the size of the image"),
    (*SIZE, r"\d\d\n$", "", "compressed", "no line with the size of the compressed"),
    (*SIZE, r"\./.*\n\Z", "./ne", "modules", "the list of modules is cut"),
    (*SIZE, r"\d+ \./.*\n\Z", "", "modules", "the list has 6 modules, of 7 that were built"),
    (*POWER, r"\n\Z", "", "energy", "cut"),
    # Units.
    (*PERF, r"msec,task-clock", "usec,task-clock", "counts.csv", "task-clock is in 'usec'"),
    (*PERF, r"msec,task-clock", ",task-clock", "counts.csv", "contradicts itself"),
    (*PERF, r"(?m)^(\d+),,context", r"\1,K,context", "counts.csv", "context-switches is in 'K'"),
    (*PERF, r"(?m)^(\d+),,context", r"\1.5,,context", "counts.csv", "not a whole number"),
    # Counters of energy.
    (*POWER, r"intel-rapl:1 .*\n", "", "energy", "intel-rapl:1 is not the same in all three snapshots"),
    (
        *POWER,
        r"(snapshot load .*\n(.*\n)*?)intel-rapl:1 .*\n",
        r"\1",
        "energy",
        "not the same in all three snapshots",
    ),
    (*POWER, r"88184031172", "88000000000", "energy", "reset, or is wrong"),
    (*POWER, r"88244031172", "99999999999", "energy", "reset, or is wrong"),
    (*POWER, r"88244031172", "999999999999", "energy", "reset, or is wrong"),
    (*POWER, r"88244031172", "²", "energy", "not a whole number"),
    # Numbers beyond all bounds.
    (*SYSTEMD, r"5\.678s .* 6\.912s", f"{'9' * 400}s (userspace) = {'9' * 400}s", "stdout", "a stage is"),
    ("icount-documented", "boot", r"\d+", "9" * 400, "stdout", "whole number"),
    ("icount-documented", "boot", r"\d+", "9" * 5000, "stdout", "whole number"),
    (*LMBENCH, r"(Pipe latency: )\S+", rf"\g<1>{'9' * 400}", "stdout", "not a plain number"),
    (*SIZE, r"\n\s*\d+", f"\n{'9' * 5000}", "size", "no line of text"),
    # What cannot be negative.
    (*KLOAD, r'"user_s":', '"user_s":-', "stdout", ">= 0"),
    (*KLOAD, r'"rows":\[\s*\[(\d+),(\d+),(\d+)', r'"rows":[[\1,\2,-\3', "stdout", ">= 0"),
    (*KBENCH, r'"min":', '"min":-', "stdout", "min is -"),
    (*KBENCH, r'"median":', '"median":-', "stdout", "median is -"),
    (*DESKTOP, r'"late":', '"late":-1', "stdout", ">= 0"),
    (*DESKTOP, r'"late":\d+', '"late":101', "stdout", "101 requests of 100 were late"),
    (*DESKTOP, r'"hog_points_per_s":', '"hog_points_per_s":-', "stdout", ">= 0"),
    # Figures that the rest of the output contradicts.
    (*KBENCH, r'"mean":', '"mean":1', "stdout", "mean is .*, which is not that of its samples"),
    (*WAKEUP, r'("start_ns".*?"p99":)', r"\g<1>1", "stdout", "its samples lie elsewhere"),
    (*KLOAD, r'"wall_s":0\.', '"wall_s":0.000', "stdout", "wall time is not the last process's end"),
    # Damaged lines of logs.
    (*MEMORY, r"(\d\d)(\d+K kernel code)", r"\1@\2", "boot-message", "does not report code"),
    (*MEMORY, r", 0K cma-reserved\)", "", "boot-message", "does not report code"),
    (*MEMORY, r"Slab: +9172 kB\n", "Slab: 91", "meminfo", "does not report slab"),
    (*MEMORY, r"Slab: +9172 kB\n", "Slab: 9172 kB\nSlab: 5 kB\n", "meminfo", "'Slab' twice"),
    # The same thing twice.
    (*LMBENCH, r"\Z", "# lat_pipe\nPipe latency: 1.0000 microseconds\n", "stdout", "'lat_pipe' twice"),
    (*KBENCH, r"(?s)\A(.*)\Z", r"\1\1", "stdout", "2 lines are not of one operation, each condition once"),
    (*TURBOSTAT, r"Busy%", "PkgTmp", "turbostat", "'PkgTmp' twice"),
]


@pytest.mark.parametrize(("group", "label", "pattern", "changed", "file", "told"), INVENTED)
def test_nothing_is_made_of_what_is_not_there(
    group: str, label: str, pattern: str, changed: str, file: str, told: str
) -> None:
    with pytest.raises(ParseError, match=told):
        parse(group, label, pattern, changed, file)


def test_nanoseconds_without_a_unit_are_no_milliseconds() -> None:
    """As perf 6.17 prints the task clock: 2031785594 with an empty column for the unit."""
    right = parse(*PERF, "", "")
    bare = parse(*PERF, r"2031\.79,msec,task-clock", "2031785594,,task-clock", "counts.csv")
    assert bare["task-clock"] == pytest.approx(right["task-clock"], rel=1e-5)


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"x":' * 100_000, "9" * 100_000])
@pytest.mark.parametrize(
    ("place", "file"),
    [
        (KBENCH, "stdout"), (KLOAD, "stdout"), (WAKEUP, "stdout"), (MEMORY, "stdout"), (FIO, "fio.json"),
        (("rt-tests-2.6-1.1", "cyclictest-idle-2t-1000l"), "cyclictest.json"),
        (("kernel-build-documented", "build"), "times.json"),
        (("kduel-programs", "lmbench-latency-0.02s"), "stdout"),
    ],
)  # fmt: skip
def test_json_that_nests_without_end_is_refused(place: tuple[str, str], file: str, deep: str) -> None:
    """It once ended the run, and the trial's raw files with it."""
    for text in (deep, '{"a":' + deep):
        with pytest.raises(ParseError) as refused:
            parse(*place, r"(?s)\A.*\Z", text, file)
        assert len(str(refused.value)) < 500


BOOT = """\
     0.500 [    0.000000] Linux version {version} (builder@host) #1 SMP
     2.500 [    1.900000] Freeing unused kernel memory: 1396K
{init}     4.145 kduel: init
     5.000 kduel: script
"""
RUN = "     2.529 [    1.929000] Run /init as init process\n"


def boot(log: str, **table: object) -> dict[str, float]:
    chosen = benchmark("boot-timeline")
    return chosen.parse(Raw("", "", 0, {"console.log": log}), chosen.read_parameters(table))


def test_init_begins_with_one_line_for_all_contenders() -> None:
    """4.9 does not print the kernel's own line, and its 1.645 s until init's first words are no 0.029 s."""
    new, old = BOOT.format(version="6.12", init=RUN), BOOT.format(version="4.9", init="")
    assert boot(new)["start"] == pytest.approx(0.029)
    with pytest.raises(ParseError, match=r"no line 'Run \.\.\. as init process'.*set init = \"greeting\""):
        boot(old)
    for log in (new, old):
        assert boot(log, init="greeting")["start"] == pytest.approx(1.645)


@pytest.mark.parametrize(
    ("regex", "text", "told"),
    [
        (r"rate: (\S+)", "rate: 12.5", "ends in the number 12.5, which may be cut"),
        (r"rate: (\d+)", "rate: 12.5 ops\n", "takes only a part"),
        (r"rate: (\d+)", "rate: 12e5 ops\n", "takes only a part"),
        (r"(\d+) ops", "rate: 12.5 ops\n", "takes only a part"),
        (r"(\d+) ops", "rate: 1,250 ops\n", "takes only a part"),
        (r"rate: -(\d+)", "rate: -12 ops\n", "takes only a part"),
        (r"rate: (\S+)", f"rate: 1e{'9' * 200}\n", "not a finite number"),
        (r"rate: (\S+)", "rate: 1e200\n", "not a finite number"),
        (r"rate: (\S+)", f"rate: {'9' * 30}\n", "not a finite number up to 2\\^64"),
        (r"rate:(?: (\d+))?", "rate: x\n", "not a finite number"),
    ],
)
def test_an_expression_of_the_users_own_takes_whole_numbers(regex: str, text: str, told: str) -> None:
    chosen = benchmark("command")
    metric = {"name": "rate", "unit": "1/s", "better": "higher", "regex": regex}
    parameters = chosen.read_parameters({"command": "true", "metrics": [metric]})
    with pytest.raises(ParseError, match=told):
        chosen.parse(Raw(text, "", 0), parameters)
    assert chosen.parse(Raw("rate: 12 ops\n", "", 0), chosen.read_parameters(
        {"command": "true", "metrics": [metric | {"regex": r"rate: (\S+)"}]}))  # fmt: skip


def test_a_kernel_size_of_a_run_made_before_modules_were_counted_is_read() -> None:
    name, table, raw = captured(*SIZE)
    older = Raw(raw.stdout, raw.stderr, 0, {key: text for key, text in raw.files.items() if key != "modules-count"})
    chosen = benchmark(name)
    assert chosen.parse(older, chosen.read_parameters(table))["modules"] == 7


@pytest.mark.slow
def test_many_matches_of_an_expression_are_read_in_a_time_that_grows_as_they_do() -> None:
    """100,000 of them: what copied the rest of the output for each would take longer than is allowed."""
    chosen = benchmark("command")
    metric = {"name": "rate", "unit": "1/s", "better": "higher", "regex": r"rate: (\S+)", "reduce": "max"}
    parameters = chosen.read_parameters({"command": "true", "metrics": [metric]})
    began = time.process_time()
    assert chosen.parse(Raw("rate: 1\n" * 100_000, "", 0), parameters) == {"rate": 1}
    assert time.process_time() - began < 20
