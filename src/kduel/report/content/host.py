"""Record of the host, or of a real machine itself, during the trials: figures for a strip by trial, and one sentence."""

from collections import Counter
from collections.abc import Iterable
from statistics import fmean
from typing import Literal

from msgspec import Struct

from kduel.core.experiment import HOST_DISTURBED
from kduel.core.host import other_work, pressure, share, wait_share
from kduel.core.results import Results, TrialResult
from kduel.core.text import plural, visible
from kduel.report.content.evidence import evidence

NOTABLE = 5.0
"""Per cent of the time in which some task of the host waited for a disk or for memory: below it, nobody needs to know."""
NOTABLE_STEAL = 0.5
"""CPU seconds in 100 seconds that a host, itself virtual, could not get: below it, nobody needs to know."""


class HostFigures(Struct, frozen=True):
    """Figures of one trial, over its steps; None is unknown."""

    waited: float | None = None
    """Per cent of the time that the guest's CPUs were ready to run, in which they waited for a CPU of the host."""
    other: float | None = None
    """Per cent of the host's CPU time that went to other programs."""
    pressed: float | None = None
    """Per cent of the time in which some task waited for a CPU; on a real machine those of the benchmark as well."""
    disk: float | None = None
    """Share of the time in which some task waited for a disk."""
    memory: float | None = None
    """Share of the time in which some task waited for memory."""
    steal: float | None = None
    """CPU seconds in 100 seconds that a host, itself virtual, could not get."""
    throttled: int | None = None
    """How often a CPU was slowed down for its heat."""


def figures(trial: TrialResult) -> HostFigures:
    steps = list(trial.host.values())

    def share_pct(parts: Iterable[tuple[float, float | None]]) -> float | None:
        return per_cent(share(parts))

    counts = [step.throttled for step in steps]
    return HostFigures(
        waited=per_cent(wait_share(steps)),
        other=per_cent(other_work(steps)),
        pressed=per_cent(pressure(steps)),
        disk=share_pct((step.seconds, step.psi_io_some) for step in steps),
        memory=share_pct((step.seconds, step.psi_memory_some) for step in steps),
        steal=share_pct(
            (step.seconds, None if step.steal_s is None else step.steal_s / step.seconds)
            for step in steps
            if step.seconds > 0
        ),
        throttled=sum(count for count in counts if count is not None) if counts and None not in counts else None,
    )


def per_cent(part: float | None) -> float | None:
    return None if part is None else round(100 * part, 2)


Drawn = Literal["", "waited", "pressed"]


def drawn_figure(results: Results) -> Drawn:
    """Figure that the strip shows: how long guests waited, else the pressure on real machines; None if unknown."""
    found = [figures(trial) for trial in results.trials]
    if any(one.waited is not None for one in found):
        return "waited"
    return "pressed" if any(one.pressed is not None for one in found) else ""


def host_line(results: Results) -> str:
    """Sentence on what the host did; empty where it was not recorded, or where intervals do not depend on it."""
    if not evidence(results).varies:
        return ""
    found = [figures(trial) for trial in results.trials]
    inside = drawn_figure(results) == "pressed"
    parts = []
    if other := [one.other for one in found if one.other is not None]:
        parts.append(f"other work took {spread(other)} of the CPUs")
    if waited := [one.waited for one in found if one.waited is not None]:
        parts.append(f"the guest waited for a CPU for {spread(waited)} of its runnable time")
    if inside and (pressed := [one.pressed for one in found if one.pressed is not None]):
        parts.append(f"some task, the benchmark's included, waited for a CPU for {spread(pressed)} of the time")
    # On a real machine a benchmark of files or memory waits for these itself.
    for name, what in (("disk", "a disk"), ("memory", "memory")):
        values = [value for one in found if (value := getattr(one, name)) is not None]
        if values and not inside and fmean(values) >= NOTABLE:
            parts.append(f"some task waited for {what} for {spread(values)} of the time")
    if (stolen := [one.steal for one in found if one.steal is not None]) and fmean(stolen) >= NOTABLE_STEAL:
        parts.append(f"other virtual machines took {fmean(stolen):.1f} CPU seconds in 100 seconds")
    if hot := [one.throttled for one in found if one.throttled]:
        parts.append(
            f"CPUs were slowed down for their heat {plural(sum(hot), 'time')} in {plural(len(hot), 'trial')}"
        )
    again = Counter(one.contender for one in results.repeated if one.void and one.void.code == HOST_DISTURBED)
    if again:
        by = ", ".join(f"{number} of {visible(name, 200)}" for name, number in again.items())
        parts.append(
            f"{plural(again.total(), 'disturbed boot')} {'was' if again.total() == 1 else 'were'} put aside ({by})"
        )
    where = "On the machine" if inside else "On the host"
    told = ", and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    return f"{where} during the trials: {told}." if parts else ""


def spread(values: list[float]) -> str:
    """`12 % (3 to 40 % by trial)`: the mean and the range, in per cent."""
    low, high = min(values), max(values)
    words = f"{fmean(values):.0f} %" if fmean(values) >= 1 else f"{fmean(values):.1f} %"
    return f"{words} ({low:.0f} to {high:.0f} % by trial)" if round(low) != round(high) else words
