"""The gate of every trial: was it the planned machine? It sees neither names nor measured values."""

from collections.abc import Mapping
from typing import Any

_WORDS = {
    "release": "the kernel's release",
    "architecture": "the architecture",
    "clocksource": "the clock source",
    "clocksource_end": "the clock source at the end",
    "cpus": "the number of CPUs",
}


def clock_trouble(guest: float, host: float) -> str:
    """Reason why a guest's clock cannot be trusted, or an empty string: the seconds that passed by it, and by the host's, between
    the same two marks. On a busy host a mark is read late, which a few seconds and a quarter forgive; a kernel that was
    held up while it measured its clock's frequency is wrong by much more (50 times was seen)."""
    if abs(guest - host) <= 5 + host / 4:
        return ""
    return f"its clock advanced by {guest:,.0f} s in {host:,.0f} s; its kernel measured the clock's frequency wrongly"


def gate(environment: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """Reason why the trial is void, or an empty string. `expected` holds keys of `read_environment` (release,
    architecture, clocksource, cpus, ...); one that was not captured voids it, too."""
    reasons = []
    for key, value in expected.items():
        seen = environment.get(key)
        if seen != value:
            reasons.append(f"{_WORDS.get(key, key)} is {'unknown' if seen is None else seen}, planned is {value}")
    return "; ".join(reasons)
