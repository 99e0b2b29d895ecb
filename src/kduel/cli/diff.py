"""`kduel diff`: compares runs made at different times, and lists what else changed between them."""

from pathlib import Path
from typing import get_args

import click

from kduel.cli import completions
from kduel.cli.options import NamedPath, Word, delta_option, format_option, option, output_option
from kduel.cli.output import emit, emit_json

FORMATS = ("text", "markdown", "html", "json")


@click.command("diff")
@click.argument(
    "runs",
    nargs=-1,
    required=True,
    type=Word(),
    metavar="RUN|RUN:CONTENDER...",
    shell_complete=completions.complete_runs,
)
@format_option(*FORMATS)
@output_option
@option(
    "--against", "Compare each column with the first, with the previous one, with both and that of its own contender, or all pairs.",
    ["both", "first", "previous", "all"], default="both",
)  # fmt: skip
@option("--full", "Show everything; without it text says what changed most.", is_flag=True)
@option("--claims", "Test the claims in this TOML file.", NamedPath(), "FILE")
@delta_option("the run's own within a run, 1 between runs")
def command(
    runs: tuple[str, ...],
    form: str,
    output: Path | None,
    against: str,
    full: bool,
    claims: Path | None,
    delta: float | None,
) -> None:
    """Compare runs made at different times, one column for each contender.

    The largest changes come first, then what else differs between them (kernels, packages, conditions, hardware). A change is
    attributed to one thing only if nothing else differs. Pairs of columns that are not compared are named at the end.

    A file of claims has [[claim]] tables: says, and metric = "benchmark/metric" with before and after (columns) and one or more
    of printed = "-22.5" or "30..40" (per cent), side = "lower" or "higher", same = true, spread = "higher", cause = "kernel". Or
    metric and best = "COLUMN"; metric, after and exceeds = "benchmark/metric"; or untestable or refuted = "why". Each is then
    supported, not supported, contradicted or not testable by the data; studies/published has such files.
    """
    from kduel.analysis.campaigns.claims import judge_claims, read_claims
    from kduel.analysis.campaigns.columns import columns
    from kduel.analysis.campaigns.compare import Which, compare
    from kduel.report.campaigns import page, wording

    which: Which = next(one for one in get_args(Which) if one == against)
    found = columns(runs)
    result = compare(found, delta=delta, which=which)
    judged = judge_claims(read_claims(claims), found, delta=delta) if claims else []
    if form == "json":
        emit_json({"campaigns": result, "claims": judged}, output)
    else:
        brief = form == "text" and not full
        told = page.FORMATS[form](wording.page_of(result, judged, brief=brief))
        emit(f"{told}\nWhat else differs, all results and their intervals: --full\n" if brief else told, output)
