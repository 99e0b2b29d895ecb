"""`kduel sizes --smallest-ram`: how little RAM a kernel boots in."""

import click

from kduel.cli.options import contender_arguments, format_option, offline_option, option, plugin_option, quiet_option
from kduel.cli.output import emit_json
from kduel.cli.terminal import Terminal
from kduel.core.cache import Cache
from kduel.core.errors import InputError
from kduel.core.experiment import Contender
from kduel.core.text import printable
from kduel.study.contenders import name_all


@click.command("smallest-ram")
@contender_arguments("kernels", "KERNEL...")
@plugin_option("--machine", "machines", "Machine: qemu, or board:NAME.", metavar="KIND[:SETTINGS]", default="qemu")
@option("--step", "Search resolution in MiB.", click.IntRange(1, 1024), "MIB", default=2)
@option("--cmdline", "Parameters added to the kernel command line.", metavar="WORDS", default="")
@offline_option
@format_option("text", "json")
@quiet_option
def command(
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
