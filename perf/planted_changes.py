"""Does each measure find what was planted in a kernel's source, name it, and stay silent about everything else?

    python perf/planted_changes.py [--trees DIR] [--unnamed] [--only PATCH]... [--write]

Builds Debian's 6.12 as it is and with each patch of studies/planted, and counts dup in them by three measures: instructions (named by
function), lines touched (as in the suite exact-lines; named by `explain --lines`), and lines that two threads share, with the accesses to
them. PLANTS says beforehand what each must find. --write replaces the table in docs/evidence/known-changes.md. --trees takes kernels
that are built already, in DIR/base and DIR/PATCH. Otherwise seven kernels are built, which takes half an hour the first time. With
--unnamed they have no type information, so that lines have no names: they are built, and counted, in half of the time. --only
takes the rows whose second kernel has that patch.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parent))

from known_changes import BUILT, DOCUMENT, SEED, medians, spell
from msgspec import structs
from verdict_calibration import table, write

from kduel.core.cache import Cache
from kduel.core.progress import Progress
from kduel.explain.sharing.compare import SharedBy
from kduel.explain.sharing.touched import by_object
from kduel.guest import boots
from kduel.run.exact.measure import count_arms, exact_machine, explain_step, make_trial, script_of_all_steps
from kduel.run.exact.sharing import explain_sharing, sharing_study
from kduel.run.exact.subject import STUDY, Subject, operation_study
from kduel.run.prepare import Ready, make_ready
from kduel.study.contenders import contender_tables
from kduel.study.file import parse_study
from kduel.study.load import Study, assemble

PATCHES = Path(__file__).parents[1] / "studies/planted"
SOURCE = BUILT.replace(
    ",ccache=yes",
    "+DEBUG_KERNEL=y+DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT=y+BPF_SYSCALL=y+DEBUG_INFO_BTF=y+KALLSYMS_ALL=y,ccache=yes",
)
"""The source and configuration of single commits, with type information, which names lines."""
BASE, OPERATION = "base", "dup"
ONCE = {"conditions": 0, "count": 40}
LINES = f'[[benchmark]]\nuse = "lines"\noperation = "{OPERATION}"\nprimary = ["touched-lines"]\n'


class Found(NamedTuple):
    """How much more one kernel has than another by a measure, and which functions or fields differ."""

    more: float
    names: tuple[str, ...] | None = ()
    """None where nothing is named."""


class Plant(NamedTuple):
    """A difference between two of the kernels, and what each measure must find; None where nobody said so beforehand."""

    what: str
    before: str
    after: str
    instructions: Found = Found(0)
    touched: Found = Found(0)
    shared: Found = Found(0)
    accesses: float | None = 0
    locked: float | None = 0

    @property
    def expected(self) -> tuple[Found | None, ...]:
        """By measure, in the order of MEASURES."""
        weights = (None if one is None else Found(one) for one in (self.accesses, self.locked))
        return (self.instructions, self.touched, self.shared, *weights)


FIGURES = ("touched-lines", "lines", "lines-accesses", "lines-locked")
MEASURES = ("instructions", "lines touched", "shared lines", "accesses to them", "of those locked")
FIELD = ("files_struct.next_fd",)
PLANTS = (
    Plant("a field moves to another line", BASE, "field-away", touched=Found(1, FIELD), shared=Found(1, FIELD)),
    Plant(
        "from there to a line that is touched anyway", "field-away", "field-back",
        touched=Found(-1, FIELD), shared=Found(0, FIELD), accesses=None,
    ),
    Plant(
        "an atomic more on a shared line", BASE, "atomic",
        instructions=Found(1, ("alloc_fd",)), accesses=2, locked=1,
    ),
    Plant("a function gets another name", BASE, "renamed", instructions=Found(0, ("alloc_fd > claim_descriptor",))),
    Plant("control: a field moves within its line", BASE, "field-within"),
    Plant("control: two statements change places", BASE, "statements"),
)  # fmt: skip
"""Written down before anything was counted."""


class Counter:
    """Counts of dup in all kernels."""

    def __init__(self, kernels: dict[str, str], unnamed: bool) -> None:
        self.names = list(kernels)
        self.cache, self.progress = Cache(), Progress()
        specs = list(kernels.values())
        self.exact = self.ready(operation_study(specs, OPERATION))
        text = STUDY + LINES + contender_tables(specs, False)
        self.lines = self.ready(assemble(parse_study(text, "planted"), text, "planted"))
        self.shared = self.ready(sharing_study(specs, f"{OPERATION}/threads"))
        self.touching, self.sharing = ([] if unnamed else self.named(specs, how) for how in ("", "/threads"))
        with boots.pool(2) as threads:
            touched, shared = (
                list(threads.map(partial(self.counted, ready), range(len(specs))))
                for ready in (self.lines, self.shared)
            )
        self.figures = [one | other for one, other in zip(touched, shared, strict=True)]

    def ready(self, study: Study) -> Ready:
        """With each step counted once, as it comes: nothing but the plant differs between two kernels."""
        steps = [structs.replace(step, parameters={**step.parameters, **ONCE}) for step in study.steps]
        study = structs.replace(study, steps=steps)
        return make_ready(study, cache=self.cache, progress=self.progress)

    def named(self, specs: list[str], how: str) -> list[SharedBy]:
        """The lines of all kernels, by name."""
        operation = f"{OPERATION}{how}"
        ready = self.ready(sharing_study(specs, operation))
        names = ready.study.names
        subject = Subject(ready=ready, names=(names[0], names[1]))
        return explain_sharing(subject, names, operation, cache=self.cache, progress=self.progress).kernels

    def counted(self, ready: Ready, number: int) -> dict[str, float]:
        """The figures of a study's step in one kernel."""
        arm = ready.arms[number]
        with tempfile.TemporaryDirectory() as name:
            trial = make_trial(arm, script_of_all_steps(ready, arm, SEED), 1, Path(name))
            trial.into.mkdir()
            outcome = exact_machine(ready).boot_once(trial)
            assert not outcome.void, outcome.message
            return ready.prepared.parse(trial.into, 0)

    def found(self, before: str, after: str) -> tuple[Found, ...]:
        """What differs between two kernels, by measure."""
        one, other = self.names.index(before), self.names.index(after)
        names = self.exact.study.names
        both = count_arms(self.exact, (names[one], names[other]), cache=self.cache, progress=self.progress, seed=SEED)
        first, second = (next(iter(medians(arm, 0, OPERATION).values())) for arm in both)
        told = explain_step(self.exact, both, 0)
        least = told.operations / 2
        rows = [row for row in told.rows if abs(row.difference) >= least or row.was]
        functions = tuple(f"{row.was} > {row.function}" if row.was else row.function for row in rows)
        before_it, after_it = self.figures[one], self.figures[other]
        named = (
            (changed(self.touching[one], self.touching[other]), moved(self.sharing[one], self.sharing[other]))
            if self.sharing
            else (None, None)
        )
        figures = dict(zip(FIGURES, (*named, (), ()), strict=True))
        return (
            Found(second - first, functions),
            *(Found(after_it[figure] - before_it[figure], names) for figure, names in figures.items()),
        )


def moved(one: SharedBy, other: SharedBy) -> tuple[str, ...]:
    """Lines that two threads share in one of two kernels only."""
    return tuple(sorted({line.name for line in one.lines} ^ {line.name for line in other.lines}))


def changed(one: SharedBy, other: SharedBy) -> tuple[str, ...]:
    """Lines that only one of two kernels touches, as `explain --lines` shows them: an object and the fields."""
    before, after = (
        {(thing, fields, times) for thing, lines in by_object(kernel).items() for fields, times in lines.items()}
        for kernel in (one, other)
    )
    return tuple(sorted({f"{thing}.{', '.join(fields)}" for thing, fields, _ in before ^ after}))


def is_right(found: Found, expected: Found | None) -> bool:
    """True if the figure is as expected, and nothing is named that should not be: a place is a function, or an object and a field."""
    if expected is None:
        return True
    if found.more != expected.more or (found.names and not expected.names):
        return False
    for place in () if found.names is None else expected.names or ():
        thing, _, field = place.partition(".")
        names = found.names or ()
        if not any(field in name for name in names) or not all(name.startswith(thing) for name in names):
            return False
    return True


def cell(found: Found, expected: Found | None) -> str:
    """A figure with what is named, and what was expected where it is not that."""
    names = f", `{'`, `'.join(found.names)}`" if found.names else ""
    wrong = "" if is_right(found, expected) else f" **expected {expected}**"
    return f"{spell(found.more)}{names}{wrong}"


def rows(counter: Counter, plants: Iterable[Plant]) -> list[list[str]]:
    """A row for each plant; at last how many of its figures are not as expected."""
    told = []
    for plant in plants:
        found = counter.found(plant.before, plant.after)
        wrong = sum(not is_right(*both) for both in zip(found, plant.expected, strict=True))
        patches = f"{plant.before} > {plant.after}"
        told.append([plant.what, patches, *map(cell, found, plant.expected), str(wrong)])
        print(told[-1], file=sys.stderr, flush=True)
    return told


def main() -> None:
    """Count, print the table, or put it into the document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=Path, metavar="DIR", help="with kernels that are built already")
    parser.add_argument("--unnamed", action="store_true", help="lines without names")
    parser.add_argument("--write", action="store_true", help=f"replace the table in docs/evidence/{DOCUMENT.name}")
    parser.add_argument(
        "--only", action="append", default=[], choices=[plant.after for plant in PLANTS], metavar="PATCH"
    )
    given = parser.parse_args()
    if given.only and given.write:
        parser.error("--write is of all rows: leave --only out")
    plants = [plant for plant in PLANTS if not given.only or plant.after in given.only]
    names = dict.fromkeys(name for plant in plants for name in (plant.before, plant.after))
    kernels = {
        name: f"tree:{given.trees / name}"
        if given.trees
        else (BUILT if given.unnamed else SOURCE) + (f",patch={PATCHES / name}.patch" if name != BASE else "")
        for name in names
    }
    lines = table(["planted", "between", *MEASURES, "not as expected"], rows(Counter(kernels, given.unnamed), plants))
    print("\n".join(lines))
    if given.write:
        write("planted-changes", lines, DOCUMENT)


if __name__ == "__main__":
    main()
