"""Steps of a trial from the [[benchmark]] tables: matrices and factors expanded, labels unique."""

import itertools
import typing
from collections.abc import Sequence
from typing import Any

import msgspec

from kduel.benchmarks import Benchmark, benchmark
from kduel.benchmarks.support import schedstat
from kduel.core.errors import InputError, unknown_name
from kduel.core.experiment import LABEL, Step, StepCell
from kduel.core.toml import shorten
from kduel.core.turns import LEAST_MS, MOST_MS, Turns
from kduel.core.validation import no_key, validation_message
from kduel.study.contenders import combinations
from kduel.study.factors import ReadFactor, cross_steps, family_name
from kduel.study.file import BenchmarkTable

MOST_SLICES = 100
EXAMPLES = {
    "label": '"NAME"', "load": '"idle"', "slices": "4", "turns": "50", "emulated": '"exploratory"', "schedstat": "true",
}  # fmt: skip
"""Of keys of [[benchmark]] that may be left out."""


def check_turns(key: str, turns: Turns | str | None, *words: str) -> None:
    """Raises InputError for turns that cannot be meant; `words` are values that are no length."""
    possible = (None, 0, *words)
    if turns not in possible and not (isinstance(turns, int) and LEAST_MS <= turns <= MOST_MS):
        other = "".join(f', or "{word}"' for word in words)
        raise InputError(
            f"{key} is {turns}",
            f"Give milliseconds from {LEAST_MS} to {MOST_MS}, such as 50; 0 for whole slices in turn{other}.",
        )


def check_slices(key: str, slices: int | None) -> None:
    """Raises InputError for a number of slices that cannot be meant."""
    if slices is not None and not 1 <= slices <= MOST_SLICES:
        raise InputError(f"{key} is {slices}", f"Give a number from 1 to {MOST_SLICES}, such as 6.")


def read_steps(
    tables: list[dict[str, Any]], origin: str, factors: Sequence[ReadFactor] = ()
) -> tuple[list[Step], dict[str, StepCell]]:
    """The [[benchmark]] tables as steps with unique labels, and places of factors. Raises InputError."""
    steps: list[Step] = []
    places: dict[str, StepCell] = {}
    for number, table in enumerate(tables, 1):
        where = f"{origin}: benchmark[#{number}]"
        try:
            cells = [(one.levels, expand(one.table)) for one in cross_steps(table, factors)]
        except InputError as error:
            raise InputError(f"{where}: {error.message}", error.remedy) from error
        for alike in zip(*(found for _, found in cells), strict=True):
            if len(alike) > 1:
                used = {place.family for place in places.values()}
                family = family_name([step.label for step in alike], used) or alike[0].benchmark
                places |= {
                    step.label: StepCell(family=family, levels=levels)
                    for step, (levels, _) in zip(alike, cells, strict=True)
                }
            steps += alike
    if not steps:
        raise InputError(f"{origin} names no benchmark", 'Add [[benchmark]] tables: use = "sysbench-cpu".')
    unused = [
        one.factor.name
        for one in factors
        if one.of_steps and not any(one.factor.name in p.levels for p in places.values())
    ]
    if unused:
        raise InputError(
            f"{origin}: no benchmark has all parameters that the factor {unused[0]!r} changes",
            "Let each of its levels change parameters that one benchmark has.",
        )
    seen: set[str] = set()
    for step in steps:
        if step.label in seen:
            raise InputError(
                f"{origin}: two benchmarks have the label {step.label!r}",
                'Give one of them a label of its own: label = "...".',
            )
        seen.add(step.label)
    for label in seen:
        whole, _, piece = label.rpartition(".s")
        if whole in seen and piece.isdecimal():
            raise InputError(
                f"{origin}: the label {label!r} is that of a slice of {whole!r}",
                'Give one of them a label of its own: label = "...".',
            )
    return steps, places


def expand(table: dict[str, Any]) -> list[Step]:
    """One [[benchmark]] table as steps. Raises InputError naming the key."""
    head = {key: table[key] for key in BenchmarkTable.__struct_fields__ if key in table}
    try:
        use = msgspec.convert(head, BenchmarkTable, strict=True)
    except msgspec.ValidationError as error:
        message = validation_message(error)
        key = message.partition(":")[0].partition("[")[0]
        remedy = 'Give use = "NAME", and primary = ["METRIC", ...].'
        if key in EXAMPLES:
            remedy = f"Give {key} = {EXAMPLES[key]}, or leave it out."
        raise InputError(message, remedy) from error
    chosen = benchmark(use.use)
    own_load = "load" in chosen.Parameters.__struct_fields__
    rest = {key: value for key, value in table.items() if key not in head or (key == "load" and own_load)}
    loads = ["idle"] if own_load else use.load if isinstance(use.load, list) else [use.load]
    known = (*chosen.Parameters.__struct_fields__, *BenchmarkTable.__struct_fields__)
    if unknown := next((name for name in rest if name not in known), ""):
        raise InputError(
            f"benchmark {use.use}: {no_key(unknown, known)}",
            f"Its parameters: {', '.join(chosen.Parameters.__struct_fields__) or 'none'}.",
        )
    empty = [name for name in single_valued(chosen) if rest.get(name) == []] or ([] if loads else ["load"])
    if empty:
        raise InputError(f"{empty[0]} is an empty list", "Give a value, or a list with one at least.")
    steps = []
    for load, parameters in itertools.product(loads, combinations(rest, single_valued(chosen))):
        typed = chosen.read_parameters(parameters)
        metrics = [metric.name for metric in chosen.metrics(typed)]
        primary = metrics if use.primary == "*" else list(use.primary)
        counters = [metric.name for metric in schedstat.metrics()] if use.schedstat else []
        for name in primary:
            if name not in (*metrics, *counters):
                wrong = f"{use.use} has no metric {name!r} to be primary"
                if name in [metric.name for metric in schedstat.metrics()]:
                    raise InputError(wrong, "The scheduler's counters need schedstat = true.")
                # Of the scheduler's, those of single levels are left out of the list.
                named = [*metrics, *(one for one in counters if not schedstat.is_of_level(schedstat.GROUP, one))]
                raise unknown_name(wrong, name, named)
        if "label" in head and not use.label:
            raise InputError('label = "" is no label', "Leave it out, or give one.")
        label = chosen.label(typed)
        if use.label:
            label = use.label if parameters == rest else f"{use.label}-{label}"
        if load != "idle":
            label = f"{label}-under-{load}"
        if not LABEL.fullmatch(label):
            raise InputError(
                f"{shorten(repr(label))} cannot be a label: it names a directory",
                'Give label = "..." of at most 100 letters, digits, dots, hyphens and underscores.',
            )
        check_slices("slices", use.slices)
        check_turns("turns", use.turns)
        if (use.slices or 1) > 1 and len(chosen.cut(typed, use.slices or 1)) == 1:
            raise InputError(
                f"slices = {use.slices}, but {label} cannot be cut",
                "Leave it out; or give a `time` of as many seconds, where the benchmark stops by the clock.",
            )
        steps.append(
            Step(
                label=label,
                benchmark=use.use,
                parameters=parameters,
                primary=primary,
                slices=use.slices,
                turns=use.turns,
                emulated=use.emulated,
                load="" if load == "idle" else load,
                schedstat=use.schedstat,
            )
        )
    return steps


def single_valued(chosen: Benchmark[Any]) -> list[str]:
    """The parameters that take one value, so that a list for them is a matrix."""
    hints = typing.get_type_hints(chosen.Parameters)
    return [
        name
        for name in chosen.Parameters.__struct_fields__
        if typing.get_origin(hints[name]) not in (list, tuple, dict)
    ]
