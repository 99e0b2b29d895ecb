"""The shape of a study that crosses things: benchmarks that differ in a number, contenders that differ in one thing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from kduel.core.results import ContenderResult, Results

SIZES = {"small": 10, "medium": 100, "large": 1000}
"""As the published study of policies names its numbers of processes."""
FACTORS = ("kernel", "cmdline", "scheduler", "policy", "sysctl")


class Place(Struct, frozen=True):
    """Where a benchmark stands: its family, and the number in which it differs from the others of the family."""

    label: str
    family: str
    count: int


def places(labels: Sequence[str]) -> list[Place]:
    """The benchmarks that form families, in the order of families and counts; the others are left out.

    A family is all labels that are the same but for one number (`kload-cpu-10`, `kload-cpu-100`).
    """
    groups: dict[str, dict[str, int]] = {}
    for label in labels:
        words = label.split("-")
        for position, word in enumerate(words):
            count = number_of(word)
            if count is not None:
                suffix = re.sub(r"^\d+", "", word) if word not in SIZES else ""
                key = "-".join([*words[:position], f"#{suffix}", *words[position + 1 :]])
                groups.setdefault(key, {})[label] = count
    found: list[Place] = []
    taken: set[str] = set()
    for key, members in sorted(groups.items(), key=lambda item: -len(item[1])):
        free = {label: count for label, count in members.items() if label not in taken}
        if len(set(free.values())) < 2:
            continue
        taken.update(free)
        found += [Place(label, family_name(key), count) for label, count in free.items()]
    order = {label: index for index, label in enumerate(labels)}
    first: dict[str, int] = {}
    for place in found:
        first[place.family] = min(order[place.label], first.get(place.family, len(labels)))
    return sorted(found, key=lambda place: (first[place.family], place.count))


def number_of(word: str) -> int | None:
    """The number that a label's word is: `10`, `2t`, `small`; None where it is none."""
    if word in SIZES:
        return SIZES[word]
    match = re.fullmatch(r"(\d{1,9})[a-z]{0,4}", word)
    return int(match[1]) if match and int(match[1]) > 0 else None


def family_name(key: str) -> str:
    """`kload-cpu-#` is told as `kload-cpu`."""
    return "-".join(filter(None, key.replace("#", "").split("-"))) or key


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
    """What the contender has of a factor, as text; of sysctls those that not all have alike."""
    if factor == "sysctl":
        tables = [sysctls(each) for each in contenders]
        return " ".join(
            f"{key}={value}"
            for key, value in sorted(sysctls(contender).items())
            if any(table.get(key) != value for table in tables)
        )
    return str(getattr(contender, factor) or "")


def sysctls(contender: ContenderResult) -> dict[str, object]:
    """What a contender sets."""
    found = contender.facts.get("sysctl")
    return found if isinstance(found, dict) else {}


def pairs(results: Results) -> list[Pair]:
    """Each contender against the one that differs from it in a single factor and has the baseline's level of it.

    Imported contenders say nothing of themselves but their name: each is compared with the baseline.
    """
    contenders = results.contenders
    if results.study.imported:
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
