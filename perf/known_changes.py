"""Published changes of the kernel held against exact counts: which does KDuel find, and where does it say that they lie?

    python perf/known_changes.py [--write] [--twice] [--names] [--conditions K] [--only TEXT]...
    python perf/known_changes.py --built [--expected] [--write] [--only TEXT]...

Counts what studies/known-changes.toml lists between Debian's cloud kernels: one boot of each kernel for all operations, with
the functions. Shared lines are those of the published atlas; with --names they are counted anew, and touched ones, in
two boots a row at least. --twice boots each kernel a second time, past the cache, and compares byte by byte. --only takes rows whose title
contains TEXT. --write replaces the tables in docs/evidence/known-changes.md, with --only these rows of them. What is in the cache
takes seconds.

--built counts the rows with patches instead: single commits, both sides built here from one source, each row in one boot
of each side. --expected builds nothing, and has the rows as they are expected; with --write those that the document lacks.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Literal

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import msgspec
from atlas_tables import values
from exact_robustness import verdict
from msgspec import Struct, field, structs
from verdict_calibration import table, write

from kduel.core.cache import Cache
from kduel.core.format import with_sign
from kduel.core.metric_results import SHARED
from kduel.core.progress import Progress
from kduel.core.results import Results
from kduel.explain.compare import Explanation, explain_difference
from kduel.explain.profile import Profile, profile
from kduel.explain.sharing.compare import SharingExplanation
from kduel.explain.sharing.touched import Lines, by_object
from kduel.guest import boots
from kduel.judge.published import read_results
from kduel.machines import Arm
from kduel.run.exact.measure import (
    CountedTrial,
    count_arm,
    count_arms,
    exact_machine,
    script_of_all_steps,
)
from kduel.run.exact.sharing import explain_sharing, sharing_study
from kduel.run.exact.subject import KBENCH, STUDY, Subject
from kduel.run.prepare import Ready, make_ready
from kduel.study.contenders import contender_tables
from kduel.study.file import parse_study
from kduel.study.load import Study, assemble

ROOT = Path(__file__).parents[1]
DATA = ROOT / "studies/known-changes.toml"
PATCHES = ROOT / "studies/known-changes"
BUILT = (
    "debian-source:6.12.117-1~deb12u1,config=tinyconfig+guest+NET=n+BLOCK=n+OVERLAY_FS=n+EXPERT=y"
    "+CC_OPTIMIZE_FOR_PERFORMANCE=y+SLUB_TINY=n+DEBUG_FORCE_FUNCTION_ALIGN_64B=y+KERNEL_XZ=n+KERNEL_LZ4=y,ccache=yes"
)
"""Both sides of a single commit: the smallest kernel that boots and counts, but optimised as those of distributions, with
functions that begin at multiples of 64 bytes, so that a change moves none of the others within its lines."""
ATLAS = ROOT / "docs/atlas.json.xz"
DOCUMENT = ROOT / "docs/evidence/known-changes.md"
SEED = 1
"""Of the conditions, as in the exact suites."""
LARGEST = 2
"""Other functions of a bracket that are named."""
NOTABLE = 0.1
"""Share of the whole difference from which another function is named."""

FOUND, PLACE, DIRECTION, UNSEEN = "found and attributed", "attributed, sum differs", "direction only", "not visible"
UNSAID = "attributed, no sign published"
SILENT, LOUD = "control, silent", "control, not silent"
UNBUILT = "not counted yet"
UNCOUNTED = {"touched": "not counted", "time": "time only", "build": "needs a build", "operation": "no operation"}
ORDER = (FOUND, UNSAID, PLACE, DIRECTION, UNSEEN, SILENT, LOUD, *UNCOUNTED.values())


class Change(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of the data, which says what each key means."""

    commit: str
    title: str
    release: str
    published: str
    source: str
    way: Literal["count", "shared", "touched", "time", "build", "operation"] = "count"
    bracket: tuple[str, str] = ("", "")
    operation: str = ""
    sign: Literal["fewer", "more", ""] = ""
    control: bool = False
    place: list[str] = field(default_factory=list)
    groups: dict[str, str] = field(default_factory=dict)
    note: str = ""
    patches: tuple[str, str] | None = None
    config: str = ""
    memory: str = ""
    threaded: bool = False

    @property
    def head(self) -> str:
        """What a row of a table begins with."""
        return f"{self.commit} {self.title}"

    @property
    def kernels(self) -> tuple[str, str]:
        """Names of both kernels, as `kduel run` takes them."""
        if self.patches:
            built = BUILT.replace(",ccache=", f"+{self.config},ccache=") if self.config else BUILT
            without, with_it = (f"{built},patch={PATCHES / name}" if name else built for name in self.patches)
            return without, with_it
        older, newer = self.bracket
        return kernel_of(older), kernel_of(newer)


class Counted(Struct, frozen=True, kw_only=True):
    """What was counted for a row."""

    figures: str
    """Both kernels' figure."""
    word: str
    """fewer, more, same or depends."""
    places: dict[str, bool]
    """By place, with its figures: whether it is as published."""
    rest: str = ""
    """The largest other differences of the bracket."""


def kernel_of(series: str) -> str:
    """Debian's cloud kernel of a series."""
    return f"debian:{series}-cloud"


def read_changes() -> list[Change]:
    """The rows of the data."""
    return msgspec.convert(tomllib.loads(DATA.read_text("utf-8"))["change"], list[Change])


def result_of(change: Change, counted: Counted | None) -> str:
    """What a row comes to."""
    if counted is None:
        return UNCOUNTED[change.way]
    if change.control:
        return LOUD if counted.word == change.sign else SILENT
    placed = bool(counted.places) and all(counted.places.values())
    if counted.word == change.sign:
        return FOUND if placed else DIRECTION
    if placed:
        return PLACE if change.sign else UNSAID
    return UNSEEN


def sign_of(place: str, difference: float) -> bool:
    """True if a difference has the sign that a place begins with."""
    return difference > 0 if place[0] == "+" else difference < 0


def by_function(found: Explanation) -> dict[str, float]:
    """Instructions per operation that a function has more, by the name that each kernel gives it."""
    differences: Counter[str] = Counter()
    for row in found.rows:
        differences[plain(row.was or row.function)] -= row.baseline
        differences[plain(row.function)] += row.contender
    return {name: count / found.operations for name, count in differences.items()}


def plain(function: str) -> str:
    """A function's name without its module, and without what a compiler appends to parts of it."""
    name = function.partition(" [")[0]
    return name if name.startswith("(") else name.partition(".")[0]


def counted_operation(
    change: Change, found: Explanation, before: Mapping[str, float], after: Mapping[str, float]
) -> Counted:
    """A row of instructions: medians by condition, and the functions."""
    differences = by_function(found)
    moved = {plain(one.function): f"from {one.baseline_from} to {one.contender_from}" for one in found.moved}
    places = {}
    for place in change.place:
        name = place[1:]
        if place[0] == ">":
            places[f"`{name}` {moved.get(name, 'not moved')}"] = name in moved
        else:
            places[f"`{name}` {spell(differences.get(name, 0))}"] = sign_of(place, differences.get(name, 0))
    named = {place[1:] for place in change.place}
    total = sum(differences.values())
    others = sorted((name for name in differences if name not in named), key=lambda name: -abs(differences[name]))
    rest = [
        f"`{name}` {spell(differences[name])}"
        for name in others[:LARGEST]
        if abs(differences[name]) >= NOTABLE * abs(total)
    ]
    plain_condition = next(iter(before))
    return Counted(
        figures=f"{before[plain_condition]:,.0f} > {after[plain_condition]:,.0f}",
        word=verdict(dict(before), dict(after)),
        places=places,
        rest=", ".join([*rest, f"mean {spell(total)}"]),
    )


def spell(value: float) -> str:
    """A difference, in whole numbers where it is large."""
    return with_sign(value, ",.0f" if abs(value) >= 10 else ".2g") if value else "0"


def counted_lines(change: Change, found: SharingExplanation) -> Counted:
    """A row of shared lines: the steady ones, and the lines by name."""
    before, after = (kernel.median for kernel in found.kernels)
    places = {}
    for place in change.place:
        rows = [row for row in found.rows if place[1:] in row.name]
        kinds = ("gone", "fewer") if place[0] == "-" else ("new", "more")
        told = (
            ", ".join(f"`{row.name}` {row.times[0]:.2g} > {row.times[-1]:.2g}" for row in rows)
            or f"`{place[1:]}` in no line"
        )
        places[told] = any(row.change in kinds for row in rows)
    rest = [f"`{row.name}` {row.times[0]:.2g} > {row.times[-1]:.2g}" for row in found.rows if row.change != "kept"]
    means = " > ".join(f"{kernel.mean:.2f}" for kernel in found.kernels)
    accesses = " > ".join(f"{kernel.accesses:g}" for kernel in found.kernels)
    locked = " > ".join(f"{kernel.locked:g}" for kernel in found.kernels)
    word = "fewer" if after < before else "more" if after > before else "same"
    return Counted(
        figures=f"{before:g} > {after:g} lines (mean {means}), accesses {accesses}, locked {locked}",
        word=word,
        places=places,
        rest=", ".join(rest[:LARGEST]),
    )


def counting_study(operations: Iterable[str], series: Iterable[str], conditions: int, cache: Cache) -> Ready:
    """All operations in all kernels, one boot each."""
    names = ", ".join(f'"{name}"' for name in dict.fromkeys(operations))
    text = STUDY + KBENCH.format(operation=f"[{names}]") + f"conditions = {conditions}\n"
    text += contender_tables([kernel_of(one) for one in series], False)
    return make_ready(
        assemble(parse_study(text, "known-changes"), text, "known-changes"), cache=cache, progress=Progress()
    )


def medians(arm: CountedTrial, index: int, label: str) -> dict[str, float]:
    """The median of an operation under each condition."""
    return {str(line.condition or ""): line.median for line in arm.lines(index, label) if not line.situation}


def count_operations(changes: list[Change], cache: Cache, conditions: int, twice: bool) -> dict[int, Counted]:
    """Rows of instructions, by their place in `changes`."""
    chosen = [(number, change) for number, change in enumerate(changes) if change.way == "count"]
    if not chosen:
        return {}
    series = sorted(
        {one for _, change in chosen for one in change.bracket},
        key=lambda one: [int(part) for part in one.split(".")],
    )
    ready = counting_study((change.operation for _, change in chosen), series, conditions, cache)
    machine, labels = exact_machine(ready), [step.label for step in ready.study.steps]

    def count(arm: Arm) -> CountedTrial:
        found = count_arm(machine, arm, script_of_all_steps(ready, arm, SEED), cache=cache)
        if twice:
            check_again(found, ready, arm)
        say(f"{arm.contender.name} is counted")
        return found

    with boots.pool(min(2, machine.parallel)) as threads:
        trials = dict(zip(series, threads.map(count, ready.arms), strict=True))
    found = {}
    for number, change in chosen:
        index = labels.index(change.operation)
        both = [trials[one] for one in change.bracket]
        before, after = (medians(trial, index, change.operation) for trial in both)
        found[number] = counted_operation(change, explain(both, index, change.operation), before, after)
    return found


PROFILES: dict[tuple[str, str], tuple[Profile, int]] = {}


def explain(both: list[CountedTrial], index: int, label: str) -> Explanation:
    """The functions of an operation in two kernels, all conditions together; each kernel's are read once."""
    for arm in both:
        if (arm.name, label) not in PROFILES:
            line = arm.step(index, label)
            PROFILES[arm.name, label] = profile(arm.dump, arm.symbols, line.region), line.hops
    (one, hops), (other, _) = (PROFILES[arm.name, label] for arm in both)
    found = explain_difference(label, (both[0].name, both[1].name), (one, other))
    found.operations *= hops
    return found


def check_again(first: CountedTrial, ready: Ready, arm: Arm) -> None:
    """Count a kernel again, past the cache. Ends the program where a byte differs."""
    with tempfile.TemporaryDirectory() as place:
        script = script_of_all_steps(ready, arm, SEED)
        again = count_arm(exact_machine(ready), arm, script, cache=Cache(Path(place)))
        files = [path for path in first.directory.rglob("*") if path.name in ("counts", "stdout")]
        names = [path.relative_to(first.directory) for path in files]
        different = [
            name for name in names if (first.directory / name).read_bytes() != (again.directory / name).read_bytes()
        ]
    if different or len(names) <= len(ready.study.steps):
        sys.exit(f"{first.name}: {len(different)} of {len(names)} files differ when counted again: {different[:5]}")
    say(f"{first.name} counted again: all {len(names)} files are the same")


def published_lines(change: Change, atlas: Results) -> Counted:
    """A row of lines that two CPUs share, as the published atlas has it, without names."""
    label = sharing_study(list(change.kernels), change.operation).steps[0].label
    steady, means = (values(atlas, SHARED, metric)[label] for metric in ("lines", "lines-mean"))
    before, after = (steady[one] for one in change.bracket)
    assert before is not None and after is not None
    word = "fewer" if after < before else "more" if after > before else "same"
    mean = " > ".join(f"{means[one]:.2f}" for one in change.bracket)
    return Counted(
        figures=f"{before:g} > {after:g} lines (mean {mean})", word=word, places={}, rest="lines not named"
    )


def named_lines(change: Change, cache: Cache) -> SharingExplanation:
    """All lines of a row's operation on two CPUs, counted with their names."""
    study = sharing_study(list(change.kernels), change.operation)
    ready = make_ready(study, cache=cache, progress=Progress())
    names = ready.study.names
    chosen = Subject(ready=ready, names=(names[0], names[1]))
    return explain_sharing(chosen, names, change.operation, cache=cache, progress=Progress())


def built_study(change: Change) -> Study:
    """The operation of a single commit, on both sides."""
    text = STUDY + KBENCH.format(operation=f'"{change.operation}"') + ("threaded = true\n" if change.threaded else "")
    text += contender_tables(list(change.kernels), False)
    machine = f"icount:memory={change.memory}" if change.memory else ""
    return assemble(parse_study(text, "known-changes"), text, "known-changes", machine=machine)


def count_built(change: Change, cache: Cache) -> Counted:
    """A row of a single commit: a source without it and with it, both built here."""
    ready = make_ready(built_study(change), cache=cache, progress=Progress())
    names, label = ready.study.names, ready.study.steps[0].label
    both = count_arms(ready, (names[0], names[1]), cache=cache, progress=Progress())
    before, after = (medians(arm, 0, label) for arm in both)
    counted = counted_operation(change, explain(both, 0, label), before, after)
    return structs.replace(counted, word=word_of_built(change, counted.word, before, after))


def word_of_built(change: Change, judged: str, before: Mapping[str, float], after: Mapping[str, float]) -> str:
    """What a row of a single commit is called, from its medians by condition. Nothing else differs between its kernels, so that
    each difference of an exact figure is one; a control is judged as everywhere."""
    differences = {after[condition] - before[condition] for condition in before} - {0}
    if change.control or not differences or min(differences) < 0 < max(differences):
        return judged
    return "fewer" if min(differences) < 0 else "more"


def lines_of_fields(lines: Lines, wanted: set[str]) -> float:
    """How many of an object's lines have one of these fields, or a part of one."""
    return sum(times for fields, times in lines.items() if wanted & {name.partition(".")[0] for name in fields})


def touched_lines(change: Change, found: SharingExplanation) -> Counted:
    """A row of lines that an operation touches, by object."""
    each = [by_object(kernel) for kernel in found.kernels]
    sums = {name: [sum(one.get(name, {}).values()) for one in each] for one in each for name in one}
    before, after = (sum(row[at] for row in sums.values()) for at in (0, -1))

    def told(name: str) -> str:
        return f"`{name}` {' > '.join(f'{count:.3g}' for count in sums.get(name, [0, 0]))}"

    named = [place[1:] for place in change.place]
    differences = {name: row[-1] - row[0] for name, row in sums.items() if name and name not in named}
    places = {
        told(place[1:]): sign_of(place, sums[place[1:]][-1] - sums[place[1:]][0])
        for place in change.place
        if place[1:] in sums
    }
    for group, fields in change.groups.items():
        counts = [lines_of_fields(one.get(named[0], {}), set(fields.split())) for one in (each[0], each[-1])]
        places[f"fields of `{group}` {' > '.join(f'{count:.3g}' for count in counts)}"] = counts[1] < counts[0]
    return Counted(
        figures=f"{before:.1f} > {after:.1f} lines touched",
        word="same" if abs(after - before) < 0.01 * before else "fewer" if after < before else "more",
        places=places,
        rest=", ".join(map(told, sorted(differences, key=lambda name: -abs(differences[name]))[:LARGEST])),
    )


def count_all(changes: list[Change], cache: Cache, given: argparse.Namespace) -> dict[str, Counted]:
    """All rows that are counted, by what they begin with."""
    if given.built:
        return {change.head: tell(change, count_built(change, cache)) for change in changes}
    by_number = count_operations(changes, cache, given.conditions, given.twice)
    found = {changes[number].head: counted for number, counted in by_number.items()}
    atlas = read_results(ATLAS)
    for change in changes:
        if change.way == "touched" and given.names:
            found[change.head] = touched_lines(change, named_lines(change, cache))
        elif change.way == "shared":
            found[change.head] = (
                counted_lines(change, named_lines(change, cache)) if given.names else published_lines(change, atlas)
            )
        if change.head in found:
            tell(change, found[change.head])
    return found


def tell(change: Change, counted: Counted) -> Counted:
    """Say what a row came to, and return it."""
    say(f"{change.commit}, {change.operation}: {counted.figures}, {result_of(change, counted)}")
    return counted


def say(text: str) -> None:
    """Tell how far it is."""
    print(text, file=sys.stderr, flush=True)


def document_rows(name: str) -> dict[str, tuple[str, ...]]:
    """Rows of a table of the document, by what they begin with."""
    inner = DOCUMENT.read_text("utf-8").partition(f"<!-- table {name} -->")[2].partition(f"<!-- end of {name}")[0]
    rows = (tuple(line[2:-2].split(" | ")) for line in inner.splitlines() if line.startswith("| "))
    return {row[0]: row for row in rows}


def row_of(change: Change, one: Counted) -> tuple[str, ...]:
    """The row of a change that was counted; its last cell is the result."""
    places = ", ".join(f"{'' if right else '**not as published:** '}{place}" for place, right in one.places.items())
    sign = f"{change.sign or 'no sign'}: {change.published} ({change.source})"
    operation = change.operation + (" beside a thread" if change.threaded else "")
    if not change.patches:
        operation += f", {' > '.join(change.bracket)}"
    figures = f"{one.figures}, {one.word}"
    return change.head, change.release, sign, operation, figures, places, one.rest, result_of(change, one)


def tables(
    changes: list[Change], counted: Mapping[str, Counted], kept: Mapping[str, tuple[str, ...]]
) -> dict[str, list[str]]:
    """The document's tables, by name; rows that were not counted anew are those that are kept."""
    rows = [
        row_of(change, counted[change.head]) if change.head in counted else kept[change.head]
        for change in changes
        if change.head in counted or change.head in kept
    ]
    left = [
        (one.head, one.release, one.published, result_of(one, None), one.operation, one.source)
        for one in changes
        if one.head not in counted and one.head not in kept
    ]
    many = Counter([row[-1] for row in rows] + [row[3] for row in left])
    summary = table(["result", "rows"], [(name, many[name]) for name in ORDER if many[name]])
    told = [f"- **{change.commit}**, {change.operation}: {change.note}" for change in changes if change.note]
    notes = [line for one in told for line in wrap(one, 120, subsequent_indent="  ", break_on_hyphens=False)]
    if changes and changes[0].patches:
        return {"known-changes-built": built_table(rows), "known-changes-built-notes": notes}
    return {
        "known-changes-summary": [
            *summary,
            "",
            f"In all {len(changes)} rows of {len({change.commit for change in changes})} changes.",
        ],
        "known-changes": table(
            [
                "change",
                "in",
                "published",
                "counted between",
                "figure",
                "place",
                "what else the bracket has",
                "result",
            ],
            rows,
        ),
        "known-changes-left": table(["change", "in", "published", "result", "operation", "source"], left),
        "known-changes-notes": notes,
    }


def expected_table(changes: list[Change]) -> list[str]:
    """Single commits as they are expected, before anything is counted."""
    heads = ["change", "in", "published", "operation", "expected", "place", "without > with it"]
    return table(
        heads,
        [
            (
                one.head,
                one.release,
                f"{one.published} ({one.source})",
                one.operation,
                f"not {one.sign}, as a control" if one.control else one.sign,
                ", ".join(f"`{place}`" for place in one.place),
                " > ".join(f"`{name}`" if name else "as it is" for name in one.patches or ()),
            )
            for one in changes
        ],
    )


def expected_row(change: Change) -> tuple[str, ...]:
    """The row of a single commit that nobody has counted."""
    said = f"{change.sign}: {change.published} ({change.source})"
    places = f"{', '.join(f'`{place}`' for place in change.place)} expected"
    return change.head, change.release, said, change.operation, UNBUILT, places, "", UNBUILT


def built_table(rows: list[tuple[str, ...]]) -> list[str]:
    """The table of single commits."""
    heads = ["change", "in", "published", "operation", "without > with it", "place", "others", "result"]
    return [
        *table(heads, rows),
        "",
        f"In all {len(rows)} rows of {len({row[0].split()[0] for row in rows})} changes.",
    ]


def main() -> None:
    """Count, print the tables, or put them into the document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"replace the tables in docs/evidence/{DOCUMENT.name}")
    parser.add_argument(
        "--conditions",
        type=int,
        default=0,
        metavar="K",
        help="that must not matter, each operation under each (0: once)",
    )
    parser.add_argument(
        "--names", action="store_true", help="count shared lines anew, and name them; count touched ones"
    )
    parser.add_argument(
        "--built", action="store_true", help="single commits, built here: takes minutes the first time"
    )
    parser.add_argument("--expected", action="store_true", help="with --built: what is expected, without building")
    parser.add_argument("--twice", action="store_true", help="count each kernel again, and compare")
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="rows whose title contains TEXT; repeat it"
    )
    given = parser.parse_args()
    if given.expected and not given.built:
        parser.error("--expected is of single commits: add --built")
    wanted = [one for one in read_changes() if (one.patches is not None) == given.built]
    changes = [one for one in wanted if not given.only or any(text in one.title for text in given.only)]
    if given.expected and given.write:
        kept = {change.head: expected_row(change) for change in wanted} | document_rows("known-changes-built")
        found = tables(wanted, {}, kept)
    elif given.expected:
        found = {"known-changes-built": expected_table(changes)}
    else:
        counted = count_all(changes, Cache(), given)
        kept = document_rows("known-changes-built" if given.built else "known-changes") if given.only else {}
        found = tables(wanted if given.write else changes, counted, kept if given.write else {})
    for name, lines in found.items():
        print("\n".join([*lines, ""]))
        if given.write:
            write(name, lines, DOCUMENT)


if __name__ == "__main__":
    main()
