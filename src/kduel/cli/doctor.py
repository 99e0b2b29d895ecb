"""`kduel doctor`: what of this host, or of a machine reached by SSH, disturbs or prevents measuring, each with its remedy."""

from __future__ import annotations

import click

from kduel.core.errors import HOST_LACKS


@click.command("doctor")
@click.argument("host", required=False, metavar="[HOST]")
@click.option("--json", "as_json", is_flag=True, help="For scripts.")
def command(host: str | None, as_json: bool) -> None:
    """Look at this host, or at HOST by SSH: what prevents measuring, what disturbs it and how, and what to do about each.

    HOST is as ssh knows it, such as root@laptop; ports and keys come from ~/.ssh/config. Nothing there is changed.

    Ends with 3 where something prevents measuring.
    """
    from kduel.cli import printable
    from kduel.machines.host.doctor import examine_host, examine_tree

    if host is None:
        findings = examine_host()
    else:
        import tempfile
        from pathlib import Path

        from kduel.machines.remote.connection import Connection
        from kduel.machines.remote.snapshot import bring

        with tempfile.TemporaryDirectory(prefix="kduel-") as place:
            findings = examine_tree(bring(Connection(host), Path(place)))
    if as_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(findings), indent=2).decode())
    else:
        colours = {"good": "green", "disturbs": "yellow", "prevents": "red"}
        for finding in findings:
            mark = click.style(f"{finding.weight:9}", fg=colours[finding.weight])
            click.echo(f"{mark} {printable(finding.what)}")
            if finding.effect:
                click.echo(f"          {printable(finding.effect)}")
            if finding.remedy:
                click.echo(f"          {click.style('Remedy:', bold=True)} {printable(finding.remedy)}")
    if any(finding.weight == "prevents" for finding in findings):
        raise click.exceptions.Exit(HOST_LACKS)
