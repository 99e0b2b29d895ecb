"""Options that several commands share: each is spelled, typed and explained once."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from kduel.cli.completions import complete_contenders, complete_runs, plugin_completer
from kduel.core.errors import InputError
from kduel.core.text import visible

CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""What a terminal obeys, ends a line, or reorders what is beside it."""
F = TypeVar("F", bound=Callable[..., Any])
PLOTS = (".svg", ".png")

if TYPE_CHECKING:
    PathType = click.ParamType[Path]
    WordType = click.ParamType[str]
else:
    PathType = WordType = click.ParamType  # generic only in newer versions of click


class Word(WordType):
    """Text that is not empty: an empty word comes from an unset variable of a shell."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        default = ctx and param and param.name and ctx.get_parameter_source(param.name) is ParameterSource.DEFAULT
        if value == "" and not default:
            self.fail("It is empty, as an unset variable is.", param, ctx)
        return str(value)


class NamedPath(click.Path):
    """A path whose name can be shown. An empty word, as of an unset variable, is not the current directory."""

    def __init__(self, **bounds: Any) -> None:
        super().__init__(path_type=Path, **bounds)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("The path is empty; the current directory is '.'.", param, ctx)
        if CONTROL.search(str(value)):
            self.fail(f"{visible(value)} has control characters in its name. Rename it.", param, ctx)
        return super().convert(value, param, ctx)


class PlotFile(PathType):
    """The name of a picture to write; its suffix chooses the file format."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(value)
        if path.suffix.lower() not in PLOTS:
            raise InputError(f"{path.name} is not the name of a picture", f"End it in {' or '.join(PLOTS)}.")
        return path


class Number(click.FloatRange):
    """A finite number; the bounds are those of FloatRange, which lets `nan` pass, and `inf` where there is no bound."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        import math

        found: float = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return found


class Percent(Number):
    """A smallest effect of interest, in per cent, with or without its sign."""

    def __init__(self) -> None:
        super().__init__(0, 100, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        return super().convert(value.strip().removesuffix("%") if isinstance(value, str) else value, param, ctx)


class TurnsOption(WordType):
    """Milliseconds of a turn, or `off`."""

    name = "turns"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from kduel.study.steps import check_turns

        found = int(value) if re.fullmatch("[+-]?[0-9]{1,18}", value, re.ASCII) else value
        check_turns("--turns", found, "off")
        return found


def option(names: str, about: str, kind: Any = None, metavar: str | None = None, **settings: Any) -> Callable[[F], F]:
    """An option: names as in `--format -f form`, help, type or choices; a default is shown; `settings`: click's."""
    settings.setdefault("show_default", bool(settings.get("default")))
    chosen = click.Choice(kind) if isinstance(kind, list | tuple) else kind
    return click.option(*names.split(), help=about, type=chosen, metavar=metavar, **settings)


def mode_option(word: str, summary: str) -> Callable[[F], F]:
    """A word that makes another command of this one (see MODES in `kduel.cli`), in its help and for the shell's completion."""
    return option(word, f"{summary} `{word} --help` has its options.", is_flag=True, expose_value=False)


def options_on_command_line() -> list[str]:
    """The parameters of the command that runs now that stand on its command line, in their order in the help."""
    context = click.get_current_context()
    return [
        parameter.name
        for parameter in context.command.params
        if parameter.name and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    ]


def output_path_option(
    names: str, about: str, kind: Any, metavar: str | None = None, **settings: Any
) -> Callable[[F], F]:
    """The option of what a command writes: it may be none of the command's inputs, and change no run."""
    name = names.split()[0]

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def checking(*arguments: Any, **given: Any) -> Any:
            path = given[name.removeprefix("--")]
            if path is not None and (path != Path("-") or not getattr(kind, "allow_dash", False)):
                from kduel.cli.output_check import check_output

                is_file = not getattr(kind, "dir_okay", False)
                check_output(path, name, click.get_current_context(), is_file=is_file)
            return command(*arguments, **given)

        return option(names, about, kind, metavar, **settings)(checking)  # type: ignore[return-value]

    return decorate


def format_option(*formats: str) -> Callable[[F], F]:
    """`--format`, with the first of `formats` as its default."""
    return option("--format -f form", "Output format.", formats, default=formats[0])


def plot_option(shows: str) -> Callable[[F], F]:
    """`--plot FILE.svg|FILE.png`; `shows` is what the plot shows."""
    return output_path_option("--plot", f"Write a plot: {shows}.", PlotFile(), "FILE.svg|FILE.png")


def limit_option(default: int, rows: str = "Rows of the table") -> Callable[[F], F]:
    """`--limit N`, 0 for all."""
    return option("--limit", f"{rows}; 0: all.", click.IntRange(0), default=default)


def check_alpha_option(_ctx: click.Context, _param: click.Parameter, given: float | None) -> float | None:
    """Check --alpha like a study's alpha. Raises InputError."""
    from kduel.core.experiment import check_alpha

    if given is not None:
        check_alpha(given, "--alpha")
    return given


alpha_option = option(
    "--alpha", "False-positive rate.  [default: RUN's, or 0.05]", float, "P", callback=check_alpha_option
)


def delta_option(default: str) -> Callable[[F], F]:
    """The option --delta of a command that has this default, in words."""
    return option("--delta", f"Smallest effect of interest, in %.  [default: {default}]", Percent(), "PCT")


output_option = output_path_option(
    "--output -o", "Write to this file instead of standard output.", NamedPath(dir_okay=False, allow_dash=True)
)
offline_option = option("--offline", "Do not access the network; use the cache.", is_flag=True)
quiet_option = option("--quiet -q", "Print only the result.", is_flag=True)
fail_on_option = option(
    "--fail-on", "Exit with status 10 if a primary metric is slower, or takes more instructions.", ["slower"]
)
notify_option = option(
    "--notify",
    "Shell command to start when the run has ended; the verdict is its standard input, KDUEL_RUN and KDUEL_STATUS are set.",
    Word(), "CMD", default="",
)  # fmt: skip


def list_operations(ctx: click.Context, _param: click.Parameter, given: str) -> str:
    """`--benchmark help` prints what there is, and ends."""
    if given != "help" or ctx.resilient_parsing:
        return given
    from kduel.benchmarks.request import APPLICATIONS
    from kduel.benchmarks.support.operations import ABOUT, GROUPS

    requests = {name: f"one request: {one.about}" for name, one in APPLICATIONS.items()}
    about = ABOUT | requests
    width = max(map(len, about))
    for group, names in {**GROUPS, "applications": tuple(requests)}.items():
        click.echo(f"{group}:")
        for name in names:
            click.echo(f"  {name:{width}}  {about[name]}")
    click.echo(
        f"besides:\n  {'boot':{width}}  the kernel's start until init, on the exact machine: minutes, and 2 GB of memory"
    )
    raise click.exceptions.Exit(0)


benchmark_option = option(
    "--benchmark -b",
    "An operation of kbench or an application's request, such as pipe or redis-get (`-b help` lists them); for a timed RUN "
    "any of its steps or benchmarks.", metavar="NAME", default="", is_eager=True, callback=list_operations,
)  # fmt: skip
run_argument = click.argument("run", type=NamedPath(), metavar="RUN", shell_complete=complete_runs)
machine_help = "KIND[:key=value,...], for example qemu:cpus=4,memory=2G or icount; `kduel list machines` shows all."


def contender_arguments(name: str, metavar: str, *, required: bool = True) -> Callable[[F], F]:
    """Kernels, a study file or a run, completed by the shell."""
    return click.argument(
        name, nargs=-1, required=required, type=Word(), metavar=metavar, shell_complete=complete_contenders
    )


def plugin_option(
    names: str, plugins: str, about: str, kind: Any = None, metavar: str = "NAME", **settings: Any
) -> Callable[[F], F]:
    """An option whose value names a plug-in of that kind, completed by the shell; whether it exists is checked at use."""
    return option(names, about, kind, metavar, shell_complete=plugin_completer(plugins), **settings)


def command_listing(kind: str, heading: str, *, forms: bool = False) -> type[click.Command]:
    """A class of commands whose help ends with the plug-ins of a kind. `forms`: each summary begins with a form."""

    class Listing(click.Command):
        def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            from kduel.core.plugins import plugins

            super().format_options(ctx, formatter)
            lines = [f"{'' if forms else f'{name}: '}{found.summary}" for name, found in plugins(kind).items()]
            with formatter.section(heading):
                formatter.write_dl([line.partition(": ")[::2] for line in lines])

    return Listing


def suite_option(command: F) -> F:
    """`--suite` of every command that carries out or packs a study."""
    option: Callable[[F], F] = plugin_option(
        "--suite", "suites",
        "Benchmarks to run; `kduel list suites` shows all.  [default: quick; on the machine icount: exact-quick]",
        Word(), "NAME",
    )  # fmt: skip
    return option(command)
