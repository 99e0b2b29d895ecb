"""Studies: what is compared, where, with what, how often. Read from TOML, checked by types, expanded to steps."""

import tomllib
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from kduel.benchmarks import benchmark
from kduel.core.editions import EDITION, EDITIONS
from kduel.core.errors import InputError
from kduel.core.experiment import Bound, Contender, Design, Settle, Step, check_alpha
from kduel.core.toml import check_values
from kduel.core.turns import Turns
from kduel.study.contenders import check_name, check_policies, check_printable
from kduel.study.factors import cross, design_of
from kduel.study.file import MOST, Blocks, HostTable, StudyFile, StudyHeader
from kduel.study.steps import check_slices, check_turns, read_steps


class Study(Struct, frozen=True, kw_only=True):
    """A study ready to be planned. `text` is the equivalent TOML, kept with the run."""

    about: StudyHeader
    contenders: list[Contender]
    machine: str
    machine_settings: dict[str, Any]
    settle: Settle
    blocks: Blocks
    steps: list[Step]
    text: str
    host: HostTable = HostTable()
    bound: Bound | None = None
    design: Design | None = None
    """The factors, where the study has any."""
    usual: bool = False
    """True if nobody said how many blocks there are at most."""
    left_out: list[str] = []
    """A sentence about each step of the file that the machine cannot carry out with these settings."""

    @property
    def names(self) -> list[str]:
        return [contender.name for contender in self.contenders]


MOST_BLOCKS = 100_000
LONGEST_TITLE = 300
LONGEST_ABOUT = 10_000
"""Characters of a study's title and of its description: reports show both in every format."""


def assemble(
    file: StudyFile,
    text: str,
    origin: str,
    *,
    machine: str = "",
    fixed_blocks: int | None = None,
    max_blocks: int | None = None,
    delta: float | None = None,
    single: bool = False,
    turns: Turns | None = None,
) -> Study:
    """The study that a file and the command line's own words make together: `machine` (`KIND[:key=value,...]`), block
    numbers, `delta` and `turns` replace the file's; `single` counts once in each layout. Raises InputError."""
    kind, settings = read_machine(file.machine, machine)
    blocks = file.blocks
    if fixed_blocks is not None:
        blocks = msgspec.structs.replace(blocks, fixed=fixed_blocks)
    elif max_blocks is not None:
        blocks = msgspec.structs.replace(blocks, fixed=None, max=max_blocks)
    usual = blocks.max is None
    if usual:
        # A count is decided after one block, or depends on conditions, and more of them cannot change that.
        once = kind == "icount" and not settings.get("layouts") and settings.get("online") != "both"
        blocks = msgspec.structs.replace(blocks, max=1 if once and blocks.fixed is None else MOST)
    crossed = cross(file.contender, file.factor, file.benchmark, file.design, origin, blocks.count)
    contenders = crossed.contenders
    if len(contenders) < 2:
        only = f"{contenders[0].name} is one contender" if contenders else f"{origin} has no contender"
        raise InputError(
            f"{only}; a comparison needs two",
            "Name two kernels, or give two [[contender]] tables in a study file. One kernel is compared under several settings by "
            "`kduel run debian:6.12 --sweep policy=other,fifo:50`, and with itself by `kduel run --aa 2 debian:6.12`.",
        )
    check_policies(contenders, origin)
    if turns is not None:
        blocks = msgspec.structs.replace(blocks, turns=turns)
    about = file.study if delta is None else msgspec.structs.replace(file.study, delta=delta)
    check_about(about, origin)
    if blocks.carry_over:
        blocks = msgspec.structs.replace(blocks, turns="off" if blocks.turns is None else blocks.turns)
        check_carry_over(blocks, kind, len(contenders), bool(crossed.factors), origin)
    check_numbers(about, file.settle, blocks, origin)
    check_host(file.host, origin)
    steps, places = read_steps(file.benchmark, origin, crossed.factors)
    if places:
        # In one order throughout, a level would be the same as a place in the trial.
        blocks = msgspec.structs.replace(blocks, order="shuffled")
    if single:
        once = [counted_once(step) for step in steps]
        if once == steps:
            raise InputError(
                f"{origin} counts nothing under conditions, so that --single changes nothing",
                "Leave it out, or count: --suite exact-quick --single, or --suite exact --single.",
            )
        steps, blocks = once, msgspec.structs.replace(blocks, fixed=once_each(settings, fixed_blocks or max_blocks))
    steps, left_out = without_impossible(steps, kind, settings)
    if settings.get("online") == "both" and blocks.count == 1:
        raise InputError(
            f'{origin}: online = "both" takes two blocks: CPUs come online in ascending order in the first one, in '
            "descending order in the second one",
            "Give --blocks 2, or fixed = 2 in [blocks].",
        )
    return Study(
        about=about,
        contenders=contenders,
        machine=kind,
        machine_settings=settings,
        settle=file.settle,
        blocks=blocks,
        steps=steps,
        text=text,
        host=file.host,
        usual=usual,
        left_out=left_out,
        bound=check_bound(file.bound, steps, origin),
        design=design_of(
            crossed, file.design, {step.label: places[step.label] for step in steps if step.label in places}
        ),
    )


def check_bound(bound: Bound | None, steps: Sequence[Step], origin: str) -> Bound | None:
    """The bound, where a step keeps such measurements in a unit of time. Raises InputError that lists what there is."""
    if bound is None:
        return None
    kept = {f"{step.label}/{name}": step for step in steps for name in benchmark(step.benchmark).distributions}
    about = [step for name, step in kept.items() if bound.metric in (name, name.rpartition("/")[2])]
    if not about:
        raise InputError(
            f"{origin}: bound.metric is {bound.metric!r}, and no benchmark of this study keeps such measurements",
            f"There are {', '.join(kept)}."
            if kept
            else "Add cyclictest, wakeup or desktop: they keep every measurement.",
        )
    for step in about:
        histogram = getattr(benchmark(step.benchmark).read_parameters(step.parameters), "histogram", None)
        if histogram is not None and bound.in_unit("us") >= histogram:
            raise InputError(
                f"{origin}: bound.limit is {bound.limit}, and {step.label} distinguishes durations up to {histogram:,} us",
                f"Raise `histogram` of {step.benchmark} above it, or lower the limit.",
            )
    return bound


def check_about(about: StudyHeader, origin: str) -> None:
    """Raises InputError for texts of [study] that are too long, cannot be shown, or a name that is no name."""
    if not about.name:
        raise InputError(f'{origin}: study: name = "" is no name', 'Give one, such as name = "scheduling".')
    check_printable("name", about.name, f"{origin}: study")
    check_printable("title", about.title, f"{origin}: study.title")
    check_name(about.name, f"{origin}: study")
    for key, text, most in (("title", about.title, LONGEST_TITLE), ("about", about.about, LONGEST_ABOUT)):
        if len(text) > most:
            raise InputError(f"{origin}: study.{key} has {len(text)} characters", f"Use at most {most}.")


def check_numbers(about: StudyHeader, settle: Settle, blocks: Blocks, origin: str) -> None:
    """Raises InputError for numbers that cannot be meant."""
    if not 0 < about.delta <= 100:
        raise InputError(
            f"{origin}: study.delta is {about.delta}",
            "Give the per cent that matter, above 0 and at most 100, such as 1.0.",
        )
    check_alpha(about.alpha, f"{origin}: study.alpha")
    for key, value in (("max", blocks.max), ("fixed", blocks.fixed)):
        if value is not None and not 1 <= value <= MOST_BLOCKS:
            raise InputError(
                f"{origin}: blocks.{key} is {value}",
                f"Give a number of blocks from 1 to {MOST_BLOCKS:,}, such as 20.",
            )
    check_slices(f"{origin}: blocks.slices", blocks.slices)
    check_slices(f"{origin}: blocks.slices_in_turns", blocks.slices_in_turns)
    check_turns(f"{origin}: blocks.turns", blocks.turns, "off")
    if not 0 <= settle.seconds <= 86_400:
        raise InputError(
            f"{origin}: settle.seconds is {settle.seconds:g}", "Give seconds from 0 to 86400, such as 10."
        )


def check_carry_over(blocks: Blocks, machine: str, contenders: int, factors: bool, origin: str) -> None:
    """Raises InputError where the contender of the trial before cannot enter the intervals."""
    # One pair may be missing, and the interval is still adjusted.
    fewest = (EDITIONS[EDITION].adjust_from or 0) + 1
    reason = (
        "contenders that take turns run at the same time" * blocks.in_turns
        or "counts have no intervals" * (machine == "icount")
        or "effects of factors are means over several contenders" * factors
        or "more than four contenders need too many covariates" * (contenders > 4)
        or f"fewer than {fewest} blocks give no verdict where a pair is missing" * (blocks.count < fewest)
    )
    if reason:
        raise InputError(f"{origin}: blocks.carry_over cannot be applied: {reason}", "Leave it out, or change that.")


def check_host(host: HostTable, origin: str) -> None:
    if host.max_wait is not None and not 0 < host.max_wait <= 100:
        raise InputError(
            f"{origin}: host.max_wait is {host.max_wait:g}", "Give per cent above 0, at most 100, such as 5."
        )
    if not 0 <= host.repeats <= 100:
        raise InputError(f"{origin}: host.repeats is {host.repeats}", "Give a number from 0 to 100, such as 1.")
    if host.quiet_seconds is not None and not 0 <= host.quiet_seconds <= 86_400:
        raise InputError(
            f"{origin}: host.quiet_seconds is {host.quiet_seconds:g}", "Give seconds from 0 to 86400, such as 10."
        )


def read_machine(table: dict[str, Any], given: str) -> tuple[str, dict[str, Any]]:
    """Kind and settings from [machine] and the command line's `KIND[:key=value,...]`."""
    settings = dict(table)
    kind = settings.pop("kind", "qemu")
    if not isinstance(kind, str):
        raise InputError(f"machine.kind is {kind!r}", 'Give a name: kind = "qemu".')
    if not given:
        return kind, settings
    new_kind, _, words = given.partition(":")
    if new_kind != kind:
        kind, settings = new_kind, {}
    given_settings = read_words(words, "place")
    if given_settings.get("topology") and "cpus" not in given_settings:
        # It determines the number of CPUs, in place of the file's.
        settings.pop("cpus", None)
    settings |= given_settings
    check_values(settings, "--machine")
    return kind, settings


def read_words(words: str, first: str) -> dict[str, Any]:
    """`key=value,...` as a table; a word without a key is the value of `first`. Raises InputError for a key that comes twice."""
    settings: dict[str, Any] = {}
    for word in filter(None, words.split(",")):
        key, equals, value = word.partition("=")
        if not equals:
            key, value = first, word
        if key in settings:
            raise InputError(f"{words}: {key or 'a word without a key'} is given twice", "Leave out one of them.")
        if not equals:
            settings[key] = value
            continue
        try:
            settings[key] = tomllib.loads(f"value = {value}")["value"]
        except (ValueError, RecursionError):  # no TOML, so a plain word
            settings[key] = value
    return settings


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
