"""Requirements of exact counting on a study: operations that are counted once, and steps that a machine cannot count."""

from typing import Any

import msgspec

from kduel.benchmarks import benchmark
from kduel.core.errors import InputError
from kduel.core.experiment import Step


def counted_once(step: Step) -> Step:
    chosen = benchmark(step.benchmark)
    if "conditions" not in chosen.Parameters.__struct_fields__ or not chosen.counts_instructions(
        chosen.read_parameters(step.parameters)
    ):
        return step
    return msgspec.structs.replace(step, parameters={**step.parameters, "conditions": 0})


def once_each(settings: dict[str, Any], given: int | None) -> int:
    """So many blocks that what does not vary within one is counted once in each layout of addresses or order of CPUs,
    or once where there are none; or as many as `given`. Raises InputError where blocks would repeat a count."""
    layouts = settings.get("layouts")
    most = layouts if isinstance(layouts, int) and layouts > 0 else 2 if settings.get("online") == "both" else 1
    if given is not None and given > most:
        what = "layouts" if layouts else "orders in which CPUs come online"
        where = f" in each of {most} {what}" if most > 1 else ""
        raise InputError(
            f"--single counts each operation once{where}; of {given} blocks the last would repeat that",
            f"Leave out the number of blocks, or give --layouts {given}: each block then has a layout of its own.",
        )
    return given or most


def without_impossible(steps: list[Step], kind: str, settings: dict[str, Any]) -> tuple[list[Step], list[str]]:
    """The steps that such a machine can carry out, and a sentence on each other. Raises InputError for none."""
    # Only here: who reads a study need not import what drives machines.
    from kduel.machines import machine_kind

    never = machine_kind(kind).never
    reasons = {step.label: never(settings, step.benchmark) for step in steps}
    kept = [step for step in steps if not reasons[step.label]]
    left_out = [f"{label} is left out: {reason}" for label, reason in reasons.items() if reason]
    if not kept:
        raise InputError(
            f"nothing of the study is left: {left_out[0]}", "Change the machine's settings, or add another benchmark."
        )
    return kept, left_out
