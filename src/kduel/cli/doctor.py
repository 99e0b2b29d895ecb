"""`kduel doctor`: conditions of a host that bias or prevent measurement, each with its remedy."""

import click

from kduel.cli.options import Word, format_option
from kduel.cli.output import emit_json
from kduel.cli.terminal import bold, colour_text
from kduel.core.errors import HOST_LACKS
from kduel.core.text import printable


@click.command("doctor")
@click.argument("host", required=False, type=Word(), metavar="[HOST]")
@format_option("text", "json")
def command(host: str | None, form: str) -> None:
    """Check this host, or HOST over SSH, for conditions that bias or prevent measurement, with the remedy for each.

    HOST is a name for ssh, such as root@laptop; ports and keys come from ~/.ssh/config. Nothing there is changed.

    Exit status 3 if something prevents measurement.
    """
    from kduel.machines.host.doctor import examine_host, examine_tree

    if host is None:
        findings = examine_host()
    else:
        from kduel.core.temporary import temporary_directory
        from kduel.machines.remote.connection import Connection
        from kduel.machines.remote.snapshot import bring

        with temporary_directory() as place:
            findings = examine_tree(bring(Connection(host), place))
    if form == "json":
        emit_json(findings)
    else:
        colours = {"good": "green", "disturbs": "yellow", "prevents": "red"}
        for finding in findings:
            mark = colour_text(f"{finding.weight:9}", colours[finding.weight])
            click.echo(f"{mark} {printable(finding.what)}")
            if finding.effect:
                click.echo(f"          {printable(finding.effect)}")
            if finding.remedy:
                click.echo(f"          {bold('Remedy:')} {printable(finding.remedy)}")
    if any(finding.weight == "prevents" for finding in findings):
        raise click.exceptions.Exit(HOST_LACKS)
