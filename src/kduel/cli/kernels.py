"""`kduel list kernels`: which kernels can be had, and which are in the cache."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from kduel.cli.options import Word, command_listing, format_option, offline_option
from kduel.cli.output import emit_json

if TYPE_CHECKING:
    from kduel.kernels import Available


@click.command("kernels", cls=command_listing("kernels", "A kernel is given as", forms=True))
@click.argument("words", nargs=-1, type=Word(), metavar="[WORD...]")
@offline_option
@format_option("text", "json")
def command(words: tuple[str, ...], offline: bool, form: str) -> None:
    """List available and cached kernels, the newest of each series.

    WORDs select the lines that contain all of them, for example: kduel list kernels 6.12 cloud.

    \b
    For example:
      debian:6.12         the newest 6.12.x in any of Debian's suites, as
                          linux-image-amd64 installs it
      debian:6.12-cloud   the same for virtual machines: fewer drivers, a third
                          of the download, faster boot
      debian:6.12-rt      with PREEMPT_RT, otherwise as debian:6.12
      debian:7, debian:latest, debian:6.1.192-2,
      debian:6.1.0-56-cloud-amd64 (as uname -r says)
      debian:trixie       what that suite installs by default; -cloud and -rt
                          as above
      fedora:42           the newest of a release; fedora:42-6.14 of a version
                          (docs/distributions.md)
      debian-source:6.1,arch=arm64,config=tinyconfig+guest
                          for arch= and config= see docs/embedded.md

    `kduel run` takes settings with a kernel: debian:6.12,cmdline=mitigations=off; also sysctl=KEY=VALUE, scheduler=,
    policy= and, for a PATH or tree:DIR, modules=DIR.

    debian:6.12-generic is debian:6.12 in full. -arm64, -riscv64 or -ppc64el at the end names another architecture.
    Compare one flavour with itself: generic and cloud differ in drivers and in defaults such as the I/O scheduler.
    Debian's mirror is that of the host, or KDUEL_DEBIAN_MIRROR. The package lists are refreshed daily.
    """
    from kduel.cli.terminal import Terminal
    from kduel.core.cache import Cache
    from kduel.core.errors import InputError
    from kduel.core.plugins import plugins
    from kduel.kernels.apt.versions import version_key

    progress = Terminal()
    cache = Cache(progress=progress)
    lines: list[Available] = []
    for source in plugins("kernels").values():
        lines += source.available(cache=cache, progress=progress, offline=offline)
    lines = [line for line in lines if all(has_word(line, word) for word in words)]
    lines.sort(key=lambda line: (version_key(line.version), line.spec), reverse=True)
    if words and not lines:
        if unlisted := next((word for word in words if is_unlisted(word)), ""):
            raise InputError(
                f"{unlisted} is a kernel that `kduel run` takes, and only its archive knows which: kernels of this source are listed "
                "once they are in the cache",
                f"Try it: kduel run {unlisted} debian:6.12 --dry-run. docs/distributions.md tells what the releases have.",
            )
        raise InputError(
            f"no kernel{' in the cache' if offline else ''} has {' and '.join(words)}",
            "`kduel list kernels` without a word lists all.",
        )
    if form == "json":
        kernels = [
            {"spec": line.spec, "version": line.version, "where": line.where, "cached": line.cached} for line in lines
        ]
        emit_json({"schema": 1, "kernels": kernels})
    else:
        click.echo(format_table(lines) if lines else "the cache has no kernels")


def is_unlisted(word: str) -> bool:
    """True if the word is a kernel's specification, with a prefix, of which nothing is listed here."""
    from kduel.core.errors import KduelError
    from kduel.kernels import find_source

    try:
        return ":" in word and not word.startswith("debian:") and bool(find_source(word))
    except KduelError:
        return False


def has_word(line: Available, word: str) -> bool:
    """True if the line has this word: `6.1` is in 6.1.192, not in 6.12 or 6.16.1."""
    return bool(re.search(rf"(?<![\w.]){re.escape(word)}(?!\d)", f"{line.spec} {line.version} {line.where}"))


def format_table(lines: list[Available]) -> str:
    """Columns, a header above."""
    from kduel.cli.terminal import bold
    from kduel.core.text import align_columns, printable

    rows = [("KERNEL", "VERSION", "FROM", "")]
    rows += [(line.spec, line.version, line.where, "cached" if line.cached else "") for line in lines]
    head, *told = map(printable, align_columns(rows, left=range(4)))
    return "\n".join([bold(head), *told])
