"""The study file: its tables as written in TOML, read and checked by types, and the built-in suites."""

from importlib import resources
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from kduel.benchmarks.support.load import Load
from kduel.core.errors import InputError
from kduel.core.experiment import Bound, Contender, Role, Scope, Settle
from kduel.core.slices import Reducer
from kduel.core.text import did_you_mean
from kduel.core.toml import parse_toml, read_text
from kduel.core.turns import Turns
from kduel.core.validation import keys_of_inner, validation_message
from kduel.study.contenders import CROSSED
from kduel.study.factors import DesignTable, FactorTable


class StudyHeader(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
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


MOST = 20
"""Blocks of a study that says nothing about them."""


class Blocks(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The table [blocks]: how many, and what one trial is."""

    max: int | None = None
    """The most blocks; the run ends sooner when every primary metric is decided. None: the machine's usual number."""
    fixed: int | None = None
    """Exactly so many blocks, one look at the end."""
    unit: Literal["boot", "load"] = "boot"
    """"load": contenders that differ in nothing but scheduler, policy or sysctls share a boot, in random order,
    and the unit of the statistics is the load of the scheduler, not the boot."""
    order: Literal["fixed", "shuffled"] = "fixed"
    """The order of the benchmarks inside a trial: the same always, or drawn again for each block."""
    slices: int = 1
    """In how many pieces, spread over the trial, a step that stops by the clock is measured; its seconds stay the same."""
    slices_in_turns: int | None = None
    """The same where contenders take turns within a step, which meet the same spells without being cut; None: as many."""
    reduce: Reducer | None = None
    """How the slices become the trial's one number; the mean of all stands beside it. None: their mean in turns, where contenders
    meet the same spells, else the mean of the better half."""
    turns: Turns | None = None
    """Whether all guests of a block are alive at once, of which one runs at any moment: turns of so many milliseconds, 0
    for whole slices in turn, "off" for one boot after the other. None: DEFAULT_MS where guests are emulated and the host has
    room for all of a block, else off; in the record of a run from before there were turns, off."""
    carry_over: bool = False
    """Whether the contender of the trial before enters the intervals, for what a contender leaves behind."""

    @property
    def in_turns(self) -> bool:
        """True if the contenders of a block take turns, in guests of their own or in a boot that they share."""
        return isinstance(self.turns, int)

    @property
    def side_by_side(self) -> bool:
        """True if each contender of a block has a guest of its own, and all are alive at once."""
        return self.in_turns and self.unit == "boot"

    @property
    def reducer(self) -> Reducer:
        """The reducer of the slices, once turns are decided."""
        return self.reduce or ("mean" if self.in_turns else "better-half")

    def follow_turns(self) -> "Blocks":
        """The table once turns are decided, with the slices and their reducer as they follow from them."""
        within = self.slices_in_turns if self.side_by_side and self.turns else None
        return msgspec.structs.replace(self, reduce=self.reducer, slices=within or self.slices, slices_in_turns=None)

    @property
    def count(self) -> int:
        return self.fixed or self.max or MOST


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
    turns: int | None = None
    """In place of the milliseconds in [blocks], where guests take turns; 0 runs the step whole."""
    emulated: Role = "primary"
    """"exploratory": in an emulator its metrics are shown and do not decide, since they vary too much there."""
    schedstat: bool = False
    """Whether the scheduler's counters (/proc/schedstat) around the step become exploratory metrics, sched-*."""


class StudyFile(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
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
        raise InputError(
            f"there is no suite {name!r}; there are {', '.join(found)}", f"{did_you_mean(name, found)}{SUITE_REMEDY}"
        )
    return found[name]


def read_study(path: Path) -> tuple[str, StudyFile]:
    """A study file's text and content. Raises InputError naming file and line or key."""
    remedy = "Name a study file; `kduel init study.toml` writes one."
    if not (found := find_study(path)).exists():
        kept = [one.stem for place in study_places() for one in place.glob("*.toml")]
        remedy = did_you_mean(path.stem, kept, "studies/{}.toml") + remedy
    text = read_text(found, "the study", remedy)
    return text, parse_study(text, str(path))


def find_study(path: Path) -> Path:
    """The file at `path`; for a missing `studies/NAME.toml` the one that comes with KDuel, installed or in a checkout."""
    if not path.exists() and path.parent == Path("studies"):
        return next((place / path.name for place in study_places() if (place / path.name).is_file()), path)
    return path


def study_places() -> tuple[Path, Path]:
    """Directories of the studies that come with KDuel: installed, and in a checkout."""
    package = Path(str(resources.files("kduel")))
    return package / "studies", package.parents[1] / "studies"


def parse_study(text: str, origin: str) -> StudyFile:
    """The content of a study's TOML; `origin` is named in errors."""
    table = parse_toml(text, origin, "`kduel init` writes a commented study file to compare with.")
    try:
        file = msgspec.convert(table, StudyFile, strict=True)
    except msgspec.ValidationError as error:
        raise InputError(f"{origin}: {validation_message(error, StudyFile)}", hint_for(error)) from error
    if {"fixed", "max"} <= table.get("blocks", {}).keys():
        raise InputError(
            f"{origin}: blocks.fixed and blocks.max exclude each other",
            "Keep fixed for a fixed number of blocks, else max.",
        )
    return file


def hint_for(error: msgspec.ValidationError) -> str:
    """Remedy: the keys that the table may have."""
    if "unknown field" not in str(error):
        return "`kduel init` writes a study file with every key explained."
    if inner := keys_of_inner(error, StudyFile):
        return f"The keys of [{inner[0]}]: {', '.join(inner[1])}."
    return f"A study knows the tables: {', '.join(StudyFile.__struct_fields__)}."


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
