"""`kduel explain`: which kernel functions an exact difference comes from."""

from __future__ import annotations

from pathlib import Path

import click

from kduel.cli.options import (
    benchmark_option,
    contender_arguments,
    format_option,
    limit_option,
    offline_option,
    output_option,
    plot_option,
    quiet_option,
)
from kduel.cli.output import emit, write_plot
from kduel.core.text import printable


@click.command("explain", short_help="Say which kernel functions a difference comes from.")
@contender_arguments("targets", "RUN | BASELINE CONTENDER")
@benchmark_option
@click.option(
    "--contender", metavar="NAME", help="Contender of RUN to compare with the baseline.  [default: the second]"
)
@limit_option(25)
@click.option(
    "--annotate", metavar="FUNCTION", help="Show the instructions of this function in both kernels instead."
)
@click.option(
    "--cost",
    is_flag=True,
    help="Count cache lines touched, branches, locked and serialising instructions, by function, instead.",
)
@format_option("text", "json")
@output_option
@plot_option("the differential flame graph")
@offline_option
@quiet_option
def command(
    targets: tuple[str, ...],
    benchmark: str,
    contender: str | None,
    limit: int,
    annotate: str | None,
    cost: bool,
    form: str,
    output: Path | None,
    plot: Path | None,
    offline: bool,
    quiet: bool,
) -> None:
    """Count the instructions of an operation in two kernels, function by function, on the deterministic machine.

    RUN is the directory of a run with --suite exact (or another study on the machine icount); its trials are repeated
    with a counting plug-in, and the flame graph is stored in RUN/explain for the report. With BASELINE and CONTENDER,
    which are kernels, no run is needed.

    \b
    kduel explain debian:6.1 debian:6.12 --benchmark pipe
    kduel explain RUN --benchmark null-call --plot null-call.svg
    kduel explain RUN --benchmark pipe --annotate update_load_avg
    """
    from kduel.cli.terminal import Terminal
    from kduel.core.cache import Cache
    from kduel.core.errors import InputError
    from kduel.explain.cost import cost_text
    from kduel.explain.flame import as_svg
    from kduel.explain.show import annotated, as_text, next_command
    from kduel.run.exact import subject
    from kduel.run.exact.measure import (
        annotation,
        as_json,
        cost_json,
        cost_rows,
        count_arms,
        explanation,
        is_boot,
        step_index,
    )
    from kduel.run.exact.subject import BOOT

    if cost and (benchmark == BOOT or annotate is not None or plot is not None):
        raise InputError(
            "--cost is for operations, not for the boot, and goes neither with --annotate nor with --plot",
            "For example: kduel explain A B -b pipe --cost.",
        )
    progress = Terminal(quiet)
    cache = Cache(progress=progress)
    chosen = subject.find(list(targets), benchmark, contender or "", cache=cache, progress=progress, offline=offline)
    index = step_index(chosen.ready, benchmark)
    boot = is_boot(chosen.ready, index)
    counted = count_arms(
        chosen.ready,
        chosen.names,
        cache=cache,
        progress=progress,
        seed=chosen.seed,
        disassemble=cost or annotate is not None,
        lines=cost,
        boot=boot,
    )
    chosen.check(counted, index)
    if annotate is not None:
        label = chosen.ready.study.steps[index].label
        for arm in counted:
            click.echo(printable(annotated(arm.name, annotate, *annotation(arm, index, label, annotate, boot=boot))))
        return
    found = explanation(chosen.ready, counted, index)
    if cost:
        rows = cost_rows(chosen.ready, counted, index)
        emit(cost_json(found, rows).decode() if form == "json" else printable(cost_text(found, rows, limit)), output)
        return
    chosen.keep(found)
    if plot is not None:
        write_plot(plot, as_svg(found))
    if form == "json":
        emit(as_json(found).decode(), output)
    else:
        emit(printable(as_text(found, limit)), output)
        if step := next_command(found, targets, contender or ""):
            progress.info(f"The instructions of the largest difference: {step}")
