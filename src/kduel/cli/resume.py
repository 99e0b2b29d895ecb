"""`kduel resume`: goes on with an interrupted run, from what its directory says."""

from __future__ import annotations

from pathlib import Path

import click

from kduel.cli.execute import carry_out


@click.command("resume")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--offline", is_flag=True, help="Use nothing but the cache.")
@click.option("--fail-on", type=click.Choice(["slower"]), help="End with 10 when a primary metric is slower.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing but the verdict.")
def command(run: Path, offline: bool, fail_on: str | None, quiet: bool) -> None:
    """Go on with the interrupted RUN (a directory). Its plan, looks and verdict are those of an uninterrupted run."""
    from kduel.core.errors import InputError
    from kduel.store.rundir import RunDir, study_of

    opened = RunDir.open(run)
    if opened.imported:
        raise InputError(f"{run} was imported; there is nothing to go on with", "`kduel report` writes it up.")
    lock = opened.lock()
    text = (run / "study.toml").read_text("utf-8")
    carry_out(
        study_of(lock, text),
        out=run,
        origin=lock.origin,
        seed=lock.seed,
        seed_given=True,
        offline=offline,
        fail_on=fail_on,
        quiet=quiet,
    )
