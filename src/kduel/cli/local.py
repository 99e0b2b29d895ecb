"""`kduel local`: what a study needs that reboots the very machine KDuel runs on; installed and removed by the user."""

import shlex
from pathlib import Path

import click

from kduel.cli.options import run_argument
from kduel.core.text import printable


@click.group("local")
def command() -> None:
    """Measure the machine that KDuel itself runs on, across reboots.

    \b
    kduel local install RUN   a systemd unit that continues RUN after a reboot
    kduel run STUDY.toml --machine local:boot=grub-reboot --out RUN
    kduel local status
    kduel local remove        remove the unit, and restore all settings

    A study of schedulers and sysctls needs neither a reboot nor the unit: use --machine local. A study file has unit =
    "load" in [blocks] for it.
    """


@command.command("install")
@run_argument
def install(run: Path) -> None:
    """Install and enable the unit that continues RUN (its --out) after each boot of this machine."""
    from kduel.machines.remote.local_unit import install as carry_out
    from kduel.store.rundir import check_free, is_run

    if not is_run(run):
        check_free(run)
    path = carry_out(run)
    typed = shlex.quote(str(run.absolute()))
    click.echo(f"installed {path}: after each boot of this machine it runs `kduel resume {typed}`.")
    click.echo(f"Begin with: kduel run STUDY.toml --machine local:boot=grub-reboot --out {typed}")
    click.echo("Its messages: journalctl -u kduel-resume. Remove it: kduel local remove")


@command.command("remove")
def remove() -> None:
    """Remove the unit, and restore the settings that a trial changed. The run's trials are kept."""
    from kduel.machines.remote.local_unit import remove as carry_out

    for line in carry_out() or ["there was nothing to remove"]:
        click.echo(printable(line))


@command.command("status")
def status() -> None:
    """Show which run continues after a reboot, and whether settings have yet to be restored."""
    from kduel.machines.remote.local_unit import ROOT, STATE, installed_for
    from kduel.machines.remote.ssh_trial import RESTORE

    run = installed_for()
    click.echo(f"after a reboot {run} continues" if run else "no run continues after a reboot")
    if (ROOT / STATE).exists():
        click.echo("a trial is in flight")
    if Path(RESTORE).exists():
        click.echo("settings have yet to be restored: by the next trial, or by `kduel local remove`")
