"""`kduel doctor`: what of this host disturbs or prevents measuring, each with its remedy."""

from __future__ import annotations

import click

from kduel.errors import HOST_LACKS


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="For scripts.")
def command(as_json: bool) -> None:
    """Look at this host: what prevents measuring, what disturbs it, and what to do about each.

    Ends with 3 where something prevents measuring.
    """
    from kduel.doctor import examine_host

    findings = examine_host()
    if as_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(findings), indent=2).decode())
    else:
        colours = {"good": "green", "disturbs": "yellow", "prevents": "red"}
        for finding in findings:
            mark = click.style(f"{finding.weight:9}", fg=colours[finding.weight])
            click.echo(f"{mark} {finding.what}")
            if finding.remedy:
                click.echo(f"          {finding.remedy}")
    if any(finding.weight == "prevents" for finding in findings):
        raise click.exceptions.Exit(HOST_LACKS)
