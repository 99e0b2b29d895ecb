"""Studies: what is compared, where, with what, how often. Read from TOML, checked by types, expanded to steps."""

from __future__ import annotations

import itertools
import tomllib
import typing
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from kduel.benchmarks import Benchmark, benchmark
from kduel.benchmarks.support.load import Load
from kduel.core.errors import InputError
from kduel.core.experiment import (
    LABEL,
    Bound,
    Contender,
    Design,
    EmulatedRole,
    Scope,
    Settle,
    Step,
    StepCell,
    check_alpha,
)
from kduel.core.slices import Reducer
from kduel.core.toml import check_values, parse_toml, read_text, shorten
from kduel.core.validation import validation_message
from kduel.study.contenders import CROSSED, check_name, check_policies, check_printable
from kduel.study.counting import counted_once, once_each, without_impossible
from kduel.study.factors import DesignTable, FactorTable, ReadFactor, cross, cross_steps, design_of, family_name
from kduel.study.tables import combinations


class StudyHeader(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The table [study]."""

    name: str
    title: str = ""
    about: str = ""
    delta: float = 1.0
    """The smallest effect of interest, in per cent."""
    alpha: float = 0.05
    """The chance, over all primary metrics together, of calling a difference where there is none."""
    exact_first: str = ""
    """The suite that is counted on one CPU before the rest, as the exact part of the run."""
    machines: Scope = "these"
    """What verdicts are about where several machines measure: "these" machines, or the "class" that they are a sample
    of, which takes four machines at least."""


class Blocks(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The table [blocks]: how many, and what one trial is."""

    max: int = 20
    """The most blocks; the run ends sooner when every primary metric is decided."""
    fixed: int | None = None
    """Exactly so many blocks, one look at the end."""
    unit: Literal["boot", "load"] = "boot"
    """"load": contenders that differ in nothing but scheduler, policy or sysctls share a boot, in random order,
    and the unit of the statistics is the load of the scheduler, not the boot."""
    order: Literal["fixed", "shuffled"] = "fixed"
    """The order of the benchmarks inside a trial: the same always, or drawn again for each block."""
    slices: int = 1
    """In how many pieces, spread over the trial, a step that stops by the clock is measured; its seconds stay the same."""
    reduce: Reducer = "better-half"
    """How the slices become the trial's one number; the mean of all stands beside it."""

    @property
    def count(self) -> int:
        """Number of blocks that are planned."""
        return self.fixed or self.max


class HostTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The table [host]: when a trial is void because other work on the host took too much from it."""

    max_wait: float | None = None
    """Of the time that the guest's CPUs are ready to run, the per cent that they may wait for a CPU of the host; without
    it the machine's default, by which a trial counts after its last boot even so. 100 allows everything."""
    repeats: int = 1
    """How often such a trial is made again at most, at the end of its block."""
    quiet_seconds: float | None = None
    """How long to wait for a quiet host before a trial, at most; 0 never waits. Without it 10, and 60 once the host has
    been quiet in the run: its other work then comes and goes."""
    covariate: bool = False
    """Whether the other work that is measured for half a second before each boot enters the intervals."""


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
    left_out: list[str] = []
    """A sentence about each step of the file that the machine cannot carry out with these settings."""

    @property
    def names(self) -> list[str]:
        """The contenders' names, the baseline first."""
        return [contender.name for contender in self.contenders]


class BenchmarkTable(Struct, kw_only=True):
    """One [[benchmark]]: `use` names it, `primary` lists the metrics that decide; all else is its parameters.

    A list given for a parameter that takes one value is a matrix: a step for every combination.
    """

    use: str
    primary: list[str] | Literal["*"] = field(default_factory=list)
    label: str = ""
    load: Load | list[Load] = "idle"
    """A background load for the time of the step; a list is a matrix."""
    slices: int | None = None
    """In place of the number in [blocks]; 1 keeps the step in one piece."""
    emulated: EmulatedRole = "primary"
    """"exploratory": in an emulator its metrics are shown and do not decide, since they vary too much there."""


class StudyFile(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The file as written."""

    study: StudyHeader
    contender: list[dict[str, Any]] = field(default_factory=list)
    factor: list[dict[str, Any]] = field(default_factory=list)
    design: DesignTable = DesignTable()
    bound: Bound | None = None
    machine: dict[str, Any] = field(default_factory=dict)
    settle: Settle = Settle()
    blocks: Blocks = Blocks()
    host: HostTable = HostTable()
    benchmark: list[dict[str, Any]] = field(default_factory=list)


MOST_BLOCKS = 100_000
MOST_SLICES = 100
LONGEST_TITLE = 300
LONGEST_ABOUT = 10_000
"""Characters of a study's title and of its description: reports show both in every format."""
SUITE_REMEDY = "`kduel list suites` shows what there is; `kduel init` writes a study file to start from."


def suites() -> dict[str, str]:
    """The built-in suites' texts by name."""
    folder = resources.files("kduel.study.suites")
    return {
        item.name.removesuffix(".toml"): item.read_text("utf-8")
        for item in sorted(folder.iterdir(), key=lambda item: item.name)
        if item.name.endswith(".toml")
    }


def suite_text(name: str) -> str:
    """The TOML of a built-in suite. Raises InputError that lists what there is."""
    found = suites()
    if name not in found:
        raise InputError(f"there is no suite {name!r}; there are {', '.join(found)}", SUITE_REMEDY)
    return found[name]


def read_study(path: Path) -> tuple[str, StudyFile]:
    """A study file's text and content. Raises InputError naming file and line or key."""
    text = read_text(find_study(path), "the study", "Name a study file; `kduel init study.toml` writes one.")
    return text, parse_study(text, str(path))


def find_study(path: Path) -> Path:
    """The file at `path`; for a missing `studies/NAME.toml` the one that comes with KDuel, installed or in a checkout."""
    if not path.exists() and path.parent == Path("studies"):
        package = Path(str(resources.files("kduel")))
        places = (package / path, package.parents[1] / path)
        return next((place for place in places if place.is_file()), path)
    return path


def parse_study(text: str, origin: str) -> StudyFile:
    """The content of a study's TOML; `origin` is named in errors."""
    table = parse_toml(text, origin, "`kduel init` writes a commented study file to compare with.")
    try:
        file = msgspec.convert(table, StudyFile, strict=True)
    except msgspec.ValidationError as error:
        raise InputError(f"{origin}: {validation_message(error, StudyFile)}", hint_for(table, error)) from error
    if {"fixed", "max"} <= table.get("blocks", {}).keys():
        raise InputError(
            f"{origin}: blocks.fixed and blocks.max exclude each other",
            "Keep fixed for a fixed number of blocks, else max.",
        )
    return file


def hint_for(table: dict[str, Any], error: msgspec.ValidationError) -> str:
    """Remedy: the keys that the table may have."""
    if "unknown field" not in str(error):
        return "`kduel init` writes a study file with every key explained."
    known = {
        "study": StudyHeader, "settle": Settle, "blocks": Blocks, "host": HostTable, "design": DesignTable
    }  # fmt: skip
    for name, kind in known.items():
        if name in table and f"$.{name}" in str(error):
            return f"The keys of [{name}]: {', '.join(kind.__struct_fields__)}."
    return f"A study knows the tables: {', '.join(StudyFile.__struct_fields__)}."


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
) -> Study:
    """The study that a file and the command line's own words make together. Raises InputError.

    `machine` is `KIND[:key=value,...]` and replaces the file's kind, or some of its settings; the block numbers and
    `delta` replace the file's. `single` counts once, in each layout, what is otherwise counted under several conditions.
    """
    crossed = cross(
        file.contender,
        file.factor,
        file.benchmark,
        file.design,
        origin,
        fixed_blocks or max_blocks or file.blocks.count,
    )
    contenders = crossed.contenders
    if len(contenders) < 2:
        raise InputError(
            f"{origin} compares {len(contenders)} contender(s); a duel needs two at least",
            'Add [[contender]] tables with kernel = "debian:6.12", or name the kernels on the command line.',
        )
    check_policies(contenders, origin)
    kind, settings = read_machine(file.machine, machine)
    blocks = file.blocks
    if fixed_blocks is not None:
        blocks = msgspec.structs.replace(blocks, fixed=fixed_blocks)
    elif max_blocks is not None:
        blocks = msgspec.structs.replace(blocks, fixed=None, max=max_blocks)
    about = file.study if delta is None else msgspec.structs.replace(file.study, delta=delta)
    check_about(about, origin)
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
    kept = [f"{step.label}/{name}" for step in steps for name in benchmark(step.benchmark).distributions]
    if not any(bound.metric in (one, one.rpartition("/")[2]) for one in kept):
        raise InputError(
            f"{origin}: bound.metric is {bound.metric!r}, and no benchmark of this study keeps such measurements",
            f"There are {', '.join(kept)}."
            if kept
            else "Add cyclictest, wakeup or desktop: they keep every measurement.",
        )
    return bound


def check_about(about: StudyHeader, origin: str) -> None:
    """Raises InputError for texts of [study] that are too long or cannot be shown in a line, or a name that is empty or looks
    like a path. The description may have several lines."""
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
    if not 0 <= settle.seconds <= 86_400:
        raise InputError(
            f"{origin}: settle.seconds is {settle.seconds:g}", "Give seconds from 0 to 86400, such as 10."
        )


def check_slices(key: str, slices: int | None) -> None:
    """Raises InputError for a number of slices that cannot be meant."""
    if slices is not None and not 1 <= slices <= MOST_SLICES:
        raise InputError(f"{key} is {slices}", f"Give a number from 1 to {MOST_SLICES}, such as 6.")


def check_host(host: HostTable, origin: str) -> None:
    """Raises InputError for numbers of [host] that cannot be meant."""
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
    settings |= read_words(words, "place")
    check_values(settings, "--machine")
    return kind, settings


def read_words(words: str, first: str) -> dict[str, Any]:
    """`key=value,...` as a table; a word without a key is the value of `first`."""
    settings: dict[str, Any] = {}
    for word in filter(None, words.split(",")):
        key, equals, value = word.partition("=")
        if not equals:
            settings[first] = word
            continue
        try:
            settings[key] = tomllib.loads(f"value = {value}")["value"]
        except (ValueError, RecursionError):  # no TOML, so a plain word
            settings[key] = value
    return settings


def read_steps(
    tables: list[dict[str, Any]], origin: str, factors: Sequence[ReadFactor] = ()
) -> tuple[list[Step], dict[str, StepCell]]:
    """The [[benchmark]] tables as steps, matrices and factors expanded, labels unique; and by label the place of those that
    differ in a factor. Raises InputError naming the table."""
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
        raise InputError(
            validation_message(error), 'A benchmark table has use = "NAME", and primary = ["METRIC", ...].'
        ) from error
    chosen = benchmark(use.use)
    own_load = "load" in chosen.Parameters.__struct_fields__
    rest = {key: value for key, value in table.items() if key not in head or (key == "load" and own_load)}
    loads = ["idle"] if own_load else use.load if isinstance(use.load, list) else [use.load]
    empty = [name for name in single_valued(chosen) if rest.get(name) == []] or ([] if loads else ["load"])
    if empty:
        raise InputError(f"{empty[0]} is an empty list", "Give a value, or a list with one at least.")
    steps = []
    for load, parameters in itertools.product(loads, combinations(rest, single_valued(chosen))):
        typed = chosen.read_parameters(parameters)
        metrics = [metric.name for metric in chosen.metrics(typed)]
        primary = metrics if use.primary == "*" else list(use.primary)
        for name in primary:
            if name not in metrics:
                raise InputError(
                    f"{use.use} has no metric {name!r} to be primary", f"Its metrics: {', '.join(metrics)}."
                )
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
                emulated=use.emulated,
                load="" if load == "idle" else load,
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


def schema() -> dict[str, Any]:
    """The JSON schema of study files, for editors."""
    made = msgspec.json.schema(StudyFile)
    definitions = made["$defs"]
    contender = msgspec.json.schema(Contender)["$defs"]["Contender"]
    for key in CROSSED:
        one = contender["properties"][key]
        contender["properties"][key] = {"anyOf": [one, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
    definitions["StudyFile"]["properties"]["contender"]["items"] = contender
    definitions["StudyFile"]["properties"]["factor"]["items"] = msgspec.json.schema(FactorTable)["$defs"][
        "FactorTable"
    ]
    made["title"] = "KDuel study"
    return made
