"""Two profiles of one operation, function by function. Every count is an integer, and the differences add up."""

from collections.abc import Sequence

from msgspec import Struct, field, structs

from kduel.core.text import plural
from kduel.explain.profile import CONTEXTS, Profile
from kduel.explain.renamed import MovedCall, find_moved, find_renamed, translate

UNSEEN = "caches, stalls, branch prediction, other processors"
"""Costs that a count of instructions does not contain, for whoever shows one."""


class Row(Struct, frozen=True, kw_only=True):
    """A function in one context: instructions executed in itself, over all operations."""

    context: str
    function: str
    baseline: int
    contender: int
    only: str = ""
    """`baseline` or `contender` where the other kernel has no function of that name."""
    was: str = ""
    """The baseline's name of the function, where it is another one."""

    @property
    def difference(self) -> int:
        return self.contender - self.baseline


class Clock(Struct, frozen=True, kw_only=True):
    """The guest's own measurement of the same region, to check the count against."""

    baseline: float
    contender: float
    """Instructions over all operations, by the guest's clock."""


class Shift(Struct, frozen=True, kw_only=True):
    """Change that a condition makes in a function against the plain condition: instructions per operation."""

    function: str
    baseline: float
    contender: float

    @property
    def difference(self) -> float:
        return self.contender - self.baseline


class ConditionCounts(Struct, frozen=True, kw_only=True):
    """An operation under one condition: instructions per operation, the mean over calls, all contexts together."""

    condition: str
    baseline: float
    contender: float
    shifts: list[Shift] = field(default_factory=list)
    """Functions by their share of the difference against the plain condition, the largest first."""

    @property
    def difference(self) -> float:
        return self.contender - self.baseline


EXPLANATION_SCHEMA = 1
"""Schema of explain/*.json in a run."""


class Explanation(Struct, kw_only=True):
    """Origin of a difference. Counts are over `operations`; divide for one."""

    schema: int = EXPLANATION_SCHEMA
    benchmark: str
    baseline: str
    contender: str
    operations: int
    rows: list[Row]
    """Functions by absolute difference, the largest first; the operation's own work and that of others together."""
    stacks: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Call chains, `context;outer;...;inner`, to baseline and contender."""
    clock: Clock | None = None
    releases: tuple[str, str] = ("", "")
    """Releases of the kernels, as printed by `uname -r`."""
    qemu: str = ""
    boot: bool = False
    """True if the operation is the boot, up to init's first instruction; `clock` is its count without functions."""
    conditions: list[ConditionCounts] = field(default_factory=list)
    """Each condition that it was counted under, the plain one first; empty where there was one only."""
    moved: list[MovedCall] = field(default_factory=list)
    """Functions that the contender calls from elsewhere, the largest first."""
    blocks: int = 0
    """The blocks in which the run counted this, each under other conditions or in another layout of addresses: only the
    first of them is explained. 0 where no run is explained, or its boot."""

    def counted_by(self) -> str:
        """QEMU, and the kernels' releases where their names do not contain them; empty where it is not known."""
        pairs = zip((self.baseline, self.contender), self.releases, strict=True)
        unsaid = [f"{name} is {release}" for name, release in pairs if release not in name]
        return "; ".join(filter(None, [f"QEMU {self.qemu}" if self.qemu else "", ", ".join(unsaid)]))

    def first_of_several(self) -> str:
        """A sentence where the run has more than what is explained; else empty."""
        if self.blocks < 2:
            return ""
        return f"Block 1 of {self.blocks} only: the run's verdict is over all of them, with their other conditions or layouts."

    def total(self, context: str = "") -> tuple[int, int]:
        chosen = [row for row in self.rows if context in ("", row.context)]
        return sum(row.baseline for row in chosen), sum(row.contender for row in chosen)

    def contexts(self) -> list[str]:
        """Contexts that have rows, in their fixed order."""
        present = {row.context for row in self.rows}
        return [name for name in CONTEXTS if name in present]


def explain_difference(benchmark: str, names: tuple[str, str], profiles: tuple[Profile, Profile]) -> Explanation:
    """Compare two profiles that counted the same number of operations."""
    one, other = profiles
    if one.operations != other.operations:
        raise ValueError(f"{one.operations} operations against {other.operations}")
    renamed = find_renamed(one, other)
    was = {name: old for old, name in renamed.items()}
    one = structs.replace(one, stacks=translate(one.stacks, renamed))
    functions = one.functions(), other.functions()
    rows = [
        Row(
            context=context,
            function=function,
            baseline=functions[0].get((context, function), 0),
            contender=functions[1].get((context, function), 0),
            only="" if function in was else _only_in(function, one, other),
            was=was.get(function, ""),
        )
        for context, function in functions[0].keys() | functions[1].keys()
    ]
    rows.sort(key=lambda row: (-abs(row.difference), -row.contender, row.context, row.function))
    return Explanation(
        benchmark=benchmark,
        baseline=names[0],
        contender=names[1],
        operations=one.operations,
        rows=rows,
        stacks={
            ";".join(name.replace(";", ":") for name in stack): (one.stacks.get(stack, 0), other.stacks.get(stack, 0))
            for stack in sorted(one.stacks.keys() | other.stacks.keys())
        },
        moved=find_moved(one, other),
    )


SHIFTS = 20
"""Number of functions that are kept for a condition."""


def compare_conditions(
    names: Sequence[str], ones: Sequence[Profile], others: Sequence[Profile], hops: int = 1
) -> list[ConditionCounts]:
    """Both kernels under each condition, with changes against the first; `hops` operations are one call."""
    if len(names) < 2:
        return []
    before, after = ([_each_function(profile, hops) for profile in arm] for arm in (ones, others))
    found = []
    for name, one, other in zip(names, before, after, strict=True):
        shifts = [
            Shift(
                function=function,
                baseline=one.get(function, 0.0) - before[0].get(function, 0.0),
                contender=other.get(function, 0.0) - after[0].get(function, 0.0),
            )
            for function in sorted(before[0].keys() | after[0].keys() | one.keys() | other.keys())
        ]
        shifts = [shift for shift in shifts if shift.baseline or shift.contender]
        shifts.sort(key=lambda shift: (-abs(shift.difference), -abs(shift.contender)))
        found.append(
            ConditionCounts(
                condition=name, baseline=sum(one.values()), contender=sum(other.values()), shifts=shifts[:SHIFTS]
            )
        )
    return found


def _each_function(profile: Profile, hops: int) -> dict[str, float]:
    """Instructions per operation in each function, in whatever context."""
    found: dict[str, float] = {}
    for stack, count in profile.stacks.items():
        found[stack[-1]] = found.get(stack[-1], 0.0) + count / (profile.operations * hops)
    return found


def fold_small_branches(found: Explanation, share: float = 0.0005, rows: int = 40) -> Explanation:
    """Fold small branches of the call chains into their callers, and the lesser functions into one row. What is below
    `share` of the whole is no wider than a pixel in a picture. Totals stay as they are."""
    least = share * max(*found.total(), 1)
    weights: dict[str, int] = {}
    for chain, counts in found.stacks.items():
        names = chain.split(";")
        for depth in range(1, len(names) + 1):
            place = ";".join(names[:depth])
            weights[place] = weights.get(place, 0) + max(counts)
    stacks: dict[str, tuple[int, int]] = {}
    for chain, counts in found.stacks.items():
        names = chain.split(";")
        while len(names) > 1 and weights[";".join(names)] < least:
            names.pop()
        known = stacks.get(";".join(names), (0, 0))
        stacks[";".join(names)] = (known[0] + counts[0], known[1] + counts[1])
    kept = found.rows[:rows]
    for context in found.contexts():
        rest = [row for row in found.rows[rows:] if row.context == context]
        if rest:
            kept.append(
                Row(
                    context=context,
                    function=f"({plural(len(rest), 'other function')})",
                    baseline=sum(row.baseline for row in rest),
                    contender=sum(row.contender for row in rest),
                )
            )
    return structs.replace(found, stacks=stacks, rows=kept)


def _only_in(function: str, one: Profile, other: Profile) -> str:
    if function.startswith("("):
        return ""
    if function not in other.known:
        return "baseline"
    return "contender" if function not in one.known else ""
