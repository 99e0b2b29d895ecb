"""`--command` and `--benchmark` of `kduel run`: a study of what the command line names, in place of a suite."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from kduel.cli.advice import AdvisedError, as_words
from kduel.cli.options import Word, option, plugin_option
from kduel.core.errors import InputError
from kduel.core.manifest import digest
from kduel.core.plugins import plugins
from kduel.core.text import printable
from kduel.core.toml import shorten
from kduel.study.contenders import as_toml

F = TypeVar("F", bound=Callable[..., object])
NUMBER_ALONE = r"^\s*([-+0-9.eE]+)\s*$"
DEFAULT_MACHINE, EXACT_MACHINE = "qemu", "icount"
"""The machine where none is named: of what measures time, and of what counts, as --layouts and --single do."""
LONGEST_NAME = 60
"""Characters of a study's name, which becomes that of the run's directory."""
HEAD = """[study]
name = "{name}"
title = {title}
delta = 1.0
[machine]
kind = "{machine}"
[settle]
mode = "idle"
seconds = 10
"""


class OwnStudy(NamedTuple):
    """Text of a study without contenders, the option that gave it, and what was given for each of its benchmarks."""

    text: str
    option: str
    options: list[str]


def own_study_options(command: F) -> F:
    """`--benchmark`; `--command` and what describes its number."""
    for decorate in (
        option("--better", "Which values of --command are better.  [default: lower]", ["lower", "higher"]),
        option("--unit", "Unit of the number of --command.  [default: units]", Word(), "UNIT"),
        option(
            "--regex",
            "RE2 expression whose one group is the number.  [default: a number alone on a line]",
            Word(),
            "RE",
        ),
        option(
            "--command line",
            "Measure the number that a command prints, in place of a suite. A program of this host that it begins with, "
            "such as ./bench, is brought along.",
            metavar="COMMAND",
        ),
        plugin_option(
            "--benchmark -b benchmarks",
            "benchmarks",
            "A benchmark in place of a suite, such as redis or fio:rw=randread,time=5; its first metric decides, or "
            "primary=METRIC. Repeatable; `kduel list benchmarks` shows all.",
            metavar="NAME[:key=value,...]",
            multiple=True,
        ),
    ):
        command = decorate(command)
    return command


def own_study(
    benchmarks: Sequence[str], line: str | None, regex: str | None, unit: str | None, better: str | None
) -> OwnStudy | None:
    """The study that the options describe; None without `benchmarks` and `line`. Raises InputError."""
    own = command_study(line, regex, unit, better)
    if not benchmarks:
        return own
    if own is not None:
        raise InputError("--benchmark and --command exclude each other", "Write a study file for both: `kduel init`.")
    return OwnStudy(benchmarks_study(benchmarks), "--benchmark", [f"--benchmark {words}" for words in benchmarks])


def benchmarks_study(benchmarks: Sequence[str]) -> str:
    """Text of a study of `NAME[:key=value,...]` each. Raises InputError."""
    from kduel.benchmarks import benchmark
    from kduel.study.load import read_words
    from kduel.study.steps import expand

    steps, machine, names = "", DEFAULT_MACHINE, list[str]()
    for words in benchmarks:
        name, _, settings = words.partition(":")
        if not name:
            raise InputError(
                f"--benchmark {printable(words)!r} names no benchmark",
                "Give one of `kduel list benchmarks`: --benchmark redis.",
            )
        given, chosen = read_words(settings, ""), None
        try:
            table = named_as_by_explain(name) or {"use": name}
            for key in given:
                if key in {"", *table}:
                    raise InputError(
                        f"{key} is given by the name" if key else f"{given[key]!r} has no key",
                        "Give NAME:key=value,..., such as fio:rw=randread,time=5.",
                    )
            table |= given
            chosen = benchmark(table["use"])
            if isinstance(table.get("primary"), str) and table["primary"] != "*":
                table["primary"] = [table["primary"]]
            expanded = expand(table)
            names.append(expanded[0].label if given and len(expanded) == 1 else name)
            for step in expanded:
                parameters = chosen.read_parameters(step.parameters)
                table.setdefault("primary", [chosen.metrics(parameters)[0].name])
                machine = chosen.only_on or (EXACT_MACHINE if chosen.counts_instructions(parameters) else machine)
        except InputError as error:
            own = chosen.Parameters.__struct_fields__ if chosen else ()
            raise AdvisedError(
                f"--benchmark {printable(words)}: {error.message}", as_words(error.remedy, of_benchmark=own)
            ) from error
        steps += "[[benchmark]]\n" + "".join(f"{as_toml(key)} = {as_toml(value)}\n" for key, value in table.items())
    title = as_toml(shorten(printable(", ".join(benchmarks)), 80))
    name = "-".join(dict.fromkeys(names))[:LONGEST_NAME].rstrip("-")
    return HEAD.format(name=name, title=title, machine=machine) + steps


def named_as_by_explain(name: str) -> dict[str, Any]:
    """The [[benchmark]] table of an operation or a request that `kduel explain` counts; empty for other names. Raises InputError."""
    from kduel.benchmarks.request import APPLICATIONS
    from kduel.benchmarks.sharing import sharing_table
    from kduel.benchmarks.support.operations import OPERATIONS

    if name in plugins("benchmarks"):
        return {}
    if name in APPLICATIONS:
        return {"use": "request", "application": name}
    if "/" in name and name.partition("/")[0].partition("+")[0] in OPERATIONS:
        return sharing_table(name)
    return {"use": "kbench", "operation": name} if name in OPERATIONS else {}


def command_study(line: str | None, regex: str | None, unit: str | None, better: str | None) -> OwnStudy | None:
    """The study of one command, without contenders; None without `line`. Raises InputError."""
    if line is None:
        given = {"--regex": regex, "--unit": unit, "--better": better}
        alone = [name for name, value in given.items() if value is not None]
        if alone:
            raise InputError(f"{alone[0]} describes what --command prints", "Give --command 'COMMAND', too.")
        return None
    from kduel.benchmarks.command import OutputPattern

    try:
        words = shlex.split(line)
    except ValueError as error:
        raise InputError(f"--command {line!r}: {error}", "Check its quotes.") from error
    line, files = line.strip(), ""
    if words and words[0].startswith(("./", "../")) and not Path(words[0]).is_file():
        raise InputError(f"--command {printable(line)!r}: there is no file {printable(words[0])}", "Check the path.")
    if words and "/" in words[0] and line.startswith(words[0]) and Path(words[0]).is_file():
        program = Path(words[0])
        line = shlex.quote(program.name) + line[len(words[0]) :]
        files = f"files = {as_toml({str(program): digest(program)})}\n"
    metric = {"name": "value", "unit": unit or "units", "better": better or "lower", "regex": regex or NUMBER_ALONE}
    try:
        OutputPattern(**metric)  # type: ignore[arg-type]
    except UnicodeEncodeError:
        raise  # Called bytes that are not UTF-8, as of any option.
    except ValueError as error:
        raise InputError(
            f"--{error}", "Give an expression with one group, around the number: 'took ([0-9.]+) ms'."
        ) from error
    step = f"command = {as_toml(line)}\n{files}metrics = [{as_toml(metric)}]\n"
    title = as_toml(shorten(printable(" ".join(line.split())), 80))
    text = f'{HEAD.format(name="command", title=title, machine=DEFAULT_MACHINE)}[[benchmark]]\nuse = "command"\n{step}primary = ["value"]\n'
    return OwnStudy(text, "--command", ["--command"])
