"""What `run` and `resume` share: carry a study out before the user's eyes, then write it up."""

from __future__ import annotations

import os
import secrets
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from kduel.cli.exact_first import begun, beside_kernels, check_place, count_first, first_lock, only_first_part, wanted
from kduel.cli.futility import Choice, chosen, gives_up
from kduel.cli.interrupt import ToldInterrupt, interrupted
from kduel.cli.status import trials_kept
from kduel.cli.stdout import NobodyReadsError
from kduel.cli.terminal import Terminal, say
from kduel.core.errors import NOT_MEASURED, SLOWER, HostError, InputError, KduelError
from kduel.core.text import plural, printable, visible
from kduel.store.rundir import BEGUN, EXACT, PAGE, RESULTS, written_up
from kduel.study.first_part import first_part
from kduel.study.load import Study
from kduel.study.plan import slug

if TYPE_CHECKING:
    from kduel.core.results import Results
    from kduel.run.watch import Begun, GiveUp, TrialDone, Watcher
    from kduel.store.documents import FleetRecord, Lock

RUNS = Path("kduel-runs")

EXACT_SEED = 1
"""Of runs on an exact machine for which none is given."""
LINES_BESIDES = 3
"""Of the last screen: where the report is, the prompt, and a contender that could not be measured."""
TOLD_AT_MOST = 7
"""Primary metrics; a matrix may have hundreds."""


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
    exact_first: bool | None = False,
    counts_by_default: bool = False,
) -> None:
    """Make ready, run, judge, report; ends the process with the exit status that `--fail-on` requires.

    Without a seed the run's own is used, or else one that is drawn. On an exact machine it is always the same one, so
    that a repetition of the command gives the same numbers. `exact_first` requests an exact part before the timed
    one, or for none; `counts_by_default`: without a request there is one where KVM does not work."""
    from kduel.core.cache import Cache
    from kduel.core.progress import Once
    from kduel.machines import Means
    from kduel.run.prepare import get_kernels, get_machine, open_run, read_study
    from kduel.run.runner import run_study
    from kduel.store.begun import Begun
    from kduel.store.holder import refuse_second
    from kduel.store.identity import same_study
    from kduel.store.rundir import RunDir

    if exact_first:
        first_part(study)  # What cannot have an exact part is refused before anything is fetched.
    terminal = Terminal(quiet)
    choice = chosen(futility, quiet)
    path = out or default_out(study)
    with suppress(FileNotFoundError):
        path.stat()  # What cannot be a path is refused before anything is fetched.
    # Each of them again when it is held: two may begin at the same time.
    for place in (path, path / EXACT):
        refuse_second(place)
    if not fleet:
        check_place(study, path, exact_first)
    lock = RunDir.open(path).lock() if (path / "lock.json").is_file() else None
    if lock is not None:
        seed = seed_of(lock, path, seed)
        if lock.contenders != study.contenders:
            lock = None
    if lock is not None and written_up(path) and same_study(lock, study) and not os.access(path, os.W_OK):
        terminal.warn(f"{path} is complete and cannot be written: its page and results.json stay as they are.")
        write_up(path, fail_on, keep=False)
        return
    if lock is not None and lock.fleet is not None and not fleet:
        fleet = lock.fleet
    with told_how_to_go_on(path):
        if fleet:
            if exact_first:
                raise InputError("an exact part cannot come before a run on a fleet", "Leave out --exact-first.")
            if offline:
                raise InputError("--offline does not reach the machines of a fleet", "Leave it out.")
            give_up = partial(gives_up, choice, terminal, path)
            with_fleet(study, fleet, path, origin, partial(chosen_seed, seed), terminal, give_up)
            write_up(path, fail_on)
            return
        means = Means(cache=Cache(progress=terminal), progress=Once(terminal), offline=offline)
        if lock is None and exact_first is not False:
            lock = first_lock(study, path)
        read = read_study(study, origin)
        with ExitStack() as held:
            with beside_kernels(study, read, terminal, **means) as early:
                got = get_kernels(read, lock=lock, **means)
                terminal.info(f"{' against '.join(study.names)}: {told_plan(study)}, in {path}")
                for sentence in study.left_out:
                    terminal.info(sentence)
                counted = wanted(exact_first, got, path, by_default=counts_by_default, **means)
                if counted:
                    if (path / "lock.json").is_file():
                        held.enter_context(RunDir.open(path).held())
                    asked = Begun(origin=origin, directory=str(Path.cwd()), seed=seed, study=study)
                    count_first(got, path, terminal, held, begun=asked, asked=exact_first, **means)
                early.wait()
            ready = get_machine(got, **means)
            seed = chosen_seed(seed, ready.machine.exact)
            try:
                if ready.machine.timing_warning:
                    terminal.info(ready.machine.timing_warning)
                if not ready.machine.exact and (short := too_short(study)):
                    terminal.warn(short)
                if counted:
                    open_run(ready, path, origin=origin, seed=seed, exact_part=True)
                held.close()  # From here on the run itself is held.
                with shown(terminal, study, study.machine, ready.machine.parallel) as (watch, begun):
                    run_study(
                        ready,
                        path,
                        origin=origin,
                        seed=seed,
                        progress=terminal,
                        watch=watch,
                        begun=begun,
                        give_up=partial(gives_up, choice, terminal, path),
                    )
            finally:
                ready.machine.close()
        write_up(path, fail_on)


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
    with shown(terminal, study, f"the fleet {kind}") as (watch, _):
        run_fleet(study, kind, table, path, origin=origin, seed=seed, progress=terminal, watch=watch, give_up=give_up)


@contextmanager
def shown(
    terminal: Terminal, study: Study, where: str, parallel: int | None = None
) -> Iterator[tuple[Watcher, Begun]]:
    """Show the run: as a table that is redrawn where the terminal can, else as a line for each trial. `parallel`: how many
    boots may run here at once; None where they run elsewhere."""
    from kduel.cli.live import LiveRun, read_host

    if terminal.can_draw:
        live = LiveRun(study, where, parallel)
        with terminal.drawn(lambda width, height: live.frame(width, height, read_host())):
            yield live.ended, live.began
        return

    def watch(progress: TrialDone) -> None:
        terminal.info(told_trial(progress))
        if progress.block_done and progress.metrics:
            terminal.info(f"      {told_standing(progress, len(study.names))}")

    terminal.info("trials")
    yield watch, lambda *_: None


@contextmanager
def told_how_to_go_on(path: Path) -> Iterator[None]:
    """Whenever an interruption comes, also while the report is written: nothing is lost, and how to go on."""
    try:
        yield
    except (KeyboardInterrupt, RuntimeError) as error:
        if interrupted(error) and ((path / "lock.json").is_file() or begun(path)):
            by_path = any((path / name).is_file() for name in ("lock.json", BEGUN))
            again = f"kduel resume {shlex.quote(str(path))}" if by_path else "the same command"
            say(f"kduel: interrupted; {told_kept(path)}. Go on with:", again)
            tell_exact_part(path)
            raise ToldInterrupt from error
        if isinstance(error, KeyboardInterrupt):
            say("kduel: interrupted; nothing is measured yet. Go on with the same command.")
            raise ToldInterrupt from error
        raise
    except KduelError:
        tell_exact_part(path)
        raise


def told_kept(path: Path) -> str:
    """What an interrupted run has, of what its present part makes."""
    from kduel.store.rundir import RunDir, only_exact_part

    part = only_exact_part(path)
    boots = len(RunDir(part or path).names())
    if not boots:
        return "nothing is counted yet" if part else "no trial is complete yet"
    return trials_kept(boots)


def tell_exact_part(path: Path) -> None:
    """Where the report of a run's exact part is, if that has come to its end."""
    if written_up(path / EXACT):
        say("The exact part is complete:", str(path / EXACT / PAGE))


def default_out(study: Study) -> Path:
    """kduel-runs/SUITE-A-vs-B, or with a number where that one is finished or of another study."""
    name = slug(f"{study.about.name}-{'-vs-'.join(study.names[:3])}")
    number = 1
    while True:
        path = RUNS / (name if number == 1 else f"{name}-{number}")
        if not path.exists() or unfinished(path, study) or only_first_part(study, path):
            return path
        number += 1


def unfinished(path: Path, study: Study) -> bool:
    """Whether `path` holds a run of this very study that has not come to its end."""
    from kduel.store.identity import same_study
    from kduel.store.rundir import RunDir

    if not (path / "lock.json").is_file() or written_up(path):
        return False
    return same_study(RunDir.open(path).lock(), study)


def seed_of(lock: Lock, path: Path, seed: int | None) -> int:
    """The seed of the run that is there. Raises InputError where another one was requested."""
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
    """The warning about a study whose blocks are too few for any verdict; empty where they are not."""
    from kduel.judge.verdict.rule import fewest_for

    comparisons = (len(study.names) - 1) * sum(len(step.primary) for step in study.steps)
    blocks, fewest = study.blocks.fixed or study.blocks.max, fewest_for(comparisons)
    if not comparisons or not 1 < blocks < fewest:
        return ""
    return (
        f"{blocks} blocks are too few for a statistical verdict: one of {comparisons} primary comparison(s) takes {fewest} "
        "complete blocks. Only exact values can be decided."
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
        # A message whose first line ends with a colon has what happened in the next one.
        said = [part.strip() for part in str(record.void).splitlines() if part.strip()]
        line += f"  {' '.join(said[: 2 if said[0].endswith(':') else 1])[:160]}"
    elif record.failed_steps:
        line += "  without " + ", ".join(f"{label} ({why[:80]})" for label, why in record.failed_steps.items())
    return line


def told_standing(progress: TrialDone, arms: int) -> str:
    """Each primary metric's present interval, what is decided, and how long the rest may take."""
    from kduel.cli.live import duration
    from kduel.report.content.notes import key
    from kduel.report.content.overview import interval_words, need

    parts = []
    for one in progress.metrics[:TOLD_AT_MOST]:
        whose = f" of {visible(one.contender, 60)}" if arms > 2 else ""
        more = need(one)
        rest = one.word if one.verdict != "undecided" else f"{more} more blocks" if more else "undecided"
        parts.append(f"{key(one)}{whose} {interval_words(one)} ({rest})")
    if others := progress.metrics[TOLD_AT_MOST:]:
        parts.append(f"and {len(others)} more, {sum(one.verdict != 'undecided' for one in others)} of them decided")
    undecided = [one for one in progress.metrics if one.verdict == "undecided"]
    blocks_left = (progress.planned - progress.done) // arms
    if undecided and blocks_left:
        needed = max((one.blocks_more or blocks_left) for one in undecided)
        parts.append(f"{duration(min(needed, blocks_left) * arms * progress.mean_seconds)} left")
    return "; ".join(parts)


def write_up(path: Path, fail_on: str | None, *, keep: bool = True) -> None:
    """Write the report to the terminal and, to `keep` it, as a page, with results.json; ends the process where `--fail-on`
    applies."""
    from kduel.judge.evaluate import judge_run
    from kduel.report.text import show_closing

    results = judge_run(path)
    try:
        click.echo(show_closing(results, shlex.quote(str(path)), LINES_BESIDES), nl=False, color=True)
    except (HostError, NobodyReadsError):
        if keep:
            keep_report(path, results)
        raise
    if keep:
        keep_report(path, results)
    else:
        click.echo(f"Report: {path / PAGE}")
    slower = [m for m in results.metrics if m.role == "primary" and m.verdict == "slower"]
    if fail_on == "slower" and slower:
        sys.stdout.flush()
        raise click.exceptions.Exit(SLOWER)
    whole = {trial.contender for trial in results.trials if trial.status != "void"}
    lost = [contender.name for contender in results.contenders if contender.name not in whole]
    if lost:
        say(printable(f"kduel: not measured: {', '.join(lost)}; the report gives the reasons."))
        raise click.exceptions.Exit(NOT_MEASURED)


def keep_report(path: Path, results: Results) -> None:
    """Write results.json and the page of a run next to its raw files. Ends the process where the page cannot be written."""
    from kduel.store.rundir import as_disk_error, write_whole

    with as_disk_error(path):
        write_whole(path / RESULTS, msgspec.json.encode(results) + b"\n")
    sys.stdout.flush()
    # In a process of its own: drawing takes more memory than all else, and never gives it back.
    page = [sys.executable, "-P", "-m", "kduel", "report", "--format", "html", "--", str(path)]
    if failed := subprocess.run(page, check=False).returncode:
        raise click.exceptions.Exit(failed)
