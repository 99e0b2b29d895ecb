"""The command line. Every command is a module of this package, imported only when it is used."""

import codecs
import importlib
import os
import signal
import sys
from io import TextIOWrapper
from typing import Any, NoReturn

import click

from kduel.cli.interrupt import Interrupt, is_interruption, was_reported
from kduel.cli.stdout import NobodyReadsError, replace_stdout
from kduel.cli.trouble import as_user_error
from kduel.core.errors import INTERRUPTED, KduelError
from kduel.core.text import show_bytes

GROUPS = {
    "Measure": {
        "run": "Measure contenders against each other and reach a verdict.",
        "resume": "Continue an interrupted run.",
        "status": "Show the progress of a run, machine by machine.",
        "list": "List kernels, benchmarks, suites, machines, boards and report formats.",
        "init": "Write a commented study file to start from.",
        "plan": "Estimate the blocks and the time of a verdict, or simulate the verdict rule.",
        "doctor": "Check this host for conditions that bias or prevent measurement.",
    },
    "Read a run": {
        "report": "Write a report of a run in one of several formats, or of its boots.",
        "verify": "Check that no file of a run was changed afterwards.",
        "diff": "Compare runs made at different times, with all that changed between them.",
        "explain": "Show which kernel functions a difference comes from.",
    },
    "Many runs": {
        "merge": "Merge runs of one experiment into one with one verdict.",
        "query": "Index many runs, query the index, or show metrics over time.",
        "site": "Write static pages about many runs.",
        "import": "Import results measured elsewhere.",
    },
    "Search and size": {
        "bisect": "Find the commit that changed a cost.",
        "sizes": "Show where two kernels differ in size, or in what RAM they boot.",
    },
    "Other": {
        "schedulers": "List and build sched_ext schedulers.",
        "bundle": "Write what a run needs from the network into one file, or unpack it.",
        "local": "Measure this machine itself, across reboots.",
    },
}
"""In the order of --help, by the heading that they stand under."""
COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}

MODES = {
    "bundle --unpack": "unbundle", "list kernels": "kernels", "plan --simulate": "calibrate",
    "query --history": "history", "query --update": "index", "report --boot": "boot",
    "sizes --smallest-ram": "smallest-ram",
}  # fmt: skip
"""What a word makes of a command, with options and help of its own: by the two words, the name that it had."""
FORMER = {old: new for new, old in MODES.items()} | {"completion": "--completion"}
"""Names that the next release does not know any more, and what to type instead."""
MODULES = {
    "boot": "report", "history": "query", "import": "import_", "index": "query", "kernels": "list_", "list": "list_",
    "smallest-ram": "sizes", "unbundle": "bundle",
}  # fmt: skip
"""Modules that do not have the command's name; a mode's is its command's, where it is not long."""


class Commands(click.Group):
    """Knows its commands by name, and imports the one that runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = MODES.get(cmd_name, cmd_name)
        if name not in COMMANDS and name not in FORMER and name != "worker":
            return None
        module = importlib.import_module(f"kduel.cli.{MODULES.get(name, name)}")
        beside = name in MODULES and name not in COMMANDS
        command: click.Command = getattr(module, name.replace("-", "_") if beside else "command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is named. Raises UsageError with what to type instead where there is none of that name."""
        if args and args[0] in FORMER:
            new = FORMER[args[0]]
            if not ctx.resilient_parsing:
                click.echo(f"kduel: `{args[0]}` is `kduel {new}` now; the next release knows only that.", err=True)
            return new, self.get_command(ctx, args[0]), args[1:]
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            from kduel.cli.unknown import suggest_command

            ctx.fail(f"No such command {args[0]!r}. {suggest_command(args, COMMANDS)}".rstrip())
        for mode in MODES:
            command, word = mode.split()
            options = args[: args.index("--")] if "--" in args and word.startswith("-") else args
            if options[:1] == [command] and word in options:
                args.remove(word)
                return mode, self.get_command(ctx, mode), args[1:]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, commands in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl(list(commands.items()))


def print_completion(context: click.Context, _option: click.Parameter, shell: str | None) -> None:
    """Print the completion script of that shell, if one is named."""
    if shell and not context.resilient_parsing:
        from kduel.cli.completion import completion_script

        click.echo(completion_script(shell))
        context.exit()


def show_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    """Print the version where it is asked for: only then is git asked for the commit."""
    if wanted and not context.resilient_parsing:
        from kduel.core.version import full_version

        click.echo(f"kduel, version {full_version()}")
        context.exit()


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=show_version,
    help="Show the version and exit.",
)
@click.option(
    "--completion",
    type=click.Choice(["bash", "zsh", "fish"]),
    is_eager=True,
    expose_value=False,
    callback=print_completion,
    help="Print a completion script; its end says where it belongs.",
)
def kduel() -> None:
    """Tell which Linux kernel or scheduler is faster, by how much, and whether you can be sure.

    \b
    kduel run debian:6.1 debian:6.12   compare two kernels: verdict and report
    kduel run STUDY.toml               a study of your own (see `kduel init`)
    kduel report RUN --format html     write the report of a run again
    kduel COMMAND --help               help for each command

    Exit status: 0 measured, 1 a contender could not be measured, 2 wrong usage or input, 3 the host lacks
    something or cannot be written to, 10 slower (with --fail-on slower), 130 interrupted.
    """


def print_error(error: KduelError) -> None:
    """One paragraph on stderr: what happened, then what to do."""
    from kduel.cli.terminal import colour_text, say

    say(f"{colour_text('kduel:', 'red')} {show_bytes(error.message)}")
    if error.remedy:
        say(show_bytes(error.remedy))


def report_interruption(error: BaseException) -> None:
    """Say so where the command has not said more."""
    from kduel.cli.terminal import say

    if is_interruption(error) and not was_reported(error):
        say("kduel: interrupted")


DRAWN = {"─": "-", "▲": "^", "▼": "v", "↑": "^", "↓": "v", "→": "->", "★": "*", "☆": "+"}


def replace_unencodable(error: UnicodeError) -> tuple[str, int]:
    """A codec's error handler: what a terminal's encoding lacks, in ASCII. A minus must not become a question mark."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    from kduel.core.text import ASCII

    lacking = error.object[error.start : error.end].translate(ASCII)
    plain = "".join(DRAWN.get(character, character) for character in lacking)
    return plain.encode("ascii", "replace").decode("ascii"), error.end


def main(arguments: list[str] | None = None) -> NoReturn:
    """The program `kduel`: runs a command and ends with its exit status; no traceback reaches a user."""
    codecs.register_error("kduel.ascii", replace_unencodable)
    replace_stdout()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="kduel.ascii")
    interruptions = [
        number
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) != signal.SIG_IGN
    ]
    interrupt = Interrupt()
    for number in interruptions:
        signal.signal(number, interrupt)
    sys.unraisablehook = interrupt.raise_again
    if "_KDUEL_COMPLETE" in os.environ:
        importlib.import_module("kduel.cli.completion")  # Completion for bash is ours.
    try:
        status: Any = kduel.main(arguments, prog_name="kduel", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Abort as error:  # What click makes of an interruption, and of an end of input.
        report_interruption(error)
        status = INTERRUPTED
    except click.exceptions.Exit as wanted:
        status = wanted.exit_code
    except click.ClickException as error:
        vars(error)["message"] = show_bytes(error.message)
        error.show()
        status = error.exit_code
    except KduelError as error:
        print_error(error)
        status = error.exit_status
    except NobodyReadsError:
        status = 0
    except (KeyboardInterrupt, RuntimeError, OSError, ValueError) as error:
        if is_interruption(error):
            report_interruption(error)
            status = INTERRUPTED
        elif trouble := as_user_error(error):
            print_error(trouble)
            status = trouble.exit_status
        else:
            raise
    if interrupt.heard:
        for number in interruptions:
            signal.signal(number, signal.SIG_IGN)
    sys.exit(status if isinstance(status, int) else 0)
