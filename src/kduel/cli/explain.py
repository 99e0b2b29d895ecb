"""`kduel explain`: which kernel functions an exact difference comes from."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("explain", short_help="Say which kernel functions a difference comes from.")
@click.argument("targets", metavar="RUN | BASELINE CONTENDER", nargs=-1, required=True)
@click.option(
    "--benchmark",
    "-b",
    required=True,
    metavar="NAME",
    help="A kbench operation, such as pipe or null-call; a wrong one lists all.",
)
@click.option(
    "--contender", metavar="NAME", help="RUN: which one to compare with the baseline [default: the second]."
)
@click.option("--limit", type=click.IntRange(0), default=25, show_default=True, help="Rows of the table; 0 for all.")
@click.option("--annotate", metavar="FUNCTION", help="Show this function's instructions instead, in both kernels.")
@click.option(
    "--svg", type=click.Path(path_type=Path, dir_okay=False), help="Write the differential flame graph there."
)
@click.option("--json", "as_json", type=click.Path(path_type=Path, dir_okay=False), help="Write every count there.")
@click.option("--offline", is_flag=True, help="Use nothing but the cache.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing but the result.")
def command(
    targets: tuple[str, ...],
    benchmark: str,
    contender: str | None,
    limit: int,
    annotate: str | None,
    svg: Path | None,
    as_json: Path | None,
    offline: bool,
    quiet: bool,
) -> None:
    """Count, function by function, what an operation costs in two kernels, on the exact machine.

    RUN is the directory of a run with --suite exact (or another study on the machine icount); its very trials are
    repeated with a counting plug-in, and the picture is kept in RUN/explain for the report. Two kernels are compared
    without a run.

    \b
    kduel explain debian:6.1 debian:6.12 --benchmark pipe
    kduel explain RUN --benchmark null-call --svg null-call.svg
    kduel explain RUN --benchmark pipe --annotate update_load_avg
    """
    from kduel.cli.terminal import Terminal
    from kduel.core.cache import Cache
    from kduel.explain.show import annotated, as_text
    from kduel.run.exact import subject
    from kduel.run.exact.measure import annotation, count_arms, explanation, step_index

    cache, progress = Cache(), Terminal(quiet)
    chosen = subject.find(list(targets), benchmark, contender or "", cache=cache, progress=progress, offline=offline)
    index = step_index(chosen.ready, benchmark)
    counted = count_arms(chosen.ready, chosen.names, cache=cache, progress=progress, disassemble=annotate is not None)
    chosen.check(counted, index)
    if annotate is not None:
        label = chosen.ready.study.steps[index].label
        for arm in counted:
            click.echo(annotated(arm.name, annotate, *annotation(arm, index, label, annotate)))
        return
    found = explanation(chosen.ready, counted, index)
    click.echo(as_text(found, limit), nl=False)
    for path in chosen.keep(found, svg=svg, json=as_json):
        click.echo(f"Written: {path}")
