"""Carry out a study, show its progress, and write its report: shared by `run` and `resume`."""

from __future__ import annotations

import os
import re
import secrets
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import msgspec

from kduel.cli.exact_first import count_first, prepare_in_background, wants_exact_part
from kduel.cli.futility import Choice, choose_action, should_give_up
from kduel.cli.interrupt import ReportedInterrupt, is_interruption
from kduel.cli.live_trials import show_trials
from kduel.cli.shortage import realtime_warning, shortage_warning
from kduel.cli.status import trials_kept
from kduel.cli.terminal import Terminal, say
from kduel.cli.write_up import write_up
from kduel.core.cache import Cache
from kduel.core.errors import InputError, KduelError
from kduel.core.progress import UniqueMessages
from kduel.core.text import plural
from kduel.store.identity import check_same_study, same_study
from kduel.store.integrity import check_none_removed
from kduel.store.run_lock import refuse_second
from kduel.store.rundir import EXACT, PAGE, RunDir, check_free, has_report
from kduel.study.first_part import EXACT_SEED, first_part
from kduel.study.load import Study
from kduel.study.plan import slug

if TYPE_CHECKING:
    from kduel.machines import Means
    from kduel.run.watch import GiveUp
    from kduel.store.documents import FleetRecord, Lock

RUNS = Path("kduel-runs")


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    study: Study
    out: Path | None
    origin: str
    """The suite's name or the study file's path, as given."""
    seed: int | None
    """Without one the run's own, or one that is drawn; on an exact machine always the same, for equal counts."""
    offline: bool
    futility: Choice | None
    fail_on: str | None
    quiet: bool
    notify: str = ""
    """Shell command to start with the verdict."""
    fleet: str | FleetRecord = ""
    exact_first: bool | None = None
    """True: an exact part comes before the timed one; None: by `counts_by_default`."""
    counts_by_default: bool = False
    """True: there is one where KVM does not work."""

    @property
    def wants_exact_part(self) -> bool:
        return bool(self.study.about.exact_first) if self.exact_first is None else self.exact_first


def carry_out(request: RunRequest) -> None:
    """Make ready, run, judge, report; ends the process with the exit status that `--fail-on` requires."""
    from kduel.machines import Means

    study = request.study
    terminal = Terminal(request.quiet)
    give_up = partial(should_give_up, choose_action(request.futility, request.quiet), terminal)
    path, lock = find_place(request)
    seed = request.seed if lock is None else lock.seed
    if lock is not None and lock.contenders != study.contenders:
        lock = None
    if lock is not None and has_report(path) and same_study(lock, study) and not os.access(path, os.W_OK):
        terminal.warn(f"{path} is complete and cannot be written: its page and results.json stay as they are.")
        write_up(path, request.fail_on, keep=False)
        return
    fleet = request.fleet or (lock.fleet if lock is not None else None)
    with explain_interruption(path):
        if fleet:
            from kduel.run.fleet.session import read_fleet, run_fleet

            kind, table = read_fleet(fleet) if isinstance(fleet, str) else (fleet.kind, fleet.settings)
            terminal.info(f"{' against '.join(study.names)}: {describe_plan(study)}, on the fleet {kind}, in {path}")
            with show_trials(terminal, study, f"the fleet {kind}") as (watch, _):
                run_fleet(
                    study, kind, table, path, origin=request.origin, seed=partial(choose_seed, seed),
                    progress=terminal, watch=watch, give_up=partial(give_up, path),
                )  # fmt: skip
        else:
            means = Means(cache=Cache(progress=terminal), progress=UniqueMessages(terminal), offline=request.offline)
            run_on_one_machine(request, path, lock, seed, terminal, partial(give_up, path), **means)
        write_up(path, request.fail_on, notify=request.notify)


def find_place(request: RunRequest) -> tuple[Path, Lock | None]:
    """The run's directory, and the lock of the run that goes on there. Raises InputError, HeldError, HostError."""
    study = request.study
    if request.wants_exact_part:
        first_part(study)
    path = request.out or default_out(study)
    with suppress(FileNotFoundError):
        path.stat()
    refuse_second(path)  # Again when it is held: two may begin at the same time.
    run = RunDir.open(path) if (path / "lock.json").is_file() else None
    lock = run.lock(prepared=False) if run is not None else None
    if run is None or lock is None:
        check_free(path)
    else:
        run.plan()
        run.names()
        if request.seed not in (None, lock.seed):
            problem = f"{path} was planned with --seed {lock.seed}, not {request.seed}"
            raise InputError(problem, "Give another --out.")
        if request.fleet:
            from kduel.run.fleet.session import check_of_fleet

            check_of_fleet(lock, study, path)
        else:
            check_same_study(lock, study, path)
        check_none_removed(run, lock)
    if request.fleet or (lock is not None and lock.fleet):
        if request.exact_first:
            raise InputError("an exact part cannot come before a run on a fleet", "Leave out --exact-first.")
        if request.offline:
            raise InputError("--offline does not reach the machines of a fleet", "Leave it out.")
    return path, lock


def run_on_one_machine(
    request: RunRequest,
    path: Path,
    lock: Lock | None,
    seed: int | None,
    terminal: Terminal,
    give_up: GiveUp,
    **means: Unpack[Means],
) -> None:
    """Carry the study out here, its exact part first where it is to have one. `lock` is that of a run that goes on."""
    from kduel.run.check import check_at_once
    from kduel.run.prepare import describe_turns, get_kernels, get_machine, open_early, read_study
    from kduel.run.runner import run_study

    study, origin = request.study, request.origin
    read = read_study(study, origin, lock)
    check_at_once(study, read.kind, read.settings, read.prepared, means["cache"].root, lock)
    with ExitStack() as held:
        with prepare_in_background(study, read, terminal, **means) as early:
            got = get_kernels(read, lock=lock, **means)
            terminal.info(f"{' against '.join(study.names)}: {describe_plan(got.study)}, in {path}")
            for sentence in study.left_out:
                terminal.info(sentence)
            if wants_exact_part(request.exact_first, got, path, by_default=request.counts_by_default, **means):
                seed = choose_seed(seed, exact=got.kind.exact)
                run = open_early(got, path, origin=origin, seed=seed)
                held.enter_context(run.hold())
                count_first(got, run, terminal, asked=request.exact_first, **means)
            early.wait()
        ready = get_machine(got, **means)
        seed = choose_seed(seed, exact=ready.machine.exact)
        try:
            if ready.machine.timing_warning:
                terminal.info(ready.machine.timing_warning)
            if exploratory := [step.label for step in ready.study.steps if step not in study.steps]:
                terminal.info(
                    f"In an emulator these vary too much to decide, and are exploratory: {', '.join(exploratory)}."
                )
            for warning in filter(None, (shortage_warning(ready.study), realtime_warning(ready.study))):
                terminal.warn(warning)
            if turns := describe_turns(ready.study.blocks, len(ready.arms)):
                terminal.info(turns)
            if fewer := ready.prepared.fewer_slices():
                terminal.info(f"In fewer slices, as a slice takes whole seconds: {', '.join(fewer)}.")
            held.close()  # From here on the trials hold the run.
            with show_trials(terminal, ready.study, study.machine, ready.machine.parallel) as (watch, boot_started):
                run_study(
                    ready, path, origin=origin, seed=seed, progress=terminal, watch=watch, boot_started=boot_started,
                    give_up=give_up,
                )  # fmt: skip
        finally:
            ready.machine.close()


def choose_seed(given: int | None, exact: bool) -> int:
    """The seed of a run, where one is given; else always the same on an exact machine, and drawn on others."""
    return given if given is not None else EXACT_SEED if exact else secrets.randbelow(2**31)


@contextmanager
def explain_interruption(path: Path) -> Iterator[None]:
    """Whenever an interruption comes, also while the report is written: nothing is lost, and how to go on."""
    try:
        yield
    except (KeyboardInterrupt, RuntimeError) as error:
        if is_interruption(error) and (path / "lock.json").is_file():
            say(
                f"kduel: interrupted; {describe_progress(path)}. Go on with:",
                f"kduel resume {shlex.quote(str(path))}",
            )
            show_exact_part(path)
            raise ReportedInterrupt from error
        if isinstance(error, KeyboardInterrupt):
            say("kduel: interrupted; nothing is measured yet. Go on with the same command.")
            raise ReportedInterrupt from error
        raise
    except KduelError:
        show_exact_part(path)
        raise


def describe_progress(path: Path) -> str:
    """Number of complete trials of an interrupted run's present part, in words."""
    run = RunDir.open(path)
    if run.lock(prepared=False).prepared:
        boots, nothing = len(run.names()), "no trial is complete yet"
    else:
        boots, nothing = len(RunDir(run.exact_part).names()) if run.exact_part else 0, "nothing is counted yet"
    return trials_kept(boots) if boots else nothing


def show_exact_part(path: Path) -> None:
    """Print the path of the exact part's report, if that part is complete."""
    if has_report(path / EXACT):
        say("The exact part is complete:", str(path / EXACT / PAGE))


def default_out(study: Study) -> Path:
    """kduel-runs/SUITE-A-vs-B, or with a number where that one is finished or of another study; of more than three the kernels."""
    kernels = dict.fromkeys(contender.kernel for contender in study.contenders)
    names = list(kernels) if len(study.names) > 3 else study.names
    # A name is cut where it is too long.
    name = re.sub(r"(-vs?)?[-.]*$", "", slug(f"{study.about.name}-{'-vs-'.join(names[:3])}"))
    number = 1
    while True:
        path = RUNS / (name if number == 1 else f"{name}-{number}")
        if not path.exists() or is_unfinished(path, study):
            return path
        number += 1


def is_unfinished(path: Path, study: Study) -> bool:
    """True if `path` holds an unfinished run of this study."""
    if not (path / "lock.json").is_file() or has_report(path):
        return False
    return same_study(RunDir.open(path).lock(prepared=False), study)


def describe_plan(study: Study) -> str:
    """Number of blocks, in words."""
    blocks = study.blocks.count
    if study.blocks.fixed is not None or blocks == 1:
        return plural(blocks, "block")
    if study.machine == "icount":
        return f"1 block of everything, and up to {blocks - 1} more of what it leaves undecided"
    return f"up to {plural(blocks, 'block')}, fewer when it is decided sooner"
