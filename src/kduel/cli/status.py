"""`kduel status`: how far a run is, from its directory alone."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from msgspec import Struct, structs

from kduel.cli.options import format_option, option, run_argument
from kduel.cli.output import emit, emit_json
from kduel.core.format import duration
from kduel.core.text import cut_in_the_middle, fold, plural, printable, visible
from kduel.judge.verdict.interim import primary_results
from kduel.judge.verdict.unfinished import find_unfinished
from kduel.report.site.live import LiveServer
from kduel.store.run_lock import at_work

if TYPE_CHECKING:
    from kduel.store.run_lock import Holder
    from kduel.store.rundir import RunDir
    from kduel.study.plan import PlannedTrial

State = Literal["running", "stopped", "finished", "unknown"]


SHOWN: dict[State, str] = {
    "running": "running",
    "stopped": "not running",
    "finished": "finished",
    "unknown": "cannot be seen from this host whether it is running",
}
ENDED = frozenset({"done", "lost", "quarantined"})
"""States of a machine that are the same when the controller has ended."""


class MachineStatus(Struct, kw_only=True):
    """One machine of a run; a run without a fleet has one, without a name."""

    name: str
    state: str
    """working, waiting, ahead, idle, done, lost, quarantined, stopped; empty where no controller has reported."""
    doing: list[int]
    """The blocks that it was last given and has not finished."""
    blocks: int
    planned: int
    trials: int
    void: int
    seconds: float
    """The mean of a block; 0 where there is none."""
    message: str


class BootStatus(Struct, kw_only=True):
    """A boot that runs, in a run without a fleet."""

    block: int
    contender: str
    phase: str
    """starting, booting, or the step that the guest announced last."""
    steps: int
    """Number of its steps."""


class RunStatus(Struct, kw_only=True):
    run: str
    part: Literal["", "exact"]
    """exact: there is nothing but the exact part of a run yet, and everything else here is about that."""
    state: State
    """unknown: a kduel on another host was at work in it last, and from this one cannot be seen whether it still is."""
    holder: str
    """The process that is at work in it, or was when it was killed; empty where none is known."""
    seen: str
    """Time of the controller's last report of its machines, UTC; empty in a run without a fleet."""
    blocks: int
    planned: int
    fixed: bool
    """Whether all that are planned are made; else the run ends when it is decided."""
    trials: int
    """Complete ones, with void ones."""
    planned_trials: int
    running: list[BootStatus]
    """The boots that run now; empty in a run on a fleet, whose machines say what they do."""
    seconds_left: float | None
    """Until the last planned block, at the present pace; null where nothing is known."""
    machines: list[MachineStatus]
    metrics: list[str]
    """The present state of each primary metric, a sentence each."""
    waiting: int
    """Number of those that are not judged yet, as no block is complete with them. They are not in `metrics` before the run ends."""
    removed: list[str]
    """The trials that were removed, a sentence each: the run is refused to go on."""


@click.command("status")
@run_argument
@format_option("text", "json")
@option(
    "--serve port",
    "Serve it as a page that stays current on this port of 127.0.0.1 (0: any free one), until Ctrl-C.",
    click.IntRange(0, 65535),
    "PORT",
)
def command(run: Path, form: str, port: int | None) -> None:
    """Show the progress of RUN: each machine's blocks, void trials and current work, the primary metrics, the time left.

    It reads the run's directory and changes nothing, so it works from any machine that sees the directory. Where nobody is at
    work in an unfinished run (its kduel was killed, or its host lost power), it shows how to continue it.
    """
    if port is not None:
        serve(run, port)
        return
    found = read_status(run)
    if form == "json":
        emit_json(found)
    else:
        emit(as_text(found), None)


def serve(run: Path, port: int) -> None:
    """Serve the status until interrupted. Raises InputError like `read_status`, and HostError if the port is not free."""
    read_status(run)
    with LiveServer(port, visible(run.name, 200), lambda: as_text(read_status(run))) as server:
        emit(f"Status of {visible(str(run))}: {server.url} (Ctrl-C ends it)\n")
        try:
            server.serve_forever()
        finally:
            server.ended.set()


def read_status(path: Path) -> RunStatus:
    """Read again from the trials that are there. Raises InputError where `path` is no run, or a damaged one."""
    from kduel.judge.evaluate import judge_run, rule_of
    from kduel.store.collect import collect
    from kduel.store.documents import boot_seconds
    from kduel.store.fleet_state import read_live, read_state
    from kduel.store.integrity import derived_plan, find_removed, trials_of
    from kduel.store.rundir import RunDir

    run = RunDir.open(path)
    lock = run.lock(prepared=False)
    if not lock.prepared and run.exact_part is not None:
        there, holder = at_work(path)
        # It may be complete; the run that it belongs to is not.
        state: State = "running" if there == "yes" else "stopped" if there == "no" else "unknown"
        return structs.replace(
            read_status(run.exact_part), run=str(path), part="exact", state=state, holder=holder_words(holder)
        )
    records, plan = trials_of(run, lock), derived_plan(lock)
    live, out = read_live(path), read_state(path).out
    size = len(lock.contenders)
    by_block = Counter(record.block for record in records)
    host_of = {trial.block: trial.host for trial in plan}
    there, holder = at_work(path)
    whole_blocks = sum(count >= size for count in by_block.values())
    if there == "yes":
        state = "running"
    elif whole_blocks >= len(host_of) or (records and find_unfinished(judge_run(path)) is None):
        state = "finished"
    else:
        state = "stopped" if there == "no" else "unknown"
    machines = []
    for name in lock.hosts or [""]:
        own = [record for record in records if record.member == name]
        blocks = [block for block, host in host_of.items() if host == name]
        whole = [block for block in blocks if by_block[block] >= size]
        doing = live.members.get(name) if live else None
        left = [block for block in (doing.blocks if doing else []) if by_block[block] < size]
        if name in out or doing is None or doing.state in ENDED or state in ("running", "unknown"):
            shown = out[name].why if name in out else doing.state if doing else ""
        else:
            shown, left = ("done" if state == "finished" else "stopped"), []
        machines.append(
            MachineStatus(
                name=name,
                state=shown,
                doing=left,
                blocks=len(whole),
                planned=len(blocks),
                trials=len(own),
                void=sum(record.status == "void" for record in own),
                seconds=boot_seconds(own) / len(own) * size if own else 0.0,
                message=out[name].message if name in out else doing.message if doing else "",
            )
        )
    standings = primary_results(collect(path), rule_of(lock)) if records else []
    judged = [one for one in standings if one.n or state == "finished"]
    running = [] if lock.hosts or state != "running" else running_boots(run, plan)
    return RunStatus(
        run=str(path), part="", state=state, holder=holder_words(holder), seen=live.written if live else "",
        blocks=whole_blocks, planned=len(host_of), fixed=lock.blocks.fixed is not None, trials=len(records),
        planned_trials=len(plan), running=running,
        seconds_left=None if state == "finished" else time_left(machines, size, max(1, len(running))),
        machines=machines, metrics=[f"{one.benchmark}/{one.metric} of {one.contender}: {one.told}" for one in judged],
        waiting=len(standings) - len(judged), removed=find_removed(run, lock, records),
    )  # fmt: skip


def holder_words(holder: Holder | None) -> str:
    return f"process {holder.pid} on {holder.host}" if holder else ""


def running_boots(run: RunDir, plan: list[PlannedTrial]) -> list[BootStatus]:
    """The boots that run now in a run's own directory."""
    from kduel.run.watch import boot_phase

    planned = {trial.position: trial for trial in plan}
    return [
        BootStatus(
            block=planned[position].block,
            contender=planned[position].contender,
            phase=boot_phase(path),
            steps=len(planned[position].steps),
        )
        for position, path in run.staged_boots().items()
        if position in planned
    ]


def time_left(machines: list[MachineStatus], size: int, parallel: int) -> float | None:
    """Seconds for the slowest machine in service, `parallel` trials at once; None before each machine has a trial."""
    serving = [one for one in machines if one.state not in ("lost", "quarantined")]
    if not serving or any(not one.seconds and one.blocks < one.planned for one in serving):
        return None
    return max(max(0, one.planned * size - one.trials) * one.seconds / size for one in serving) / parallel


def as_text(found: RunStatus) -> str:
    """The run in a line, then a line for each machine and each primary metric."""
    from kduel.store.integrity import name_first
    from kduel.store.rundir import EXACT

    left = f", at most {duration(found.seconds_left)} left" if found.state == "running" and found.seconds_left else ""
    most = "" if found.fixed else "up to "
    again = f"kduel resume {shlex.quote(found.run)}"
    if found.part:
        [machine] = found.machines
        lines = [
            f"{found.run}: {SHOWN[found.state]}; nothing is timed yet; exact part: {found.blocks} of {most}"
            f"{plural(found.planned, 'block')}, {plural(machine.trials, 'boot')} counted{left}"
        ]
        if machine.trials:
            lines.append(f"  shown by: kduel report {shlex.quote(f'{found.run}/{EXACT}')}")
    else:
        trials = (
            "" if found.machines[0].name else f", {found.trials} of {most}{plural(found.planned_trials, 'trial')}"
        )
        lines = [
            f"{found.run}: {SHOWN[found.state]}, {found.blocks} of {most}{plural(found.planned, 'block')}{trials}{left}"
        ]
    if found.removed:
        lines.append(f"  {name_first(found.removed)}: restore it from a copy of the run; it is not measured again")
    elif found.state == "stopped":
        killed = f" ({found.holder} was killed, or the host was restarted)" if found.holder else ""
        kept = f"; {trials_kept(found.trials)}" if found.trials else ""
        lines.append(f"  nobody is at work in it{killed}{kept}; continue with: {again}")
    elif found.state == "unknown":
        lines += fold(
            f"  {found.holder or 'a kduel'} was at work in it last: kduel status on that host shows whether it still is;"
        )
        lines.append(f"  if not, continue there with: {again}")
    lines += [
        f"  now: block {one.block}, {one.contender}, {one.phase} ({plural(one.steps, 'step')} in all)"
        for one in found.running
    ]
    if found.state == "running" and found.seconds_left is None and not found.machines[0].name:
        lines.append("  the time left is known after the first complete trial")
    if found.machines[0].name:
        width = max(len("machine"), *(len(one.name) for one in found.machines))
        lines.append(f"  {'machine':{width}}  {'state':11}  {'blocks':>9}  {'void':>4}  {'block':>8}  doing")
        for one in found.machines:
            doing = ", ".join(map(str, one.doing[:4])) + (" ..." if len(one.doing) > 4 else "")
            lines.append(
                f"  {one.name:{width}}  {one.state or 'unknown':11}  {f'{one.blocks}/{one.planned}':>9}  {one.void:>4}  "
                f"{duration(one.seconds) if one.seconds else '':>8}  "
                + " ".join(
                    filter(
                        None,
                        [f"block {doing}" if doing else "", cut_in_the_middle(one.message.partition("\n")[0], 100)],
                    )
                )
            )
        lines.append(f"  as of {found.seen}" if found.seen else "  no controller has run yet")
    lines += [line for metric in found.metrics for line in fold(f"  {metric}")]
    if found.waiting:
        lines.append(
            f"  {plural(found.waiting, 'primary metric')} not judged yet: the first complete block is missing"
        )
    return printable("\n".join(line.rstrip() for line in lines) + "\n")


def trials_kept(number: int) -> str:
    return f"{plural(number, 'complete trial')} {'is' if number == 1 else 'are'} kept"
