"""`kduel diff`: runs made at different times beside each other, and what else changed between them."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

FORMATS = ("text", "markdown", "html", "json")


@click.command("diff")
@click.argument("runs", nargs=-1, required=True, metavar="RUN|RUN:CONTENDER...")
@click.option("--format", "-f", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="A file; else standard output.")
@click.option(
    "--against",
    type=click.Choice(["both", "first", "previous", "all"]),
    default="both",
    show_default=True,
    help="Compare each column with the first, with the one before it, with both, or all with all.",
)
@click.option("--claims", type=click.Path(path_type=Path), help="TOML with claims to be held against the data.")
@click.option(
    "--delta", type=float, default=1.0, show_default=True, help="The smallest effect of interest, in per cent."
)
def command(
    runs: tuple[str, ...], form: str, output: Path | None, against: str, claims: Path | None, delta: float
) -> None:
    """Put runs made at different times beside each other, one column for each contender.

    What else differs between them (kernels, packages, conditions, hardware) comes first; a change is put down to
    something only where that is the one thing that differs.
    """
    import msgspec

    from kduel.analysis.campaigns.claims import judge_claims, read_claims
    from kduel.analysis.campaigns.columns import columns
    from kduel.analysis.campaigns.compare import Which, compare
    from kduel.report.campaigns import page
    from kduel.report.campaigns import wording as telling

    which: Which = next(one for one in get_args(Which) if one == against)
    found = columns(runs)
    result = compare(found, delta=delta, which=which)
    judged = judge_claims(read_claims(claims), found, delta=delta) if claims else []
    if form == "json":
        document = {"campaigns": result, "claims": judged}
        written = msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"
    else:
        written = getattr(page, form)(telling.page_of(result, judged))
    deliver(written, output)


def deliver(written: str, output: Path | None) -> None:
    """To standard output, or whole into a file. Raises HostError."""
    if output is None:
        click.echo(written, nl=False)
        return
    from kduel.core.errors import HostError
    from kduel.store.rundir import write_whole

    try:
        write_whole(output, written.encode("utf-8", errors="backslashreplace"))
    except OSError as error:
        raise HostError(
            f"cannot write {output}: {error.strerror or error}", "Name another place with --output."
        ) from error
    click.echo(f"Written: {output}")
