"""Rules for taking a machine out of service (docs/fleets.md, Quarantine), by its behaviour: the values that are compared play no
part, so that leaving a machine out cannot favour a contender."""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from msgspec import Struct, field, structs

from kduel.core.experiment import Contender
from kduel.core.format import with_sign
from kduel.core.samples import Samples
from kduel.judge.verdict.voids import at_least

LEVEL = 0.001
FEWEST_VOID = 3
SLOW = 5.0
SLOW_BLOCKS = 3
FEWEST_TWINS = 6
FEWEST_PEERS = 2
"""With fewer others it is unknown which machine is the odd one."""


class Conduct(Struct):
    """Facts about a machine's trials, apart from their values."""

    trials: int = 0
    void: int = 0
    blocks: list[float] = field(default_factory=list)
    """Seconds of each block, the last one last; blocks with void trials are left out."""
    apart: dict[str, list[float]] = field(default_factory=dict)
    """By pair of equal contenders and metric, the log-ratio of each block."""


def find_misbehaving(conduct: Mapping[str, Conduct]) -> dict[str, str]:
    """The machines, of those in service, that are to be quarantined, and why. Never all but one of them."""
    found: dict[str, str] = {}
    spreads = {name: pair_variances(own) for name, own in conduct.items()}
    for name, own in conduct.items():
        peers = [other for peer, other in conduct.items() if peer != name]
        others = [spread for peer, spread in spreads.items() if peer != name]
        if len(peers) >= FEWEST_PEERS and (
            why := void_reason(own, peers, len(conduct))
            or slow_reason(own, peers)
            or difference_reason(own, spreads[name], others, len(conduct))
        ):
            found[name] = why
    return found if len(conduct) - len(found) >= FEWEST_PEERS else {}


def void_reason(own: Conduct, peers: list[Conduct], machines: int) -> str:
    """Reason to quarantine a machine for its share of void trials, or an empty string."""
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


def slow_reason(own: Conduct, peers: list[Conduct]) -> str:
    """Reason to quarantine a machine for which the others would wait all the time, or an empty string."""
    last, others = own.blocks[-SLOW_BLOCKS:], [seconds for one in peers for seconds in one.blocks]
    if len(last) < SLOW_BLOCKS or len(others) < SLOW_BLOCKS:
        return ""
    usual = statistics.median(others)
    if min(last) <= SLOW * usual:
        return ""
    return (
        f"its last {SLOW_BLOCKS} blocks took {min(last):.1f} s or more, and those of the other machines {usual:.1f} s"
    )


def pair_variances(own: Conduct) -> dict[str, float]:
    """Variance of each pair and metric with enough blocks. Once for each machine, as every other one is compared with it."""
    return {what: statistics.variance(values) for what, values in own.apart.items() if len(values) >= FEWEST_TWINS}


def difference_reason(own: Conduct, spread: dict[str, float], peers: list[dict[str, float]], machines: int) -> str:
    """Reason to quarantine a machine that tells equal contenders apart, or an empty string, by variances."""
    from scipy.special import stdtr

    for what, variance in spread.items():
        found = own.apart[what]
        others = [one[what] for one in peers if what in one]
        if len(others) < FEWEST_PEERS:
            continue
        error = math.sqrt(max(variance, statistics.fmean(others)) / len(found))
        mean = statistics.fmean(found)
        if not error:
            continue
        chance = 2 * float(stdtr(len(found) - 1, -abs(mean) / error))
        if chance < LEVEL / (machines * len(own.apart)):
            return (
                f"{what}, which are the same, differ on it by {with_sign(100 * math.expm1(mean), '.2g')} % over {len(found)} blocks "
                f"(Student's t: p = {chance:.2g})"
            )
    return ""


def equal_pairs(contenders: Sequence[Contender], kernels: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of contenders that differ only in name, `kernels` by SHA-256. None where all are the same."""
    nameless = [(structs.replace(one, name=""), kernel) for one, kernel in zip(contenders, kernels, strict=True)]
    found = [
        (contenders[first].name, contenders[second].name)
        for first, second in combinations(range(len(contenders)), 2)
        if nameless[first] == nameless[second]
    ]
    return found if len(found) < math.comb(len(contenders), 2) else []


def pair_differences(
    samples: Sequence[Samples], pairs: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, str, float]]:
    """For each block its machine, the pair with the metric, and the log-ratio; primary metrics and positive values only."""
    for table in samples:
        if not table.primary or not table.machines:
            continue
        for first, second in pairs:
            what = f"{first} and {second} in {table.key}"
            for machine, one, other in zip(table.machines, table.values[first], table.values[second], strict=True):
                if one is not None and other is not None and one > 0 and other > 0:
                    yield machine, what, math.log(other / one)
