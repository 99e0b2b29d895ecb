"""The shape of a study that crosses things: benchmarks that differ in a number, contenders that differ in one thing."""

from collections.abc import Sequence

from msgspec import Struct

from kduel.core.results import ContenderResult, Results
from kduel.core.samples import StepResult
from kduel.study.factors import family_name

FACTORS = ("kernel", "cmdline", "scheduler", "policy", "sysctl", "machine")


class GridPoint(Struct, frozen=True):
    """Position of a benchmark: its family, and the number in which it differs from the others of the family."""

    label: str
    family: str
    count: int
    parameter: str = ""
    """Which of the benchmark's parameters the number is."""


def places(steps: Sequence[StepResult]) -> list[GridPoint]:
    """The steps that form families: one benchmark, equal in all but one whole number above 0; in families' order."""
    groups: dict[tuple[str, str, str], dict[str, int]] = {}
    for step in steps:
        for name, count in step.parameters.items():
            if isinstance(count, int) and not isinstance(count, bool) and count > 0:
                others = step.load + repr(
                    sorted((key, value) for key, value in step.parameters.items() if key != name)
                )
                groups.setdefault((step.benchmark, name, others), {})[step.label] = count
    found: list[GridPoint] = []
    taken: set[str] = set()
    names: set[str] = set()
    for (benchmark, parameter, _), members in sorted(groups.items(), key=lambda item: -len(item[1])):
        free = {label: count for label, count in members.items() if label not in taken}
        if len(set(free.values())) < 2:
            continue
        taken.update(free)
        name = family_name(list(free), names) or benchmark
        names.add(name)
        found += [GridPoint(label, name, count, parameter) for label, count in free.items()]
    order = {step.label: index for index, step in enumerate(steps)}
    first: dict[str, int] = {}
    for place in found:
        first[place.family] = min(order[place.label], first.get(place.family, len(steps)))
    return sorted(found, key=lambda place: (first[place.family], place.count))


class Pair(Struct, frozen=True):
    """Two contenders that differ in one thing only: `reference` has the level that the baseline has."""

    reference: str
    contender: str
    factor: str
    """Which: kernel, policy, scheduler, ..."""
    levels: tuple[str, str]
    """The reference's and the contender's."""
    within: str
    """What both share, in words; empty where the study varies nothing else."""


def level(contender: ContenderResult, factor: str, contenders: Sequence[ContenderResult]) -> str:
    """Level of a factor that the contender has, as text; of sysctls and settings of the machine those that not all have alike."""
    if factor in ("sysctl", "machine"):
        tables = [table_of(each, factor) for each in contenders]
        return " ".join(
            f"{key}={value}"
            for key, value in sorted(table_of(contender, factor).items())
            if any(table.get(key) != value for table in tables)
        )
    return str(getattr(contender, factor) or "")


def table_of(contender: ContenderResult, name: str) -> dict[str, object]:
    """Sysctls, or settings of the machine, that a contender sets."""
    found = contender.facts.get(name)
    return found if isinstance(found, dict) else {}


def pairs(results: Results) -> list[Pair]:
    """Each contender against the one that differs from it in a single factor and has the baseline's level of it. Of
    imported contenders only the name is known: each is compared with the baseline."""
    contenders = results.contenders
    if not results.paired:
        first = contenders[0].name
        return [Pair(first, other.name, "contender", (first, other.name), "") for other in contenders[1:]]
    varied = [
        factor for factor in FACTORS if len({level(contender, factor, contenders) for contender in contenders}) > 1
    ]
    at = {
        tuple(level(contender, factor, contenders) for factor in varied): contender.name for contender in contenders
    }
    base = [level(contenders[0], factor, contenders) for factor in varied]
    found = []
    for contender in contenders:
        own = [level(contender, factor, contenders) for factor in varied]
        for position, factor in enumerate(varied):
            if own[position] == base[position]:
                continue
            reference = at.get((*own[:position], base[position], *own[position + 1 :]))
            if reference is not None:
                shared = [
                    value or f"default {name}" for name, value in zip(varied, own, strict=True) if name != factor
                ]
                levels = (base[position] or "default", own[position] or "default")
                found.append(Pair(reference, contender.name, factor, levels, ", ".join(shared)))
    # What is compared in the same surroundings stands together.
    places_of: dict[str, int] = {}
    for number, pair in enumerate(found):
        places_of.setdefault(pair.within, number)
    found.sort(key=lambda pair: (varied.index(pair.factor), places_of[pair.within]))
    return found
