"""The exact part of a run, counted before its trials are timed: an answer within a minute, on however busy a host.

It is a run of its own in the directory `exact` of the run, with its own report, and each command that reads a run finds
it there. Without working KVM it comes by itself; `--exact-first` requests it. The timed part's guest root, which takes
longest of all that is made, is made meanwhile; so the exact part is there before the run that it belongs to.
"""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from kduel.core.errors import InputError, KduelError
from kduel.store.holder import HeldError
from kduel.store.rundir import EXACT, RunDir, check_free, occupied, only_exact_part, written_up
from kduel.study.first_part import SUITE, first_part, only_kernel

if TYPE_CHECKING:
    from kduel.cli.terminal import Terminal
    from kduel.core.beside import Beside
    from kduel.core.progress import Progress
    from kduel.machines import Means
    from kduel.run.prepare import Chosen
    from kduel.store.begun import Begun
    from kduel.store.documents import Lock
    from kduel.study.load import Study

exact_first_option = click.option(
    "--exact-first/--no-exact-first",
    default=None,
    help="Count eight operations exactly before anything is timed.  [default: for two or more kernels on the command "
    "line without --machine, where KVM does not work]",
)


def wanted(asked: bool | None, chosen: Chosen, path: Path, *, by_default: bool, **means: Unpack[Means]) -> bool:
    """Whether the run in `path` has an exact part, or is to have one."""
    if asked is not None:
        return asked
    if (path / "lock.json").is_file() or begun(path):
        return (path / EXACT).is_dir()
    if not by_default or chosen.study.machine != "qemu":
        return False
    return chosen.kind.emulates(chosen.settings, chosen.arms, **means)


def begun(path: Path) -> bool:
    """Whether the exact part of the run in `path` has begun, and perhaps nothing else of it."""
    return (path / EXACT / "lock.json").is_file()


def check_place(study: Study, path: Path, asked: bool | None) -> None:
    """Raises InputError or HostError where `path` cannot hold a run of this study, as far as that is known before anything
    is fetched or counted: it holds something else, or another run, or cannot be written."""
    from kduel.store.identity import check_same_study

    if (path / "lock.json").is_file():
        check_same_study(RunDir.open(path).lock(), study, path)
        return
    check_free(path, exact_part=asked is not False)
    if begun(path):
        try:
            part = first_part(study)
        except InputError:
            raise occupied(path, [EXACT]) from None
        check_same_study(RunDir.open(path / EXACT).lock(), part, path / EXACT)


def first_lock(study: Study, path: Path) -> Lock | None:
    """The lock of an exact part that was begun with the contenders of this study; None where there is none."""
    if not begun(path):
        return None
    lock = RunDir.open(path / EXACT).lock()
    return lock if lock.contenders == study.contenders else None


def only_first_part(study: Study, path: Path) -> bool:
    """Whether `path` holds the exact part of a run of this study, and nothing else yet."""
    from kduel.store.identity import same_study

    if (path / "lock.json").is_file() or not begun(path):
        return False
    try:
        part = first_part(study)
    except InputError:
        return False
    return same_study(RunDir.open(path / EXACT).lock(), part)


def beside_kernels(study: Study, chosen: Chosen, terminal: Terminal, **means: Unpack[Means]) -> Beside:
    """What makes the guest's root while kernels are fetched and operations are counted; nothing for a study whose
    contenders differ in more than kernel and command line."""
    from kduel.core.beside import Beside
    from kduel.run.prepare import get_early

    simple = all(one == only_kernel(one) for one in study.contenders)

    def work(progress: Progress) -> None:
        if simple:
            get_early(chosen, cache=means["cache"], progress=progress, offline=means.get("offline", False))

    return Beside(work, terminal)


def count_first(
    chosen: Chosen,
    path: Path,
    terminal: Terminal,
    held: ExitStack,
    *,
    begun: Begun,
    asked: bool | None,
    **means: Unpack[Means],
) -> None:
    """Carry out what is left of the exact part of the run in `path`, and show what it found. From then on `held` holds
    that part.

    Where it cannot be done, a warning gives the reason and the timed part follows; an error where it was requested, where
    another kduel is at work there, or where what a new run has of it cannot be continued.
    """
    from kduel.cli.execute import EXACT_SEED, keep_report, shown
    from kduel.judge.evaluate import judge_run
    from kduel.report.text import show_closing
    from kduel.run.prepare import get_machine, open_run
    from kduel.run.runner import Runner
    from kduel.store.begun import keep_begun

    where = path / EXACT
    if written_up(where):
        held.enter_context(RunDir.open(where).held())
        return
    only_part = only_exact_part(path) is not None
    try:
        part = first_part(chosen.study)
        terminal.info(f"First {len(part.steps)} operations are counted exactly; the timed part follows.")
        ready = get_machine(chosen.for_part(part, SUITE), **means)
        try:
            run = open_run(ready, where, origin=SUITE, seed=EXACT_SEED)
            held.enter_context(run.at_work())
            if not (path / "lock.json").is_file():
                keep_begun(path, begun)
            with shown(terminal, part, part.machine, ready.machine.parallel) as (watch, boot_begun):
                Runner(ready, run, terminal, watch, lambda *_: False, boot_begun).go()
        finally:
            ready.machine.close()
        results = judge_run(where)
    except KduelError as error:
        if asked or isinstance(error, HeldError) or (only_part and isinstance(error, InputError)):
            raise
        terminal.warn(f"Nothing is counted first: {error}")
        return
    click.echo(show_closing(results, shlex.quote(str(where)), 2), nl=False, color=True)
    keep_report(where, results)
