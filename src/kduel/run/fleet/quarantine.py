"""When a machine is taken out of service: by how many of its trials are void, and by how long they take. The values
that are compared play no part, so that leaving a machine out cannot favour a contender.

Checked after each complete round, over all of a machine's trials so far:
- void: three or more of its trials are void, and so many or more would occur by chance with a probability below
  LEVEL / machines, if its share of void trials were that of the other machines in service (Fisher's exact test);
- slow: its last SLOW_BLOCKS blocks each took over SLOW times the median block of the other machines, so that all others
  wait for it. It is a fact about the machine: both contenders run in each block.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from msgspec import Struct, field

from kduel.judge.verdict.voids import at_least

LEVEL = 0.001
FEWEST_VOID = 3
SLOW = 5.0
SLOW_BLOCKS = 3
FEWEST_PEERS = 2
"""With fewer others it is unknown which machine is the odd one."""


class Conduct(Struct):
    """What is known of a machine's trials, apart from their values."""

    trials: int = 0
    void: int = 0
    blocks: list[float] = field(default_factory=list)
    """Seconds of each block, the last one last; blocks with void trials are left out."""


def misbehaving(conduct: Mapping[str, Conduct]) -> dict[str, str]:
    """The machines, of those in service, that are to be quarantined, and why. Never all but one of them."""
    found: dict[str, str] = {}
    for name, own in conduct.items():
        peers = [other for peer, other in conduct.items() if peer != name]
        if len(peers) >= FEWEST_PEERS and (why := too_void(own, peers, len(conduct)) or too_slow(own, peers)):
            found[name] = why
    return found if len(conduct) - len(found) >= FEWEST_PEERS else {}


def too_void(own: Conduct, peers: list[Conduct], machines: int) -> str:
    """Why its share of void trials is not that of its peers, or an empty string."""
    void, trials = sum(one.void for one in peers), sum(one.trials for one in peers)
    if own.void < FEWEST_VOID or own.void * trials <= void * own.trials:
        return ""
    chance = at_least(own.void, own.trials, void, trials)
    if chance >= LEVEL / machines:
        return ""
    return (
        f"{own.void} of its {own.trials} trials are void, and {void} of {trials} of the other machines "
        f"(Fisher's exact test: p = {chance:.2g})"
    )


def too_slow(own: Conduct, peers: list[Conduct]) -> str:
    """Why the others would wait for it all the time, or an empty string."""
    last, others = own.blocks[-SLOW_BLOCKS:], [seconds for one in peers for seconds in one.blocks]
    if len(last) < SLOW_BLOCKS or len(others) < SLOW_BLOCKS:
        return ""
    usual = statistics.median(others)
    if min(last) <= SLOW * usual:
        return ""
    return (
        f"its last {SLOW_BLOCKS} blocks took {min(last):.1f} s or more, and those of the other machines {usual:.1f} s"
    )
