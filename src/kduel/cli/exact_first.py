"""The exact part of a run, counted before its trials are timed: an answer within a minute, on however busy a host.

It is a run of its own in the directory `exact` of the run, with its own report, and each command that reads a run finds
it there. Without working KVM it comes by itself; `--exact-first` requests it.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kduel.core.errors import KduelError
from kduel.store.rundir import EXACT, RunDir, written_up
from kduel.study.first_part import SUITE, first_part

if TYPE_CHECKING:
    from kduel.cli.terminal import Terminal
    from kduel.run.prepare import Kernels, Ready
    from kduel.study.load import Study

exact_first_option = click.option(
    "--exact-first/--no-exact-first",
    default=None,
    help="Count eight operations exactly before anything is timed.  [default: for two or more kernels on the command "
    "line without --machine, where KVM does not work]",
)


def wanted(asked: bool | None, study: Study, ready: Ready, path: Path, *, by_default: bool) -> bool:
    """Whether the run in `path` has an exact part, or is to have one."""
    if asked is not None:
        return asked
    if (path / "lock.json").is_file():
        return (path / EXACT).is_dir()
    return by_default and study.machine == "qemu" and ready.machine.facts.get("accelerator") == "tcg"


def count_first(
    study: Study, path: Path, terminal: Terminal, kernels: Kernels, *, offline: bool, asked: bool | None
) -> None:
    """Carry out what is left of the exact part of the run in `path`, whose kernels these are, and show what it found.

    Where it cannot be done, a warning gives the reason and the timed part follows; an error where it was requested.
    """
    from kduel.cli.execute import EXACT_SEED, keep_report, shown
    from kduel.core.cache import Cache
    from kduel.judge.evaluate import judge_run
    from kduel.report.text import show_closing
    from kduel.run.prepare import make_ready
    from kduel.run.runner import run_study

    where = path / EXACT
    if written_up(where):
        return
    try:
        part = first_part(study)
        lock = RunDir.open(where if (where / "lock.json").is_file() else path).lock()
        terminal.info(f"First {len(part.steps)} operations are counted exactly; the timed part follows.")
        ready = make_ready(
            part,
            cache=Cache(progress=terminal),
            progress=terminal,
            offline=offline,
            lock=lock,
            origin=SUITE,
            kernels=kernels,
        )
        try:
            with shown(terminal, part, part.machine, ready.machine.parallel) as (watch, begun):
                run_study(ready, where, origin=SUITE, seed=EXACT_SEED, progress=terminal, watch=watch, begun=begun)
        finally:
            ready.machine.close()
        results = judge_run(where)
    except KduelError as error:
        if asked:
            raise
        terminal.warn(f"Nothing is counted first: {error}")
        return
    click.echo(show_closing(results, shlex.quote(str(where)), 2), nl=False, color=True)
    keep_report(where, results)
