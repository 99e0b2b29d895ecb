"""`kduel sizes`: where the difference in size between two kernels lies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kduel.cli import options
from kduel.cli.output import emit, emit_json
from kduel.cli.terminal import Terminal
from kduel.core.cache import Cache
from kduel.core.errors import InputError, unknown_name
from kduel.core.experiment import Contender
from kduel.core.text import printable
from kduel.kernels import resolve
from kduel.study.contenders import name_all, short_name, with_settings

if TYPE_CHECKING:
    from kduel.core.progress import Progress
    from kduel.kernels.sizes.comparison import SizedKernel

VIEWS = ("subsystem", "symbol", "object", "option")


@click.command("sizes", short_help="Show which parts of two kernels differ in size.")
@options.contender_arguments("targets", "RUN | BASELINE CONTENDER")
@options.option(
    "--by", "Table to print; may be repeated.  [default: subsystem and symbol]", click.Choice(VIEWS), multiple=True
)
@options.option(
    "--contender", "Contender of RUN to compare with the baseline.  [default: the second]", metavar="NAME", default=""
)
@options.option(
    "--depth", "Directory levels of a subsystem: kernel/sched has two.", click.IntRange(1), "N", default=2
)
@options.limit_option(20)
@options.format_option("text", "json")
@options.output_option
@options.offline_option
@options.quiet_option
@options.mode_option("--smallest-ram", "Find the smallest RAM in which kernels boot.")
def command(
    targets: tuple[str, ...],
    by: tuple[str, ...],
    contender: str,
    depth: int,
    limit: int,
    form: str,
    output: Path | None,
    offline: bool,
    quiet: bool,
) -> None:
    """Account for every byte of two kernels: by subsystem, symbol, object or option, the largest differences first.

    RUN is the directory of a run on the machine build. Kernels from source are built unless the cache has them. The
    rows of every table add up to what size(1) prints; the size of an option is that of the objects built only for it.

    \b
    kduel sizes debian-source:6.1,config=tinyconfig \\
        debian-source:6.12,config=tinyconfig
    kduel sizes tree:linux.orig tree:linux --by symbol
    kduel sizes RUN --by option --limit 0
    """
    from kduel.kernels.sizes.comparison import as_document, as_text, compare_sizes

    progress = Terminal(quiet)
    cache = Cache(progress=progress)
    one, other = find_kernels(list(targets), contender, cache=cache, progress=progress, offline=offline)
    found = compare_sizes(one, other, depth=depth)
    if form == "json":
        emit_json(as_document(found), output)
        return
    views = by or (("subsystem", "symbol") if "subsystem" in found.views else ("symbol",))
    emit(printable(as_text(found, limit=limit, views=views)), output)


def find_kernels(
    targets: list[str], contender: str, *, cache: Cache, progress: Progress, offline: bool
) -> tuple[SizedKernel, SizedKernel]:
    """The two kernels that a command line means. Raises InputError."""
    if len(targets) == 1 and Path(targets[0]).is_dir():
        return read_run(Path(targets[0]), contender)
    if len(targets) != 2:
        raise InputError(
            "sizes takes a run's directory, or two kernels",
            "For example: kduel sizes debian-source:6.1,config=tinyconfig debian-source:6.12,config=tinyconfig.",
        )
    first, second = (read_kernel(spec, cache=cache, progress=progress, offline=offline) for spec in targets)
    return first, second


def read_kernel(spec: str, *, cache: Cache, progress: Progress, offline: bool) -> SizedKernel:
    """A kernel by its specification. Raises InputError where it brings no vmlinux with symbols."""
    from kduel.kernels.sizes.comparison import SizedKernel

    given = with_settings(spec)
    if idle := sorted(given.keys() - {"kernel", "modules"}):
        raise InputError(
            f"{spec}: sizes do not depend on {idle[0]}=", "Leave it out; modules=DIR may follow an image."
        )
    kernel = resolve(
        given["kernel"], cache=cache, progress=progress, offline=offline, modules=given.get("modules", "")
    )
    if kernel.vmlinux is None:
        raise InputError(
            f"{spec} brings no vmlinux with symbols, which sizes are read from",
            "Give a kernel from source (debian-source:, source:, git:) or a built tree (tree:DIR).",
        )
    modules = sorted(kernel.modules.glob("**/*.ko*")) if kernel.modules else []
    files = {"image": kernel.image.stat().st_size, "modules": sum(path.stat().st_size for path in modules)}
    name = short_name(Contender(kernel=given["kernel"]))
    return SizedKernel(name=name, vmlinux=kernel.vmlinux, config=kernel.config, files=files)


def read_run(path: Path, contender: str) -> tuple[SizedKernel, SizedKernel]:
    """Two contenders of a run on the machine build. Raises InputError."""
    from kduel.kernels.sizes.comparison import SizedKernel
    from kduel.machines.build import KEPT
    from kduel.store.integrity import trials_of
    from kduel.store.rundir import RunDir

    run = RunDir.open(path)
    lock = run.lock()
    kept = {}
    for record in trials_of(run, lock):
        place = run.directory(record.id) / KEPT
        if (place / "vmlinux").is_file():
            config = place / "config"
            kept[record.contender] = SizedKernel(
                name=record.contender,
                vmlinux=place / "vmlinux",
                config=config if config.is_file() else None,
                files={},
            )
    names = [one.name for one in lock.contenders]
    if contender and contender not in names[1:]:
        raise unknown_name(f"{path} has no contender {contender!r}", contender, names[1:])
    wanted = [*names[:1], *([contender] if contender else [name for name in names[1:] if name in kept][:1])]
    if len(wanted) < 2 or any(name not in kept for name in wanted):
        raise InputError(
            f"{path} holds no two kernels that were built there",
            "Give a run on the machine build, whose first block is done.",
        )
    return kept[wanted[0]], kept[wanted[1]]


@click.command("smallest-ram")
@options.contender_arguments("kernels", "KERNEL...")
@options.plugin_option(
    "--machine", "machines", "Machine: qemu, or board:NAME.", metavar="KIND[:SETTINGS]", default="qemu"
)
@options.option("--step", "Search resolution in MiB.", click.IntRange(1, 1024), "MIB", default=2)
@options.option("--cmdline", "Parameters added to the kernel command line.", metavar="WORDS", default="")
@options.offline_option
@options.format_option("text", "json")
@options.quiet_option
def smallest_ram(
    kernels: tuple[str, ...], machine: str, step: int, cmdline: str, offline: bool, form: str, quiet: bool
) -> None:
    """Find the smallest RAM in which each KERNEL boots to user space, by bisection.

    The search starts at the RAM of the machine (--machine board:arm64-virt,memory=256M) and takes about nine boots. The
    result holds for that machine and its root: on a board that is a RAM disk of about 2 MB, on qemu a disk.

    \b
    kduel sizes --smallest-ram debian:6.1-arm64 debian:6.12-arm64 \\
        --machine board:arm64-virt
    kduel sizes --smallest-ram ./vmlinux --machine board:MINE.toml --step 1
    """
    from kduel.machines import Arm, Needs, Outcome, machine_kind
    from kduel.machines.qemu import InQemu
    from kduel.run.smallest_ram import find_smallest_ram
    from kduel.study.load import read_machine

    progress = Terminal(quiet or form == "json")
    cache = Cache(progress=progress)
    kind_name, table = read_machine({}, machine)
    not_here = InputError(
        f"the RAM of {machine} cannot be changed from boot to boot", "Use qemu, or an emulated board: board:NAME."
    )
    if kind_name not in ("qemu", "board"):
        raise not_here
    kind = machine_kind(kind_name)
    settings = kind.read_settings(table)
    contenders = name_all([Contender(kernel=spec, cmdline=cmdline) for spec in kernels], "the command line")
    found = {}
    for contender in contenders:
        kernel = kind.kernel(contender.kernel, cache=cache, progress=progress, offline=offline)
        arm = Arm(contender, kernel)
        made = kind.prepare(settings, [arm], Needs(), cache=cache, progress=progress, offline=offline)
        if not isinstance(made, InQemu):
            made.close()
            raise not_here

        def show(mib: int, outcome: Outcome, between: int, name: str = contender.name) -> None:
            what = f"does not boot: {outcome.void}: {outcome.message}" if outcome.void else "boots"
            progress.info(f"{name}: {mib:5} MiB {what} ({between} MiB left to search)")

        try:
            found[contender.name] = find_smallest_ram(made, arm, step=step, watch=show)
        finally:
            made.close()
    if form == "json":
        emit_json(found)
        return

    width = max(len(name) for name in found)
    for name, result in found.items():
        click.echo(
            printable(f"{name:{width}}  boots in {result.boots_in} MiB, not in {result.not_in} ({result.why_not})")
        )
