"""The trials of a run, shown while they are made: a table that is redrawn, or a line for each."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kduel.core.format import duration
from kduel.core.host import wait_share
from kduel.core.text import PLAIN_WIDTH, plural, visible

if TYPE_CHECKING:
    from kduel.cli.live import HostLoad
    from kduel.cli.terminal import Terminal
    from kduel.run.watch import BootStarted, TrialDone, Watcher
    from kduel.study.load import Study

WAITED = 0.05
"""The least share of a guest's time that it waited for a CPU of the host, for which its line says so."""
INDENT = " " * 6
METRICS_AT_MOST = 7
"""Primary metrics in a line; a matrix may have hundreds."""


@contextmanager
def show_trials(
    terminal: Terminal, study: Study, where: str, parallel: int | None = None
) -> Iterator[tuple[Watcher, BootStarted]]:
    """Show the run as a table, or a line a trial. `parallel`: boots at once here; None where they run elsewhere."""
    from kduel.cli.live import LiveRun, crowd, read_host

    if terminal.can_draw:
        live = LiveRun(study, where, parallel)
        with terminal.show_frame(lambda width, height: live.frame(width, height, read_host())):
            yield live.end_trial, live.start_boot
        return

    def watch(progress: TrialDone) -> None:
        lines = plain_lines(trial_line(progress, read_host()))
        if progress.block_done and progress.metrics:
            lines += plain_lines(INDENT + standing_line(progress, len(study.names)))
        for line in lines:
            terminal.info(line)

    busy = crowd(read_host())
    terminal.info(f"trials{f': {busy}, so each of them waits for a CPU and takes longer' if busy else ''}")
    yield watch, lambda *_: None


def plain_lines(text: str) -> list[str]:
    """The text in lines of PLAIN_WIDTH columns at most, but for words that are longer, all but the first indented."""
    return textwrap.wrap(
        text, PLAIN_WIDTH, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False,
        drop_whitespace=True,
    )  # fmt: skip


def trial_line(progress: TrialDone, host: HostLoad | None = None) -> str:
    """A line about a trial that has just ended, or about those that a resumed run has; with `host`, it says why a trial was slow."""
    from kduel.cli.live import crowd

    record = progress.record
    if record is None:
        return f"{progress.done:4}  kept"
    line = (
        f"{progress.done:4}  block {record.block:<3} {record.contender:<28} {record.seconds:6.1f} s  {record.status}"
    )
    if record.member:
        line += f"  on {record.member}"
    waited = wait_share(record.host.values())
    if waited is not None and waited >= WAITED:
        line += f"  the guest waited {100 * waited:.0f} % of its time for a CPU"
    if host is not None and not record.member and (busy := crowd(host)):
        line += f"  {busy}"
    if record.void:
        line += f"  {record.void.brief[:160]}"
    elif record.failed_steps:
        line += "  without " + ", ".join(f"{label} ({why[:80]})" for label, why in record.failed_steps.items())
    return line


def standing_line(progress: TrialDone, arms: int) -> str:
    """Each primary metric's present interval, what is decided, and how long the rest may take."""
    from kduel.report.content.notes import key
    from kduel.report.content.overview import NO_INTERVAL, interval_words, need

    known = [one for one in progress.metrics if one.verdict != "undecided" or interval_words(one) != NO_INTERVAL]
    parts = []
    several = arms > 2 or len({one.contender for one in progress.metrics}) > 1
    for one in known[:METRICS_AT_MOST]:
        whose = f" of {visible(one.contender, 60)}" if several else ""
        more = need(one)
        rest = (
            one.label
            if one.verdict != "undecided"
            else f"{more} more block{'s' * (more != '~1')}"
            if more
            else "undecided"
        )
        parts.append(f"{key(one)}{whose} {interval_words(one)} ({rest})")
    if others := known[METRICS_AT_MOST:]:
        decided = sum(one.verdict != "undecided" for one in others)
        parts.append(f"and {len(others)} more, {'' if decided == len(others) else f'{decided} of them '}decided")
    if lacking := len(progress.metrics) - len(known):
        parts.append(f"{NO_INTERVAL} for {plural(lacking, 'metric')}")
    undecided = [one for one in progress.metrics if one.verdict == "undecided"]
    blocks_left = (progress.planned - progress.done) // arms
    if undecided and blocks_left:
        needed = max((one.blocks_more or blocks_left) for one in undecided)
        parts.append(f"about {duration(min(needed, blocks_left) * arms * progress.mean_seconds)} left")
    return "; ".join(parts)
