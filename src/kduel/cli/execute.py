"""What `run` and `resume` share: carry a study out before the user's eyes, then write it up."""

from __future__ import annotations

import secrets
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from kduel.cli.futility import Choice, chosen, gives_up
from kduel.cli.interrupt import interrupted
from kduel.cli.terminal import Terminal
from kduel.core.errors import NOT_MEASURED, SLOWER, InputError
from kduel.core.text import plural, printable
from kduel.study.load import Study
from kduel.study.plan import slug

if TYPE_CHECKING:
    from kduel.run.runner import GiveUp, TrialDone, Watcher
    from kduel.store.documents import FleetRecord, Lock

RUNS = Path("kduel-runs")

EXACT_SEED = 1
"""Of runs on an exact machine for which none is given."""
TOLD_AT_MOST = 7
"""Primary metrics; a matrix may have hundreds."""
TOO_WIDE_TO_TELL = 1000.0
"""Per cent: the interval of two blocks may go from nothing to any power of ten."""


def carry_out(
    study: Study,
    *,
    out: Path | None,
    origin: str,
    seed: int | None,
    offline: bool,
    futility: Choice | None,
    fail_on: str | None,
    quiet: bool,
    fleet: str | FleetRecord = "",
) -> None:
    """Make ready, run, judge, report; ends the process with the exit status that `--fail-on` asks for.

    Without a seed the run's own is used, or else one that is drawn. On an exact machine it is always the same one, so that
    a repetition of the command gives the same numbers.
    """
    from kduel.core.cache import Cache
    from kduel.run.prepare import make_ready
    from kduel.run.runner import run_study
    from kduel.store.rundir import RunDir

    terminal = Terminal(quiet)
    choice = chosen(futility, quiet)
    path = out or default_out(study)
    with suppress(FileNotFoundError):
        path.stat()  # What cannot be a path is refused before anything is fetched.
    lock = RunDir.open(path).lock() if (path / "lock.json").is_file() else None
    if lock is not None:
        seed = seed_of(lock, path, seed)
        if lock.contenders != study.contenders:
            lock = None
    if lock is not None and lock.fleet is not None and not fleet:
        fleet = lock.fleet
    with told_how_to_go_on(path):
        if fleet:
            if offline:
                raise InputError("--offline does not reach the machines of a fleet", "Leave it out.")
            give_up = partial(gives_up, choice, terminal, path)
            with_fleet(study, fleet, path, origin, partial(chosen_seed, seed), terminal, give_up)
            write_up(path, fail_on)
            return
        ready = make_ready(
            study, cache=Cache(progress=terminal), progress=terminal, offline=offline, lock=lock, origin=origin
        )
        seed = chosen_seed(seed, ready.machine.exact)
        try:
            if ready.machine.timing_warning:
                terminal.warn(ready.machine.timing_warning)
            terminal.info(f"{' against '.join(study.names)}: {told_plan(study)}, in {path}")
            if not ready.machine.exact and (short := too_short(study)):
                terminal.warn(short)
            with watched(terminal, study) as watch:
                run = run_study(
                    ready,
                    path,
                    origin=origin,
                    seed=seed,
                    progress=terminal,
                    watch=watch,
                    give_up=partial(gives_up, choice, terminal, path),
                )
        finally:
            ready.machine.close()
        write_up(run.path, fail_on)


def chosen_seed(given: int | None, exact: bool) -> int:
    """The seed of a run, where one is given; else always the same on an exact machine, and drawn on others."""
    return given if given is not None else EXACT_SEED if exact else secrets.randbelow(2**31)


def with_fleet(
    study: Study,
    fleet: str | FleetRecord,
    path: Path,
    origin: str,
    seed: Callable[[bool], int],
    terminal: Terminal,
    give_up: GiveUp,
) -> None:
    """The same on several machines, as the command line names them, or as an interrupted run has them."""
    from kduel.run.fleet.session import read_fleet, run_fleet

    kind, table = read_fleet(fleet) if isinstance(fleet, str) else (fleet.kind, fleet.settings)
    terminal.info(f"{' against '.join(study.names)}: {told_plan(study)}, on the fleet {kind}, in {path}")
    with watched(terminal, study) as watch:
        run_fleet(study, kind, table, path, origin=origin, seed=seed, progress=terminal, watch=watch, give_up=give_up)


@contextmanager
def watched(terminal: Terminal, study: Study) -> Iterator[Watcher]:
    """A bar of the trials, and a line for each that ends."""
    planned = len(study.names) * (study.blocks.fixed or study.blocks.max)
    with terminal.task("trials", total=planned) as task:
        shown = 0

        def watch(progress: TrialDone) -> None:
            nonlocal shown
            task.advance(progress.done - shown)
            shown = progress.done
            terminal.info(told_trial(progress))
            if progress.block_done and progress.standings:
                terminal.info(f"      {told_standing(progress, len(study.names))}")

        yield watch


@contextmanager
def told_how_to_go_on(path: Path) -> Iterator[None]:
    """Whenever an interruption comes, also while the report is written: nothing is lost, and how to go on."""
    try:
        yield
    except (KeyboardInterrupt, RuntimeError) as error:
        if interrupted(error) and (path / "lock.json").is_file():
            click.echo(f"kduel: interrupted; what is measured is kept. Go on with: kduel resume {path}", err=True)
        raise


def default_out(study: Study) -> Path:
    """kduel-runs/SUITE-A-vs-B, or with a number where that one is finished or of another study."""
    name = slug(f"{study.about.name}-{'-vs-'.join(study.names[:3])}")
    number = 1
    while True:
        path = RUNS / (name if number == 1 else f"{name}-{number}")
        if not path.exists() or unfinished(path, study):
            return path
        number += 1


def unfinished(path: Path, study: Study) -> bool:
    """Whether `path` holds a run of this very study that has not come to its end."""
    from kduel.store.identity import same_study
    from kduel.store.rundir import RunDir

    if not (path / "lock.json").is_file() or (path / "report").is_dir():
        return False
    return same_study(RunDir.open(path).lock(), study)


def seed_of(lock: Lock, path: Path, seed: int | None) -> int:
    """The seed of the run that is there. Raises InputError where another one was asked for."""
    if seed not in (None, lock.seed):
        raise InputError(f"{path} was planned with --seed {lock.seed}, not {seed}", "Give another --out.")
    return lock.seed


def told_plan(study: Study) -> str:
    """How many blocks, in words."""
    if study.blocks.fixed is not None:
        return plural(study.blocks.fixed, "block")
    if study.blocks.max == 1:
        return "1 block"
    return f"up to {study.blocks.max} blocks, fewer when it is decided sooner"


def too_short(study: Study) -> str:
    """What is to be said of a study whose blocks are too few for any verdict; empty where they are not."""
    from kduel.judge.verdict.rule import fewest_for

    comparisons = (len(study.names) - 1) * sum(len(step.primary) for step in study.steps)
    blocks, fewest = study.blocks.fixed or study.blocks.max, fewest_for(comparisons)
    if not comparisons or not 1 < blocks < fewest:
        return ""
    return (
        f"{blocks} blocks are too few for a statistical verdict: one of {comparisons} primary comparison(s) takes {fewest} "
        "complete blocks. Only values that chance has no part in can be decided."
    )


def told_trial(progress: TrialDone) -> str:
    """A line about a trial that has just ended."""
    record = progress.record
    line = (
        f"{progress.done:4}  block {record.block:<3} {record.contender:<28} {record.seconds:6.1f} s  {record.status}"
    )
    if record.member:
        line += f"  on {record.member}"
    if record.void:
        line += f"  {str(record.void).splitlines()[0][:160]}"
    elif record.failed_steps:
        line += "  without " + ", ".join(f"{label} ({why[:80]})" for label, why in record.failed_steps.items())
    return line


def told_standing(progress: TrialDone, arms: int) -> str:
    """Each primary metric's present interval, what is decided, and how long the rest may take."""
    parts = []
    for one in progress.standings[:TOLD_AT_MOST]:
        whose = f" of {one.contender}" if arms > 2 else ""
        unit = " %" if one.scale == "ratio" else ""
        wide = one.low is None or (one.scale == "ratio" and one.high is not None and one.high > TOO_WIDE_TO_TELL)
        if one.scale == "exact" and one.low is not None and one.high is not None:
            interval = f"{one.low:+,.0f}" + (f" to {one.high:+,.0f}" if one.high != one.low else "")
        else:
            interval = "no interval yet" if wide else f"{one.low:+.2f} to {one.high:+.2f}{unit}"
        rest = one.verdict if one.decided else f"~{one.blocks_more} more blocks" if one.blocks_more else "undecided"
        parts.append(f"{one.benchmark}/{one.metric}{whose} {interval} ({rest})")
    if others := progress.standings[TOLD_AT_MOST:]:
        parts.append(f"and {len(others)} more, {sum(one.decided for one in others)} of them decided")
    undecided = [one for one in progress.standings if not one.decided]
    blocks_left = (progress.planned - progress.done) // arms
    if undecided and blocks_left:
        needed = max((one.blocks_more or blocks_left) for one in undecided)
        minutes = min(needed, blocks_left) * arms * progress.mean_seconds / 60
        parts.append(f"about {minutes:.0f} min left" if minutes >= 1 else "less than a minute left")
    return "; ".join(parts)


def write_up(path: Path, fail_on: str | None) -> None:
    """The report in the terminal and as a page, results.json beside; ends the process where `--fail-on` applies."""
    from kduel.judge.evaluate import judge_run
    from kduel.report.content.counted import is_counted, next_command
    from kduel.report.text import show
    from kduel.store.rundir import told_as_disk_trouble, write_whole

    results = judge_run(path)
    click.echo(show(results), nl=False, color=True)
    if is_counted(results) and (command := next_command(results, shlex.quote(str(path)))):
        click.echo(f"\nWhere the largest difference comes from: {command}")
    with told_as_disk_trouble(path):
        write_whole(path / "results.json", msgspec.json.encode(results) + b"\n")
    sys.stdout.flush()
    # In a process of its own: drawing takes more memory than all else, and never gives it back.
    page = [sys.executable, "-P", "-m", "kduel", "report", "--format", "html", "--", str(path)]
    if failed := subprocess.run(page, check=False).returncode:
        raise click.exceptions.Exit(failed)
    slower = [m for m in results.metrics if m.role == "primary" and m.verdict == "slower"]
    if fail_on == "slower" and slower:
        sys.stdout.flush()
        raise click.exceptions.Exit(SLOWER)
    whole = {trial.contender for trial in results.trials if trial.status != "void"}
    lost = [contender.name for contender in results.contenders if contender.name not in whole]
    if lost:
        click.echo(printable(f"kduel: not measured: {', '.join(lost)}; the report says why."), err=True)
        raise click.exceptions.Exit(NOT_MEASURED)
