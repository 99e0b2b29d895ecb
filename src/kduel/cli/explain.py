"""`kduel explain`: which kernel functions an exact difference comes from."""

from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec
from msgspec.structs import replace

from kduel.cli.live_trials import show_trials
from kduel.cli.options import (
    benchmark_option,
    contender_arguments,
    format_option,
    limit_option,
    offline_option,
    option,
    options_on_command_line,
    output_option,
    plot_option,
    quiet_option,
)
from kduel.cli.output import emit, emit_json, output_width, write_plot
from kduel.cli.terminal import Terminal
from kduel.core.cache import Cache
from kduel.core.errors import InputError, unknown_name
from kduel.core.text import plural, printable
from kduel.explain.sharing.compare import KEPT_AS
from kduel.explain.sharing.touched import touched_text
from kduel.explain.waits import as_svg as waits_svg
from kduel.explain.waits import as_text as waits_text

WAITS = 3
"""Slowest wake-ups of each kernel that are shown."""
Found = TypeVar("Found", bound=msgspec.Struct)
"""What an explanation found: of counts, of shared lines, or of a timed run."""


class ExplainOptions(msgspec.Struct, frozen=True, kw_only=True):
    targets: tuple[str, ...]
    benchmark: str
    metric: str
    contender: str
    blocks: int
    frequency: int
    limit: int
    annotate: str | None
    cost: bool
    sharing: bool
    lines: bool
    scheduler: bool
    form: str
    output: Path | None
    plot: Path | None
    offline: bool
    quiet: bool


@click.command("explain", short_help="Show which kernel functions cause a difference.")
@contender_arguments("targets", "RUN | BASELINE CONTENDER")
@benchmark_option
@option("--metric", "Of a timed RUN: the metric to explain.  [default: the primary one]", metavar="NAME", default="")
@option(
    "--contender", "Contender of RUN to compare with the baseline.  [default: the second]", metavar="NAME", default=""
)
@option("--blocks", "Of a timed RUN: blocks of profiled trials.", click.IntRange(2, 1000), default=8)
@option("--frequency", "Of a timed RUN: samples per second and CPU.", click.IntRange(10, 20_000), "HZ", default=499)
@limit_option(25)
@option("--annotate", "Show the instructions of this function in both kernels instead.", metavar="FUNCTION")
@option(
    "--cost",
    "Count cache lines touched, branches, locked and serialising instructions, by function, instead.",
    is_flag=True,
)
@option(
    "--sharing",
    "Name the cache lines that two CPUs share in the operation (OPERATION/threads/common), instead.",
    is_flag=True,
)
@option(
    "--lines",
    "Name all cache lines that the operation touches on two CPUs, by object and field, instead.",
    is_flag=True,
)
@option(
    "--scheduler",
    "Of a RUN with schedstat = true: show what changed in the scheduler's counters, by step and level of domains, instead.",
    is_flag=True,
)
@format_option("text", "json")
@output_option
@plot_option("the differential flame graph")
@offline_option
@quiet_option
def command(**given: Any) -> None:
    """Show which kernel functions a difference comes from: exact counts of instructions, or a profile of a timed run.

    With BASELINE and CONTENDER, which are kernels, or a RUN with --suite exact (or another study on the machine
    icount), the instructions of an operation are counted function by function on the deterministic machine.

    Of a RUN on exact CPUs (--suite exact-scheduling): its slowest wake-ups, and which tasks had the CPU until then.

    For any other RUN, extra trials are made in randomised blocks, with `perf record` around the benchmark. The result is
    the CPU time per unit of work by function, with intervals of the differences. These trials are stored in RUN/explain;
    they do not enter the verdict. After an interruption, the same command continues.

    With --scheduler nothing is booted: the run has the counters, if its steps have schedstat = true.

    \b
    kduel explain debian:6.1 debian:6.12 --benchmark pipe
    kduel explain RUN --benchmark null-call --plot null-call.svg
    kduel explain RUN --benchmark perf-sched-pipe --blocks 12
    kduel explain RUN --scheduler
    kduel explain debian:6.1 debian:6.12 --sharing \\
        --benchmark fault-anonymous/threads
    """
    from kduel.run.profile.carry_out import is_timed

    options = ExplainOptions(**given)
    targets, annotate, cost = options.targets, options.annotate, options.cost
    if options.scheduler:
        show_counters(options)
        return
    if not options.benchmark:
        raise click.UsageError("Missing option '--benchmark' / '-b'.")
    if len(targets) == 1 and Path(targets[0]).is_dir() and is_timed(Path(targets[0])):
        if annotate is not None or cost:
            option, word = ("--cost", "--cost") if cost else ("--annotate", "--annotate FUNCTION")
            raise InputError(
                f"{option} shows exact counts, and a timed run has none",
                f"Name the kernels instead of the run: kduel explain BASELINE CONTENDER --benchmark NAME {word}.",
            )
        explain_timed_run(Path(targets[0]), options)
        return
    if options.metric:
        raise InputError("--metric belongs to a timed RUN; exact counts have only instructions", "Leave it out.")
    for option in ("blocks", "frequency"):
        if option in options_on_command_line():
            raise InputError(
                f"--{option} belongs to a timed RUN; exact counts need one trial of each kernel", "Leave it out."
            )
    if annotate is not None and (options.form != "text" or options.plot is not None):
        raise InputError(
            "--annotate prints a function's instructions as text, and goes neither with --format json nor with --plot",
            "Leave the other out.",
        )
    if options.sharing or options.lines:
        if cost or annotate is not None or (options.sharing and options.lines):
            raise InputError("--sharing, --lines, --cost and --annotate do not go together", "Leave the others out.")
        if options.lines and options.plot is not None:
            raise InputError("--lines has no plot", "Leave out --plot, or show --sharing.")
        explain_shared_lines(options)
        return
    from kduel.explain.cost import cost_text
    from kduel.explain.flame import as_svg
    from kduel.explain.show import annotation_text, as_text, next_command
    from kduel.run.exact import subject
    from kduel.run.exact.measure import (
        annotate_function,
        are_counted,
        cost_json,
        cost_rows,
        count_arms,
        explain_step,
        is_boot,
        step_index,
    )
    from kduel.run.exact.subject import BOOT
    from kduel.run.exact.waits import explain_waits
    from kduel.store.documents import document_bytes

    if cost and (options.benchmark == BOOT or annotate is not None or options.plot is not None):
        raise InputError(
            "--cost is for operations, not for the boot, and goes neither with --annotate nor with --plot",
            "For example: kduel explain A B -b pipe --cost.",
        )
    progress = Terminal(options.quiet)
    cache = Cache(progress=progress)
    chosen = subject.find_subject(
        list(targets), options.benchmark, options.contender, cache=cache, progress=progress, offline=options.offline
    )
    if chosen.ready.study.machine_settings.get("scheduling"):
        if cost or annotate is not None:
            raise InputError("with scheduling = true no instructions are counted", "Leave out --cost and --annotate.")
        waits = explain_waits(chosen, options.benchmark, progress=progress)
        most = options.limit if "limit" in options_on_command_line() else WAITS
        emit_found(waits, waits_text, waits_svg, replace(options, limit=most))
        return
    index = step_index(chosen.ready, options.benchmark)
    boot = is_boot(chosen.ready, index)
    count = partial(
        count_arms, chosen.ready, chosen.names, cache=cache, progress=progress, seed=chosen.seed, boot=boot
    )
    if annotate is not None and are_counted(chosen.ready, chosen.names, cache=cache, seed=chosen.seed, boot=boot):
        # What is executed is known without the instructions' texts, which take another trial of each kernel.
        executed = [row.function for row in explain_step(chosen.ready, count(), index).rows]
        if annotate not in executed:
            raise not_executed_error(annotate, options.benchmark, executed)
    counted = count(disassemble=cost or annotate is not None, lines=cost)
    chosen.check(counted, index)
    if annotate is not None:
        label = chosen.ready.study.steps[index].label
        each = [(arm.name, *annotate_function(arm, index, label, annotate, boot=boot)) for arm in counted]
        if not any(instructions for _, _, instructions in each):
            executed = [row.function for row in explain_step(chosen.ready, counted, index).rows]
            found_as = find_in_modules(annotate, executed)
            if not found_as:
                raise not_executed_error(annotate, options.benchmark, executed)
            annotate = found_as
            each = [(arm.name, *annotate_function(arm, index, label, annotate, boot=boot)) for arm in counted]
        text = "\n".join(
            annotation_text(name, annotate, count, instructions, boot=boot) for name, count, instructions in each
        )
        emit(printable(text), options.output)
        return
    found = explain_step(chosen.ready, counted, index)
    found.blocks = chosen.blocks(index)
    if cost:
        rows = cost_rows(chosen.ready, counted, index)
        text = cost_text(found, rows, options.limit, output_width(options.output))
        emit(cost_json(found, rows).decode() if options.form == "json" else printable(text), options.output)
        return
    not_kept = chosen.keep([found.benchmark, found.contender], partial(as_svg, found), partial(document_bytes, found))
    emit_found(found, as_text, as_svg, options)
    if options.form != "json" and (step := next_command(found, targets, options.contender)):
        progress.info(f"The instructions of the largest difference: {step}")
    if not_kept:
        progress.warn(not_kept)


def show_counters(options: ExplainOptions) -> None:
    """Show the scheduler's counters that a run kept. Raises InputError where there are none."""
    from kduel.benchmarks.support.schedstat import GROUP
    from kduel.judge.evaluate import judge_run
    from kduel.report.content.scheduling import counter_tables, counters_text

    targets = options.targets
    for given in options_on_command_line():
        if given in ("metric", "blocks", "frequency", "limit", "annotate", "cost", "sharing", "lines", "plot"):
            raise InputError(f"--scheduler does not go with --{given}", "Leave the other out.")
    if len(targets) != 1:
        raise InputError("--scheduler shows what one run has counted", "Name a RUN: kduel explain RUN --scheduler.")
    results = judge_run(Path(targets[0]))
    tables = counter_tables(results)
    if not tables:
        raise InputError(
            f"no step of {targets[0]} has the scheduler's counters",
            "Run it with schedstat = true in [[benchmark]], or -b NAME:schedstat=true; kernels need CONFIG_SCHEDSTATS.",
        )
    for wanted, what in ((options.benchmark, "step"), (options.contender, "contender")):
        known = list(dict.fromkeys(getattr(table, what) for table in tables))
        if wanted and wanted not in known:
            raise unknown_name(f"no {what} {wanted!r} has the scheduler's counters", wanted, known)
        tables = [table for table in tables if wanted in ("", getattr(table, what))]
    if options.form == "json":
        shown = {(table.step, table.contender) for table in tables}
        emit_json(
            [one for one in results.metrics if one.group == GROUP and (one.benchmark, one.contender) in shown],
            options.output,
        )
    else:
        emit(printable(counters_text(tables)), options.output)


def explain_shared_lines(options: ExplainOptions) -> None:
    """Name the cache lines that an operation shares in the kernels, or all that it touches."""
    from kduel.explain.sharing.show import as_svg, as_text
    from kduel.run.exact import subject
    from kduel.run.exact.sharing import explain_sharing, sharing_study

    progress = Terminal(options.quiet)
    cache = Cache(progress=progress)
    chosen = subject.find_subject(
        list(options.targets), options.benchmark, options.contender, cache=cache, progress=progress,
        offline=options.offline, without_run=sharing_study,
    )  # fmt: skip
    names = chosen.names if options.contender else chosen.ready.study.names
    found = explain_sharing(chosen, names, options.benchmark, cache=cache, progress=progress)
    words = [found.benchmark, names[-1], KEPT_AS]
    not_kept = chosen.keep(words, partial(as_svg, found), partial(msgspec.json.encode, found))
    emit_found(found, touched_text if options.lines else as_text, as_svg, options)
    if not_kept:
        progress.warn(not_kept)


def emit_found(
    found: Found, as_text: Callable[[Found, int, int], str], as_svg: Callable[[Found], str], options: ExplainOptions
) -> None:
    """Write an explanation: its plot where one is asked for, and the text or JSON."""
    if options.plot is not None:
        write_plot(options.plot, as_svg(found))
    if options.form == "json":
        emit_json(found, options.output)
    else:
        emit(printable(as_text(found, options.limit, output_width(options.output))), options.output)


def find_in_modules(function: str, executed: list[str]) -> str:
    """The one module's function of this name, with its module as the table shows it; empty where none or several are."""
    named = {name for name in executed if name.startswith(f"{function} [")}
    return named.pop() if len(named) == 1 else ""


def not_executed_error(function: str, benchmark: str, executed: list[str]) -> InputError:
    """The error for a function that neither kernel executes, with the ones whose names are like it."""
    near = [
        name
        for name in get_close_matches(function, list(dict.fromkeys(executed)), 5, 0.5)
        if not name.startswith("(")
    ]
    return InputError(
        f"{benchmark} executes no function {function!r} in either kernel; an inlined function counts as part of its caller",
        (f"Names like it: {', '.join(near)}. " if near else "")
        + "`--limit 0` without --annotate lists all functions.",
    )


def explain_timed_run(path: Path, options: ExplainOptions) -> None:
    """Profile two contenders of a timed run."""
    from kduel.report.content.profiled import as_svg, as_text
    from kduel.run.profile.carry_out import carry_out, read_request

    progress = Terminal(options.quiet)
    what = read_request(
        path, options.benchmark, options.metric, options.contender, blocks=options.blocks, frequency=options.frequency
    )
    progress.info(
        f"{what.step.label}, {what.metric.name}: {' against '.join(what.names)}, {plural(options.blocks, 'block')} of profiled trials, "
        f"in {what.folder}"
    )
    show = partial(show_trials, progress)
    found = carry_out(
        what,
        cache=Cache(progress=progress),
        progress=progress,
        shown=lambda study, parallel: show(study, what.lock.machine.kind, parallel),
        offline=options.offline,
    )
    emit_found(found, as_text, as_svg, options)
