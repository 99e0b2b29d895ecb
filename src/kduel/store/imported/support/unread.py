"""Outputs that are known, and are not read: what they are, and what to give instead."""

import re
from pathlib import Path

from kduel.core.errors import InputError

LINES = 30
TABLE = "Write a table with a line for each call: kduel import --help says how."
GOOGLE = "Measure with --benchmark_format=json."
JMH = "Measure with -rf json, which has the values of each fork."
HYPERFINE = "Measure with --export-json FILE."
BENCHSTAT = "Give the files that benchstat read."
OUTPUTS = tuple(
    (re.compile(pattern, re.MULTILINE), what, remedy)
    for pattern, what, remedy in (
        (r"^ *Performance counter stats for ", "what perf stat prints for people", "Measure with perf stat -x ';' -o FILE, and LC_ALL=C."),
        (r"^Benchmark (#|\d+:)", "what hyperfine prints for people", HYPERFINE),
        (r"^\| Command \| Mean \[", "hyperfine's table for people", HYPERFINE),
        (r'^"Benchmark","Mode","Threads",', "JMH's summary", JMH),
        (r"^Benchmark +(\(\w+\) +)*Mode +Cnt ", "what JMH prints for people", JMH),
        (r"^name,iterations,real_time,cpu_time,", "Google Benchmark's CSV", GOOGLE),
        (r"^Benchmark +Time +CPU +Iterations", "what Google Benchmark prints for people", GOOGLE),
        (r"^,[\w/-]+,CI,", "benchstat's CSV", BENCHSTAT),
        (r"^name .*(time|alloc|allocs)/op", "a table of an old benchstat", BENCHSTAT),
        (r'^\{"(Time|Action)":"[^"]*","', "what go test -json prints", "Measure without -json."),
        (r'^"(PING_INLINE|PING_BULK|SET|GET|INCR)[^"]*","[\d.]+"$', "a table of an old redis-benchmark", "Measure with redis-benchmark 6.2 or later."),
        (r"^\S+: \(g=\d+\): rw=", "what fio prints for people", "Measure with --output-format=json."),
        (r"^(Connecting to host .*, port \d|Server listening on \d)", "what iperf3 prints for people", "Measure with --json."),
        (r"^This is ApacheBench", "ab's report, which has one mean a call", TABLE),
        (r"^sysbench 0\.", "of a version of sysbench that is not read", "Measure with sysbench 1.0 or later."),
        (r"^(PING_INLINE|PING_MBULK|SET|GET|INCR|[A-Z_ ]+): [\d.]+ requests per second|^====== \S.* ======$", "what redis-benchmark prints for people", "Measure with redis-benchmark --csv."),
        (r"^(# function '[^']+' \(|Run summary \[PID )", "what perf bench --format=simple prints", "Measure without --format, which says what was measured."),
        (r"^Time: \d+\.\d{3}$", "hackbench's times without what was measured", "Give all that hackbench prints, or " + TABLE[:1].lower() + TABLE[1:]),
        (r"^(Simple \S+|Select on \d+ .*|Signal handler .*|Protection fault|Process fork\+.*|Pipe latency|AF_UNIX sock .*): [\d.]+ microseconds$",
         "what single programs of lmbench print", "Put a line '[lmbench3.0 results for HOST]' before those of each trial."),
        (r"^ *L M B E N C H ", "lmbench's summary", "Give lmbench's results files: results/ARCH/HOST.N."),
        (r"^testcase:.*\nwarmup$", "the output of one will-it-scale test", "Measure with will-it-scale's runtest.py, which writes a CSV."),
        (r"^\d+\.\d+s \S+\.(service|device|mount|target)$", "systemd-analyze's blame, which is no total", TABLE),
        (r"^Summary:\n  (Total|Success rate):", "a summary of hey or oha, one call", TABLE),
        (r"^stress-ng: (info|metrc)", "what stress-ng prints for people", "Measure with --metrics --yaml FILE."),
        (r"^Startup finished in ", "systemd-analyze's output, one boot", TABLE),
        (r"^OMNI ", "what netperf's omni tests print", TABLE),
        (r"(?i)^.*\bmsBetweenPresents\b", "a log of frames (PresentMon, CapFrameX), which are samples of one run", TABLE),
        (r"^response-time,DNS\+dialup,", "hey's log of requests, which are samples of one run", TABLE),
        (r"^\W*(r,b,swpd|usr\W+sys\W+idl)\b", "a monitor's log (vmstat, dstat), of which lines are samples of one run", TABLE),
        (r"^\d;fio-\d", "fio's terse output", "Measure with --output-format=json."),
        (r"^real\s+\d+m[\d.,]+s$", "what the shell's time prints, one call", HYPERFINE.replace("Measure", "Measure by hyperfine,")),
        (r"^group,function,value,throughput_num,", "Criterion's samples, which are of one process and no trials", TABLE),
    )
)  # fmt: skip


def check_read(path: Path, head: str) -> None:
    """Raises InputError where a file begins like one of these."""
    begin = "\n".join(head.split("\n", LINES)[:LINES])
    for pattern, what, remedy in OUTPUTS:
        if pattern.search(begin):
            raise InputError(f"{path.name} is {what}", remedy)
