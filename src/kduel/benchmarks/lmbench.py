"""lmbench: the categories of lmbench's summary, by lmbench itself or by our own programs under the same names.

lmbench's licence lets nobody publish figures of a changed copy as lmbench's: ours are not a copy, and are no lmbench
figures; runs of one are never to be compared with runs of the other.
"""

import re
from statistics import mean
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.benchmarks.support.reading import Amount, check_positive, check_unique, read_json, read_number, split_lines
from kduel.core.experiment import Aspect, Better, Metric
from kduel.core.toml import table_beside

Category = Literal["processes", "switches", "latency", "rpc", "files", "bandwidth", "arithmetic"]
FOLDER = "/usr/lib/lmbench/bin/*/"
CLOCK_ERROR_PCT = 5.0
"""More than kbench by itself may err: one test that came out short on a busy host is not to cost the category."""
_UNITS: dict[str, tuple[str, Better]] = {"bandwidth": ("MB/s", "higher"), "arithmetic": ("ns", "lower")}
"""By category; of the others microseconds."""
SERVED = ("lat_udp", "lat_tcp", "lat_connect", "lat_rpc", "bw_tcp")
"""Those that need a server of themselves."""


class Test(Struct, frozen=True, kw_only=True):
    """A figure of the summary."""

    name: str
    category: Category
    about: str
    kduel: tuple[str, ...] = ()
    """Operations of kbench (latencies) or kbandwidth; of several the mean counts. None: ours has no such test."""
    lmbench: tuple[str, ...] = ()
    """lmbench's commands; of several the mean counts."""
    pattern: str = ""
    """Expression for the output of one of these, with a group for the figure."""
    rate: bool = False
    """True if lmbench prints operations a second, which are converted to microseconds."""

    def arithmetic(self, program: str) -> str:
        """The arithmetic that makes the figure of what the program prints, empty for a change of unit."""
        several = len(getattr(self, program)) > 1
        return "mean of several tests" if several else "1 / rate" if self.rate and program == "lmbench" else ""


TESTS = msgspec.convert([{"name": name, **row} for name, row in table_beside(__file__).items()], tuple[Test, ...])


class SummaryLine(Struct, frozen=True):
    """Fields of our programs' output that are used here."""

    operation: str
    unit: str
    median: Amount
    clock_error_pct: Amount = 0.0


class LmbenchParameters(Parameters, frozen=True):
    """`program`: "kduel" runs everywhere; "lmbench" is Debian's package (non-free; machine qemu), or the user's own in
    /usr/lib/lmbench (machine ssh). `time`: seconds of each of our tests."""

    category: Category
    program: Literal["kduel", "lmbench"] = "kduel"
    time: Annotated[float, Meta(gt=0, le=3600)] = 0.3

    def __post_init__(self) -> None:
        if not chosen_tests(self):
            raise ValueError(f'category {self.category} is of lmbench itself: give program = "lmbench"')


def chosen_tests(parameters: LmbenchParameters) -> list[Test]:
    return [t for t in TESTS if t.category == parameters.category and getattr(t, parameters.program)]


class Lmbench(Benchmark[LmbenchParameters]):
    """One category a step, each figure a metric: microseconds or ns, lower is better, or MB/s, higher is better."""

    name = "lmbench"
    summary = (
        "The figures of lmbench's summary by category: our own programs, or Debian's lmbench (program = lmbench)"
    )
    programs = ("kbench", "kbandwidth")
    label_template = "lmbench-{category}"
    label_formats = {"time": "{}s"}

    def metrics(self, parameters: LmbenchParameters) -> tuple[Metric, ...]:
        unit, better = _UNITS.get(parameters.category, ("us", "lower"))
        aspect: Aspect = "operation-rate" if parameters.category == "bandwidth" else "operation-time"
        return tuple(
            Metric(t.name, unit, better, t.about, "median", derived=t.arithmetic(parameters.program), aspect=aspect)
            for t in chosen_tests(parameters)
        )

    def packages_for(self, parameters: LmbenchParameters) -> tuple[str, ...]:
        if parameters.program == "kduel":
            return ()
        # rpcbind finds its port in /etc/services.
        return ("lmbench", "netbase", "rpcbind") if parameters.category == "rpc" else ("lmbench",)

    def script(self, parameters: LmbenchParameters) -> str:
        tests = chosen_tests(parameters)
        if parameters.program == "kduel":
            tool = "kbandwidth" if parameters.category == "bandwidth" else "kbench"
            operations = dict.fromkeys(operation for test in tests for operation in test.kduel)
            return "".join(f'"$KDUEL_PROGRAMS/{tool}" --time {parameters.time:g} {one}\n' for one in operations)
        commands = list(dict.fromkeys(command for test in tests for command in test.lmbench))
        servers = [name for name in SERVED if any(command.split()[0] == name for command in commands)]
        return "\n".join(
            [
                f"cd {FOLDER}",
                'bin=$PWD; cd "$OLDPWD"',
                # Where lmbench looks for what it executes.
                'mkdir -p /var/tmp/lmbench; cp "$bin"/hello /var/tmp/lmbench/hello; cp "$bin"/hello /tmp/hello',
                "dd if=/dev/zero of=file bs=1M count=8 2>/dev/null",
                # A guest has no name resolution.
                "[ -s /etc/hosts ] || echo 127.0.0.1 localhost >/etc/hosts",
                # As lmbench's own config-run does, once for all: else each command finds out for itself, for seconds.
                'ENOUGH=$("$bin"/enough); export ENOUGH',
                'TIMING_O=$("$bin"/timing_o); LOOP_O=$("$bin"/loop_o); export TIMING_O LOOP_O',
                # The port mapper, with which servers of RPC register.
                *(["rpcinfo -p localhost >/dev/null 2>&1 || rpcbind"] * ("lat_rpc" in servers)),
                *(f'"$bin"/{server} -s' for server in servers),
                *(f'echo "# {command}"; "$bin"/{command} 2>&1' for command in commands),
                *(f'"$bin"/{server} -S localhost' for server in servers),
                "",
            ]
        )

    def seconds(self, parameters: LmbenchParameters) -> float:
        each = 0.3 + parameters.time if parameters.program == "kduel" else 8.0
        return each * sum(len(getattr(test, parameters.program)) for test in chosen_tests(parameters))

    def parse(self, raw: Raw, parameters: LmbenchParameters) -> dict[str, float]:
        tests = chosen_tests(parameters)
        if parameters.program == "kduel":
            lines = read_own_lines(raw.stdout)
            scale, unit = (1.0, "MB/s") if parameters.category == "bandwidth" else (0.001, "ns")
            return {
                test.name: scale * mean(read_own_figure(lines, one, unit) for one in test.kduel) for test in tests
            }
        sections = re.findall(r"^# (.+)\n((?:(?!# ).*\n)*)", raw.stdout, re.MULTILINE)
        check_unique((command for command, _ in sections), "lmbench's command")
        parts = dict(sections)
        return {test.name: mean(read_lmbench_figure(parts, one, test) for one in test.lmbench) for test in tests}


def read_own_lines(text: str) -> dict[str, SummaryLine]:
    """Output of our programs, by operation. Raises ParseError."""
    lines = [read_json(line, SummaryLine, "a line") for line in split_lines(text, "the output")]
    check_unique((line.operation for line in lines), "the operation")
    return {line.operation: line for line in lines}


def read_own_figure(lines: dict[str, SummaryLine], operation: str, unit: str) -> float:
    """An operation's median. Raises ParseError."""
    line = lines.get(operation)
    if line is None:
        raise ParseError(f"the output has no line of {operation}")
    if line.unit != unit:
        raise ParseError(f"{operation} is reported as {line.median} {line.unit[:20]}, not in {unit}")
    if line.clock_error_pct > CLOCK_ERROR_PCT:
        raise ParseError(f"the clock errs by {line.clock_error_pct:.1f} % over the longest batch of {operation}")
    return check_positive(line.median, operation)


def read_lmbench_figure(parts: dict[str, str], command: str, test: Test) -> float:
    """Figure that a command of lmbench's printed, in its category's unit. Raises ParseError."""
    found = re.findall(rf"^{test.pattern}$", parts.get(command, ""), re.MULTILINE)
    if len(found) != 1:
        said = " / ".join(parts.get(command, "nothing").split("\n"))[:120]
        raise ParseError(f"{test.name}: lmbench's {command} gave no figure, but: {said}")
    value = check_positive(read_number(found[0], f"{test.name} by lmbench's {command}"), test.name)
    return 1e6 / value if test.rate else value


PLUGIN = Lmbench()
