"""What the host did during the trials: figures for a strip by trial, and one sentence."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from kduel.core.experiment import HOST_DISTURBED
from kduel.core.host import other_work, wait_share
from kduel.core.results import Results, TrialResult
from kduel.core.text import plural, visible


class HostFigures(Struct, frozen=True):
    """Of one trial, in per cent; None is unknown."""

    waited: float | None
    """Of the time that the guest's CPUs were ready to run: how much of it they waited for a CPU of the host."""
    other: float | None
    """Of the host's CPU time: how much went to other programs."""


def figures(trial: TrialResult) -> HostFigures:
    """The figures of a trial over its steps."""
    steps = list(trial.host.values())
    shares = wait_share(steps), other_work(steps)
    return HostFigures(*(None if share is None else round(100 * share, 2) for share in shares))


def recorded(results: Results) -> bool:
    """Whether there is a figure of any trial to draw."""
    return any(figures(trial).waited is not None for trial in results.trials)


def host_line(results: Results) -> str:
    """What the host did, as a sentence; empty where it was not recorded, or where intervals do not depend on it."""
    if results.machine.exact:
        return ""
    found = [figures(trial) for trial in results.trials]
    parts = []
    if other := [one.other for one in found if one.other is not None]:
        parts.append(f"other work took {spread(other)} of the CPUs")
    if waited := [one.waited for one in found if one.waited is not None]:
        parts.append(f"the guest waited for a CPU for {spread(waited)} of its runnable time")
    again = Counter(one.contender for one in results.repeated if one.void and one.void.code == HOST_DISTURBED)
    if again:
        by = ", ".join(f"{number} of {visible(name, 200)}" for name, number in again.items())
        parts.append(
            f"{plural(again.total(), 'disturbed boot')} {'was' if again.total() == 1 else 'were'} made again ({by})"
        )
    *first, last = parts or [""]
    words = f"{', '.join(first)}, and {last}" if first else last
    return f"On the host during the trials: {words}." if words else ""


def spread(values: list[float]) -> str:
    """`12 % (3 to 40 % by trial)`: the mean and the range, in per cent."""
    mean, low, high = sum(values) / len(values), min(values), max(values)
    words = f"{mean:.0f} %" if mean >= 1 else f"{mean:.1f} %"
    return f"{words} ({low:.0f} to {high:.0f} % by trial)" if round(low) != round(high) else words
