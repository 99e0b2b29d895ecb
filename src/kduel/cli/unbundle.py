"""`kduel unbundle`: put what `kduel bundle` wrote into the cache."""

from __future__ import annotations

from pathlib import Path

import click

from kduel.cli.options import quiet_option


@click.command("unbundle")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@quiet_option
def command(file: Path, quiet: bool) -> None:
    """Put the kernels, the guest root and the programs of a bundle into the cache.

    Each file is checked against the bundle's checksums. They show a damaged copy, not who made the bundle: what it holds is
    booted, so take it from someone you trust.
    """
    from kduel.cli.terminal import Terminal
    from kduel.core.cache import Cache
    from kduel.core.cache_bundle import unpack

    terminal = Terminal(quiet)
    cache = Cache(progress=terminal)
    with terminal.task(f"reading {file}", file.stat().st_size if file.is_file() else None) as task:
        done = unpack(file, cache, task.advance)
    new = sum(fresh for _, _, fresh in done)
    click.echo(f"{len(done)} entries, {new} of them new, in {cache.root}")
