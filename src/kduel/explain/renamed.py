"""Functions that two kernels call by other names, or from another place: the same work. One that only one kernel has
is paired with one of the other by a common caller and a like name, or like calls and length."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping

from msgspec import Struct

from kduel.explain.profile import Profile, Stack

ALIKE_CALLS = 0.5
"""Share of all called functions that both must call."""
ALIKE_LENGTH = math.log(1.25)
"""Of the logarithm of the instructions of both, with what they call."""
NAMED_LENGTH = math.log(2)
"""The same where one name begins with the other."""
LEAST_STEM = 6
"""Characters that a name must have to tell anything as the beginning of another one."""


class MovedCall(Struct, frozen=True, kw_only=True):
    """A function that the contender calls from elsewhere; instructions over all operations, with what it calls."""

    function: str
    baseline_from: str
    contender_from: str
    baseline: int
    contender: int


class Calls(Struct):
    """Chains of one kernel, function by function."""

    callers: dict[str, dict[str, int]]
    """By function, the instructions below it by its caller; the context stands for the caller of the outermost."""
    callees: dict[str, set[str]]
    above: dict[str, set[str]]
    """Every function that was under way when it was called."""

    @classmethod
    def from_stacks(cls, stacks: Mapping[Stack, int]) -> Calls:
        """Read off call chains. A recursive function counts where it was entered first."""
        callers: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        callees, above = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
        for chain, count in stacks.items():
            for depth in range(1, len(chain)):
                name, caller = chain[depth], chain[depth - 1]
                callees[caller].add(name)
                if name not in chain[:depth]:
                    callers[name][caller] += count
                    above[name].update(chain[:depth])
        return cls({name: dict(found) for name, found in callers.items()}, dict(callees), dict(above))


def find_renamed(one: Profile, other: Profile) -> dict[str, str]:
    """The baseline's to the contender's name of executed functions that one kernel has; none if ambiguous."""
    before, after = Calls.from_stacks(one.stacks), Calls.from_stacks(other.stacks)
    here, there = one.known | before.callers.keys(), other.known | after.callers.keys()
    gone = {name for name in before.callers if name not in there and not name.startswith("(")}
    new = {name for name in after.callers if name not in here and not name.startswith("(")}
    known: dict[str, str] = {}
    # A caller may have another name, too: each round translates what the one before found.
    while found := _pair(before, after, gone - known.keys(), new - set(known.values()), known):
        known |= found
    return known


def _pair(before: Calls, after: Calls, gone: set[str], new: set[str], known: Mapping[str, str]) -> dict[str, str]:
    """Pairs of which each is the only one for the other."""
    choices = {name: {other for other in new if _is_alike(name, other, before, after, known)} for name in gone}
    wanted = [other for others in choices.values() for other in others]
    return {
        name: next(iter(others))
        for name, others in choices.items()
        if len(others) == 1 and wanted.count(next(iter(others))) == 1
    }


def _is_alike(name: str, other: str, before: Calls, after: Calls, known: Mapping[str, str]) -> bool:
    if not {known.get(caller, caller) for caller in before.callers[name]} & after.callers[other].keys():
        return False
    lengths = sum(before.callers[name].values()), sum(after.callers[other].values())
    if not all(lengths):
        return False
    apart = abs(math.log(lengths[0] / lengths[1]))
    stems = sorted((name.strip("_"), other.strip("_")), key=len)
    if len(stems[0]) >= LEAST_STEM and stems[1].startswith(stems[0]) and apart <= NAMED_LENGTH:
        return True
    calls = {known.get(callee, callee) for callee in before.callees.get(name, set())}
    others = after.callees.get(other, set())
    if apart > ALIKE_LENGTH:
        return False
    return bool(calls & others) and len(calls & others) >= ALIKE_CALLS * len(calls | others)


def translate(stacks: Mapping[Stack, int], renamed: Mapping[str, str]) -> dict[Stack, int]:
    """The baseline's chains with the contender's names."""
    found: dict[Stack, int] = defaultdict(int)
    for chain, count in stacks.items():
        found[tuple(renamed.get(name, name) for name in chain)] += count
    return dict(found)


def find_moved(one: Profile, other: Profile) -> list[MovedCall]:
    """Functions that other callers call, the largest first; the baseline's chains have the contender's names. Both kernels have both callers; one that was only put
    between, or taken out of the chain, moves nothing: so it is where a compiler inlines another function."""
    before, after = Calls.from_stacks(one.stacks), Calls.from_stacks(other.stacks)
    found = []
    for name in before.callers.keys() & after.callers.keys():
        gone = (before.callers[name].keys() - after.callers[name].keys() - after.above[name]) & other.known
        new = (after.callers[name].keys() - before.callers[name].keys() - before.above[name]) & one.known
        if gone and new:
            here = max(sorted(gone), key=before.callers[name].__getitem__)
            there = max(sorted(new), key=after.callers[name].__getitem__)
            found.append(
                MovedCall(
                    function=name,
                    baseline_from=here,
                    contender_from=there,
                    baseline=before.callers[name][here],
                    contender=after.callers[name][there],
                )
            )
    return sorted(found, key=lambda row: (-max(row.baseline, row.contender), row.function))
