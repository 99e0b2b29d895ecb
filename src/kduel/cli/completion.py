"""`kduel completion`: the shell's own completion script."""

from __future__ import annotations

import click


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print a completion script for SHELL.

    \b
    bash: kduel completion bash > ~/.local/share/bash-completion/completions/kduel
    zsh:  kduel completion zsh > ~/.zfunc/_kduel
    fish: kduel completion fish > ~/.config/fish/completions/kduel.fish
    """
    from click.shell_completion import get_completion_class

    from kduel.cli import kduel

    chosen = get_completion_class(shell)
    if chosen is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(chosen(kduel, {}, "kduel", "_KDUEL_COMPLETE").source())
