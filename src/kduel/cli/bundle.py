"""`kduel bundle`: what a run needs from the network, in one file."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kduel.cli import options
from kduel.cli.named_study import is_study_file, read_named_study
from kduel.cli.output import open_output
from kduel.cli.terminal import Terminal
from kduel.core.cache import Cache
from kduel.core.cache_bundle import contents_of, digest_of, pack, unpack
from kduel.core.errors import InputError
from kduel.core.temporary import temporary_directory
from kduel.kernels.files.listed import MOST
from kduel.kernels.packages.fetch import download

if TYPE_CHECKING:
    from kduel.machines import Means


@click.command("bundle")
@options.contender_arguments("contenders", "CONTENDER... | STUDY.toml", required=False)
@options.suite_option
@options.plugin_option("--machine", "machines", options.machine_help, options.Word(), "SPEC", default="")
@options.output_path_option(
    "--output -o", "File to write.  [default: kduel-bundle-DIGEST.tar]", options.NamedPath(dir_okay=False), "FILE"
)
@options.option("--root", "Write the guest's root alone, for hosts without apt and mmdebstrap.", is_flag=True)
@options.offline_option
@options.quiet_option
@options.mode_option("--unpack", "Put the content of a bundle into the cache.")
def command(
    contenders: tuple[str, ...],
    suite: str | None,
    machine: str,
    output: Path | None,
    root: bool,
    offline: bool,
    quiet: bool,
) -> None:
    """Write the kernels, the guest root and the programs that a run needs into one file, for machines without network.

    They are downloaded or built first, unless the cache has them. On the other machine `kduel bundle --unpack FILE` puts them
    into its cache, and `kduel run ... --offline` measures. KDuel itself and QEMU must be installed there. The default name
    of the file follows from its content.

    \b
    kduel bundle debian:6.1 debian:6.12 --output kernels.tar
    kduel bundle --unpack kernels.tar
    kduel run debian:6.1 debian:6.12 --offline
    kduel bundle --root
    """
    from kduel.guest.busybox import busybox
    from kduel.guest.root import root_image
    from kduel.machines import Means

    if root == bool(contenders):
        raise InputError(
            "--root takes no contenders" if root else "there is nothing to bundle",
            "Give contenders or a study file; --root alone for the guest's root alone.",
        )
    terminal = Terminal(quiet)
    cache = Cache(progress=terminal)
    means = Means(cache=cache, progress=terminal, offline=offline)
    if root:
        root_image(**means)
        busybox("x86_64", **means)
    else:
        get_all(contenders, suite, machine, means)
    contents = contents_of(cache, cache.used_entries)
    path = output or Path(f"kduel-bundle-{digest_of(contents)[:12]}.tar")
    with open_output(path) as stream, terminal.task(f"writing {path}", contents.size) as task:
        pack(cache, contents, stream, task.advance)
    click.echo(
        f"{path}: {len(contents.entries)} entries, {contents.size / 1e6:.0f} MB, SHA-256 {digest_of(contents)}"
    )


def get_all(contenders: tuple[str, ...], suite: str | None, machine: str, means: Means) -> None:
    """Get what a run of these contenders needs into the cache. Raises what `kduel run` raises."""
    from kduel.run.prepare import get_kernels, get_machine, read_study
    from kduel.study.first_part import SUITE, first_part
    from kduel.study.load import assemble

    # One kernel is enough here: a run of it against itself needs nothing else.
    single = 2 if len(contenders) == 1 and not is_study_file(contenders) else None
    text, file, origin = read_named_study(contenders, suite, single, machine)
    study = assemble(file, text, origin, machine=machine)
    chosen = get_kernels(read_study(study, origin), **means)
    parts = [chosen]
    with suppress(InputError):  # A study that can have no exact part needs nothing for one.
        parts.append(chosen.for_part(first_part(study), SUITE))
    for each in parts:
        get_machine(each, **means).machine.close()


@click.command("unbundle")
@click.argument("source", type=options.Word(), metavar="FILE|ADDRESS")
@options.option(
    "--sha256", "Take no other content: the SHA-256 that `kduel bundle` printed.", metavar="DIGEST", default=""
)
@options.quiet_option
def unbundle(source: str, sha256: str, quiet: bool) -> None:
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
