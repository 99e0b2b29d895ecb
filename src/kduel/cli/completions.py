"""Completions for the shell: contenders, runs, suites, plug-ins. Nothing here uses the network."""

# ruff: noqa: ARG001 - click passes context and parameter to every completer.

from collections.abc import Callable, Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

RUNS = Path("kduel-runs")
MARKS = ("lock.json", "import.json", "merge.json")
"""One of these makes a directory a run."""

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def complete_paths(incomplete: str, kind: str = "file") -> list[CompletionItem]:
    """Tell the shell to complete file names by itself."""
    return [CompletionItem(incomplete, type=kind)]


def complete_runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The runs in the current directory and in kduel-runs, else directories."""
    places = [*Path().iterdir(), *(RUNS.iterdir() if RUNS.is_dir() else ())]
    found = sorted(str(place) for place in places if any((place / mark).is_file() for mark in MARKS))
    matching = [CompletionItem(name) for name in found if name.startswith(incomplete) and name.isprintable()]
    return matching or complete_paths(incomplete, "dir")


def complete_contenders(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Cached kernels and the prefixes of the kernel sources, else files."""
    from kduel.core.cache import Cache
    from kduel.core.plugins import plugins
    from kduel.core.progress import Progress

    if "/" in incomplete or incomplete.startswith((".", "~")):
        return complete_paths(incomplete)
    found: set[str] = {"host"}
    for name, source in plugins("kernels").items():
        found |= {f"{name}:"} if source.accepts(f"{name}:1") else set()
        found |= {line.spec for line in source.available(cache=Cache(), progress=Progress(), offline=True)}
    matching = sorted(name for name in found if name.startswith(incomplete))
    return [CompletionItem(name) for name in matching] or complete_paths(incomplete)


def plugin_completer(kind: str) -> Completer:
    """The plug-ins of a kind (see kduel.core.plugins), or the suites."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from kduel.core.plugins import plugins
        from kduel.study.file import suites

        return matching_items(suites() if kind == "suites" else plugins(kind), incomplete)

    return complete


def operations(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from kduel.benchmarks.support.operations import OPERATIONS

    return matching_items(OPERATIONS[1:], incomplete)


def scheduler_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from kduel.schedulers.catalogue import KNOWN

    return matching_items(KNOWN, incomplete)


def matching_items(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]
