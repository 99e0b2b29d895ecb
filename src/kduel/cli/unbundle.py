"""`kduel bundle --unpack`: put what `kduel bundle` wrote into the cache."""

from pathlib import Path

import click

from kduel.cli.options import Word, option, quiet_option
from kduel.cli.terminal import Terminal
from kduel.core.cache import Cache
from kduel.core.cache_bundle import unpack
from kduel.core.temporary import temporary_directory
from kduel.kernels.files.listed import MOST
from kduel.kernels.packages.fetch import download


@click.command("unbundle")
@click.argument("source", type=Word(), metavar="FILE|ADDRESS")
@option("--sha256", "Take no other content: the SHA-256 that `kduel bundle` printed.", metavar="DIGEST", default="")
@quiet_option
def command(source: str, sha256: str, quiet: bool) -> None:
    """Put the kernels, the guest root and the programs of a bundle into the cache.

    Each file is checked against the bundle's checksums. They show a damaged copy, not who made the bundle: what it holds is
    booted, so take it from someone you trust, or give the digest that you got from them.
    """

    terminal = Terminal(quiet)
    cache = Cache(progress=terminal)
    with temporary_directory(cache.root) as place:
        fetched = source.startswith(("http://", "https://"))
        file = download(source, place / "bundle.tar", terminal, most=MOST) if fetched else Path(source)
        with terminal.task(f"reading {source}", file.stat().st_size if file.is_file() else None) as task:
            done = unpack(file, cache, task.advance, sha256=sha256)
    new = sum(fresh for _, _, fresh in done)
    click.echo(f"{len(done)} entries, {new} of them new, in {cache.root}")
