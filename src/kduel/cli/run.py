"""`kduel run`: from two names, or a study file, to a verdict and a report."""

from __future__ import annotations

import secrets
from pathlib import Path

import click

from kduel.cli.execute import carry_out
from kduel.core.errors import InputError


@click.command("run")
@click.argument("contenders", nargs=-1, required=True, metavar="BASELINE CONTENDER... | STUDY.toml")
@click.option("--suite", default="quick", show_default=True, help="The benchmarks and their protocol.")
@click.option("--blocks", type=click.IntRange(1), help="Exactly so many blocks, one look at the end.")
@click.option("--max-blocks", type=click.IntRange(1), help="Stop when decided, at the latest after so many blocks.")
@click.option(
    "--machine", default="", metavar="SPEC", help="KIND[:key=value,...], e.g. qemu:cpus=4,memory=2G; icount."
)
@click.option("--out", type=click.Path(path_type=Path), help="The run's directory [default: kduel-runs/NAME].")
@click.option("--seed", type=click.IntRange(0), help="Of the random order [default: drawn, and stored].")
@click.option("--aa", type=click.IntRange(2), help="Run one kernel under so many names: nothing may come out.")
@click.option("--delta", type=click.FloatRange(0, 100, min_open=True), help="The smallest effect that matters, in %.")
@click.option("--layouts", type=click.IntRange(1), help="Machine icount: repeat with so many address layouts.")
@click.option(
    "--single", is_flag=True, help="Machine icount: count each operation once, not under several conditions."
)
@click.option("--offline", is_flag=True, help="Use nothing but the cache.")
@click.option("--fail-on", type=click.Choice(["slower"]), help="End with 10 when a primary metric is slower.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing but the verdict.")
def command(
    contenders: tuple[str, ...],
    suite: str,
    blocks: int | None,
    max_blocks: int | None,
    machine: str,
    out: Path | None,
    seed: int | None,
    aa: int | None,
    delta: float | None,
    layouts: int | None,
    single: bool,
    offline: bool,
    fail_on: str | None,
    quiet: bool,
) -> None:
    """Boot each contender many times in random order, run the same benchmarks, and say which is faster, by how much,
    and whether that is sure.

    A contender is a kernel: debian:6.12, debian:6.12-rt, debian:7-cloud, tree:DIR, host, a vmlinuz, .deb files. The
    first one is the baseline. A study file says more: command lines, schedulers, benchmarks, machines; `kduel init`
    writes one.

    \b
    kduel run debian:6.1 debian:6.12
    kduel run tree:linux.orig tree:linux --suite exact
    kduel run debian:6.1 debian:6.12 --suite generations --out study
    kduel run --aa 2 debian:6.12
    kduel run STUDY.toml --machine qemu:accel=tcg
    """
    from kduel.study.load import assemble, contender_tables, parse_study, read_study, suite_text

    if blocks is not None and max_blocks is not None:
        raise InputError(
            "--blocks and --max-blocks exclude each other", "Give --blocks for a fixed number of blocks."
        )
    names = list(contenders)
    unspeakable = [name for name in names if name.encode(errors="ignore").decode() != name]
    if unspeakable:
        raise InputError(
            f"{unspeakable[0]!r} is not UTF-8, and a run must be able to write it down", "Rename it, or link to it."
        )
    is_file = len(names) == 1 and (names[0].endswith(".toml"))
    if is_file and aa is None:
        origin = names[0]
        text, file = read_study(Path(origin))
    else:
        if aa is not None:
            if len(names) != 1 or is_file:
                raise InputError("--aa takes one kernel", "For example: kduel run --aa 2 debian:6.12.")
        elif len(names) < 2:
            raise InputError(
                f"{names[0]} alone is no duel", "Name a second kernel, a study file (*.toml), or give --aa 2."
            )
        origin = suite
        text = suite_text(suite) + contender_tables(names if aa is None else names * aa, aa is not None)
        file = parse_study(text, f"the suite {suite}")
    if layouts is not None:
        machine = f"{machine or 'icount'}{',' if ':' in machine else ':'}layouts={layouts}"
        # A block each.
        blocks = layouts if blocks is None and max_blocks is None else blocks
    study = assemble(
        file,
        text,
        origin,
        machine=machine,
        fixed_blocks=blocks,
        max_blocks=max_blocks,
        delta=delta,
        single=single,
    )
    carry_out(
        study,
        out=out,
        origin=origin,
        seed=seed if seed is not None else secrets.randbelow(2**31),
        seed_given=seed is not None,
        offline=offline,
        fail_on=fail_on,
        quiet=quiet,
    )
