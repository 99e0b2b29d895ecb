"""Differences between two columns, gathered into things that one could have changed one at a time."""

from collections.abc import Sequence

from msgspec import Struct, structs

from kduel.analysis.campaigns.columns import Column
from kduel.core.format import parameter_text
from kduel.core.results import Difference
from kduel.core.text import list_few, plural
from kduel.judge.lint.confounds import DeclaredDifferences, differences, text

FOLLOWS = DeclaredDifferences(kernels=True, scheduler=True)
"""What differs because the kernel or the scheduler does, and is no thing of its own."""


class Attribution(Struct, kw_only=True):
    differs: list[Difference]
    """With the values of `before` and `after`."""
    things: list[str]
    """`kernel`, `scheduler`, `packages.tlp`, `hardware.connected`: what one could have changed alone."""
    unknown: list[str]
    """Things that one column states and the other one does not."""
    cause: str | None
    """The one thing that differs; None where there is none, or more than one, or too little is known."""
    same_run: bool
    """Whether both were measured in turn, in one run of KDuel."""
    told: str


def same_run(before: Column, after: Column) -> bool:
    """True if both were measured in turn, in one run of KDuel."""
    return before.run == after.run and not before.imported


def attribute(before: Column, after: Column) -> Attribution:
    """Everything that differs between two columns, and what follows for a change between them."""
    together = same_run(before, after)
    blind = [column.name for column in (before, after) if not column.environments]
    if blind:
        return Attribution(
            differs=[], things=[], unknown=[], cause=None, same_run=together,
            told=f"Nothing is known of where {' and '.join(blind)} {'was' if len(blind) == 1 else 'were'} measured: no change can be attributed to anything.",
        )  # fmt: skip
    found = differences({"before": before.environments, "after": after.environments}, FOLLOWS)
    found += different_steps([structs.replace(before, name="before"), structs.replace(after, name="after")])
    things, unknown = things_of(found)
    alone = things[0] if len(things) == 1 and not unknown else None
    return Attribution(
        differs=found, things=things, unknown=unknown, cause=alone, same_run=together,
        told=attribution_sentence(things, unknown, together),
    )  # fmt: skip


def different_steps(found: Sequence[Column]) -> list[Difference]:
    """The benchmarks that differ in parameters between columns under one label."""
    known = [column for column in found if column.environments]
    differing = []
    for label in dict.fromkeys(label for column in known for label in column.steps):
        have = [column.steps[label] for column in known if label in column.steps]
        names = [
            name
            for name in dict.fromkeys(name for parameters in have for name in parameters)
            if any(parameters.get(name, ...) != have[0].get(name, ...) for parameters in have)
        ]
        if names:
            values: dict[str, str | None] = {}
            for column in known:
                values[column.name] = None
                if (mine := column.steps.get(label)) is not None:
                    told = (f"{n}={parameter_text(mine[n])}" if n in mine else f"{n} not set" for n in names)
                    values[column.name] = text("; ".join(told))
            differing.append(Difference(group="benchmarks", key=label, values=values, declared=False))
    return differing


def things_of(found: Sequence[Difference]) -> tuple[list[str], list[str]]:
    """The things that differ, and those that one side does not state, each once, in the order of `found`."""
    kernel = any(difference.group in ("kernel", "config") for difference in found)
    things: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for difference in found:
        follows = difference.declared and kernel and difference.group not in ("scheduler",)
        if difference.group == "scheduler":
            thing = "scheduler"
        elif follows or difference.group in ("kernel", "config"):
            thing = "kernel"
        else:
            thing = f"{difference.group}.{difference.key}"
        missing = None in difference.values.values()
        # A package or a module that is only on one side was installed or removed; a condition was not written down.
        silent = missing and difference.group in ("scheduler", "conditions", "hardware")
        (unknown if silent else things)[thing] = None
    return list(things), [thing for thing in unknown if thing not in things]


def attribution_sentence(things: Sequence[str], unknown: Sequence[str], same_run: bool) -> str:
    apart = "" if same_run else " They were not measured in turn: what drifted meanwhile counts as a change too."
    stated = f"; {list_few(unknown)} is stated for one of them only" if unknown else ""
    if not things and not unknown:
        return f"Nothing that is known differs between them.{apart}"
    if not things:
        return f"It is not known whether {list_few(unknown)} differs: it is stated for one of them only.{apart}"
    if len(things) == 1 and not unknown:
        return f"Only one known property differs: {things[0]}. A change may be attributed to it.{apart}"
    if len(things) == 1:
        return f"{things[0]} differs{stated}: a change cannot be attributed to one of them.{apart}"
    return f"{plural(len(things), 'thing')} differ ({list_few(things)}){stated}: no change can be attributed to one of them.{apart}"
