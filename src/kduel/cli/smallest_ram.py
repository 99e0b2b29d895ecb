"""`kduel smallest-ram`: how little RAM a kernel boots in."""

from __future__ import annotations

import click

from kduel.core.errors import InputError


@click.command("smallest-ram")
@click.argument("kernels", nargs=-1, required=True, metavar="KERNEL...")
@click.option("--machine", default="qemu", show_default=True, metavar="KIND[:SETTINGS]", help="qemu, or board:NAME.")
@click.option("--step", type=click.IntRange(1, 1024), default=2, show_default=True, help="How exactly, MiB.")
@click.option("--cmdline", default="", metavar="WORDS", help="Words added to the kernels' command line.")
@click.option("--offline", is_flag=True, help="Use nothing but the cache.")
@click.option("--json", "as_json", is_flag=True, help="For scripts.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing but the result.")
def command(
    kernels: tuple[str, ...], machine: str, step: int, cmdline: str, offline: bool, as_json: bool, quiet: bool
) -> None:
    """Find the smallest RAM in which each KERNEL still boots to KDuel's script, by bisection.

    It begins with the machine's own RAM (--machine board:arm64-virt,memory=256M), and halves: about nine boots. What is
    found holds for that machine and root: on a board the root is a RAM disk of about 2 MB, on qemu a disk.

    \b
    kduel smallest-ram debian:6.1-arm64 debian:6.12-arm64 --machine board:arm64-virt
    kduel smallest-ram ./vmlinux --machine board:MINE.toml --step 1
    """
    import msgspec

    from kduel.cli.terminal import Terminal
    from kduel.core.cache import Cache
    from kduel.core.experiment import Contender
    from kduel.kernels import resolve
    from kduel.machines import Arm, Needs, Outcome, machine_kind
    from kduel.machines.qemu import QemuMachine
    from kduel.run.smallest_ram import smallest
    from kduel.study.load import name_all, read_machine

    cache, progress = Cache(), Terminal(quiet or as_json)
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
        kernel = resolve(contender.kernel, cache=cache, progress=progress, offline=offline)
        arm = Arm(contender, kernel)
        made = kind.prepare(settings, [arm], Needs(), cache=cache, progress=progress, offline=offline)
        if not isinstance(made, QemuMachine) or not made.accelerator:
            made.close()
            raise not_here

        def told(mib: int, outcome: Outcome, between: int, name: str = contender.name) -> None:
            what = f"does not boot: {outcome.void}: {outcome.message}" if outcome.void else "boots"
            progress.info(f"{name}: {mib:5} MiB {what} ({between} MiB left to search)")

        try:
            found[contender.name] = smallest(made, arm, step=step, told=told)
        finally:
            made.close()
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return
    from kduel.cli import printable

    width = max(len(name) for name in found)
    for name, result in found.items():
        click.echo(
            printable(f"{name:{width}}  boots in {result.boots_in} MiB, not in {result.not_in} ({result.why_not})")
        )
