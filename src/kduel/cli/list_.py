"""`kduel list`: the benchmarks, suites, machines, boards, fleets, kernel sources and report formats."""

from __future__ import annotations

import contextlib
import itertools
import re
import typing
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from kduel.cli.completions import matching_items
from kduel.cli.options import Word, command_listing, format_option, offline_option
from kduel.cli.output import emit_json
from kduel.cli.terminal import bold
from kduel.core.errors import InputError, unknown_name
from kduel.core.text import fold

if TYPE_CHECKING:
    from kduel.benchmarks import Benchmark
    from kduel.kernels import Available

KINDS = ("kernels", "benchmarks", "suites", "machines", "boards", "fleets", "sources", "formats")
"""The kernels have a command of their own, `list kernels`."""


def complete_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """The names of the kind that stands before them, if it is one."""
    what = ctx.params.get("what")
    return matching_items((entry["name"] for entry in list_kind(what)) if what else (), incomplete)


@click.command("list")
@click.argument("what", type=click.Choice(KINDS))
@click.argument("names", nargs=-1, type=Word(), shell_complete=complete_names)
@format_option("text", "json")
def command(what: str, names: tuple[str, ...], form: str) -> None:
    """List all of a kind, or those with these names: benchmarks (with their parameters, choices and metrics; `kduel explain A B -b help` tells what the operations of
    kbench do), suites, machines (with their settings), boards (for
    --machine board:NAME), fleets (ways to use several machines, with their settings), sources of kernels, or report formats. `kduel list kernels` lists kernels: it has a help of its own."""
    found = list_kind(what)
    for unknown in sorted(set(names) - {entry["name"] for entry in found}):
        there = [entry["name"] for entry in found]
        raise unknown_name(f"there is no {unknown!r} among the {what}", unknown, there)
    found = [entry for entry in found if entry["name"] in names or not names]
    if form == "json":
        emit_json(found)
        return
    for entry in found:
        lines = [f"{bold(entry['name'])}  {entry['summary']}"]
        for key in ("parameters", "settings"):
            if entry.get(key):
                told = ", ".join(f"{name} = {value}" for name, value in entry[key].items())
                lines.append(f"    {key}: {told}")
        for name, choices in entry.get("choices", {}).items():
            lines.append(f"    {name}: one of {', '.join(map(str, choices))}")
        if entry.get("metrics"):
            told = ", ".join(f"{m['name']} [{m['unit']}, {m['better']}]" for m in entry["metrics"])
            lines.append(f"    metrics: {told}")
        click.echo("\n".join(line for one in lines for line in fold(one)))


PLUGINS = {"machines": "machines", "fleets": "fleets", "sources": "kernels", "formats": "report"}
"""Kinds that are plug-ins of this kind, described by their summaries and settings."""


def list_kind(what: str) -> list[dict[str, Any]]:
    """Every one of a kind, with its `name` and `summary`."""
    from kduel.core.plugins import plugins

    if what in PLUGINS:
        return [
            {"name": name, "summary": one.summary}
            | ({"settings": default_values(one.Settings)} if hasattr(one, "Settings") else {})
            for name, one in plugins(PLUGINS[what]).items()
        ]
    return {"benchmarks": list_benchmarks, "suites": list_suites, "boards": list_boards}[what]()


def list_benchmarks() -> list[dict[str, Any]]:
    """Every benchmark with choices of parameters, and its metrics for the defaults or for each required choice."""
    import msgspec

    from kduel.core.plugins import plugins

    entries = []
    for name, chosen in plugins("benchmarks").items():
        hints = typing.get_type_hints(chosen.Parameters)
        allowed = {
            name: list(typing.get_args(hints[name]))
            for name in sorted(chosen.Parameters.__struct_fields__)
            if typing.get_origin(hints[name]) is typing.Literal
        }
        metrics = {metric.name: metric for each in parameter_sets(chosen, allowed) for metric in chosen.metrics(each)}
        entries.append(
            {
                "name": name,
                "summary": chosen.summary,
                "parameters": default_values(chosen.Parameters),
                "choices": allowed,
                "metrics": msgspec.to_builtins(list(metrics.values())),
            }
        )
    return entries


def parameter_sets(chosen: Benchmark[Any], allowed: dict[str, list[Any]]) -> list[Any]:
    """The parameters of a benchmark: defaults, or every choice of one that must be given; none without a choice."""
    try:
        return [chosen.read_parameters({})]
    except InputError:
        pass
    sets = []
    for values in itertools.product(*allowed.values()):
        with contextlib.suppress(InputError):  # Two choices may exclude each other.
            sets.append(chosen.read_parameters(dict(zip(allowed, values, strict=True))))
    return sets


def list_boards() -> list[dict[str, Any]]:
    """Every built-in board; `settings` is the content of its description."""
    from kduel.machines.boards import known_boards

    return [
        {
            "name": name,
            "summary": found.summary,
            "settings": {
                "architecture": found.architecture,
                "memory": found.memory,
                "console": found.console,
                "root": found.root,
                "package": found.qemu.package if found.qemu else "labgrid",
            },
        }
        for name, found in known_boards().items()
    ]


def list_suites() -> list[dict[str, Any]]:
    from kduel.study.file import parse_study
    from kduel.study.file import suites as texts

    entries = []
    for name, text in texts().items():
        file = parse_study(text, f"the suite {name}")
        uses = [str(table.get("use")) for table in file.benchmark]
        entries.append({"name": name, "summary": file.study.title, "about": file.study.about, "benchmarks": uses})
    return entries


def default_values(struct: Any) -> dict[str, str]:
    """A struct's fields with their defaults in TOML; "required" where there is none."""
    import msgspec

    told = {}
    for entry in msgspec.structs.fields(struct):
        if entry.default is not msgspec.NODEFAULT:
            value = msgspec.to_builtins(entry.default)
        elif entry.default_factory is not msgspec.NODEFAULT:
            value = msgspec.to_builtins(entry.default_factory())
        else:
            told[entry.encode_name] = "required"
            continue
        told[entry.encode_name] = msgspec.json.encode(value).decode() if value is not None else "not set"
    return told


@click.command("kernels", cls=command_listing("kernels", "A kernel is given as", forms=True))
@click.argument("words", nargs=-1, type=Word(), metavar="[WORD...]")
@offline_option
@format_option("text", "json")
def kernels(words: tuple[str, ...], offline: bool, form: str) -> None:
    """List available and cached kernels, the newest of each series.

    WORDs select the lines that contain all of them, for example: kduel list kernels 6.12 cloud.

    \b
    For example:
      debian:6.12         the newest 6.12.x in any of Debian's suites, as
                          linux-image-amd64 installs it
      debian:6.12-cloud   the same for virtual machines: fewer drivers, a third
                          of the download, faster boot
      debian:6.12-rt      with PREEMPT_RT, otherwise as debian:6.12
      debian:7, debian:latest, debian:6.1.192-2,
      debian:6.1.0-56-cloud-amd64 (as uname -r says)
      debian:trixie       what that suite installs by default; -cloud and -rt
                          as above
      fedora:42           the newest of a release; fedora:42-6.14 of a version
                          (docs/distributions.md)
      debian-source:6.1,arch=arm64,config=tinyconfig+guest
                          for arch= and config= see docs/embedded.md

    `kduel run` takes settings with a kernel: debian:6.12,cmdline=mitigations=off; also sysctl=KEY=VALUE, scheduler=,
    policy=, name= and, for a PATH or tree:DIR, modules=DIR.

    debian:6.12-generic is debian:6.12 in full. -arm64, -riscv64 or -ppc64el at the end names another architecture.
    Compare one flavour with itself: generic and cloud differ in drivers and in defaults such as the I/O scheduler.
    Debian's mirror is that of the host, or KDUEL_DEBIAN_MIRROR. The package lists are refreshed daily.
    """
    from kduel.cli.terminal import Terminal
    from kduel.core.cache import Cache
    from kduel.core.errors import InputError
    from kduel.core.plugins import plugins
    from kduel.kernels.apt.versions import version_key

    progress = Terminal()
    cache = Cache(progress=progress)
    lines: list[Available] = []
    for source in plugins("kernels").values():
        lines += source.available(cache=cache, progress=progress, offline=offline)
    lines = [line for line in lines if all(has_word(line, word) for word in words)]
    lines.sort(key=lambda line: (version_key(line.version), line.spec), reverse=True)
    if words and not lines:
        if unlisted := next((word for word in words if is_unlisted(word)), ""):
            raise InputError(
                f"{unlisted} is a kernel that `kduel run` takes, and only its archive knows which: kernels of this source are listed "
                "once they are in the cache",
                f"Try it: kduel run {unlisted} debian:6.12 --dry-run. docs/distributions.md tells what the releases have.",
            )
        raise InputError(
            f"no kernel{' in the cache' if offline else ''} has {' and '.join(words)}",
            "`kduel list kernels` without a word lists all.",
        )
    if form == "json":
        kernels = [
            {"spec": line.spec, "version": line.version, "where": line.where, "cached": line.cached} for line in lines
        ]
        emit_json({"schema": 1, "kernels": kernels})
    else:
        click.echo(format_table(lines) if lines else "the cache has no kernels")


def is_unlisted(word: str) -> bool:
    """True if the word is a kernel's specification, with a prefix, of which nothing is listed here."""
    from kduel.core.errors import KduelError
    from kduel.kernels import find_source

    try:
        return ":" in word and not word.startswith("debian:") and bool(find_source(word))
    except KduelError:
        return False


def has_word(line: Available, word: str) -> bool:
    """True if the line has this word: `6.1` is in 6.1.192, not in 6.12 or 6.16.1."""
    return bool(re.search(rf"(?<![\w.]){re.escape(word)}(?!\d)", f"{line.spec} {line.version} {line.where}"))


def format_table(lines: list[Available]) -> str:
    """Columns, a header above."""
    from kduel.cli.terminal import bold
    from kduel.core.text import align_columns, printable

    rows = [("KERNEL", "VERSION", "FROM", "")]
    rows += [(line.spec, line.version, line.where, "cached" if line.cached else "") for line in lines]
    head, *told = map(printable, align_columns(rows, left=range(4)))
    return "\n".join([bold(head), *told])
