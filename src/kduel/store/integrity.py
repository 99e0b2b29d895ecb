"""Check that a run is as it was left: plan and trials follow from the seed, no file was changed. No repairs."""

import hashlib
import math
import shlex
from collections import Counter
from collections.abc import Set
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from kduel.core.errors import InputError, UnreadableError
from kduel.core.regular_files import special_files
from kduel.core.text import list_few, visible
from kduel.core.toml import shorten
from kduel.core.untrusted import entries, read_bytes, read_whole
from kduel.store.documents import Lock, TrialRecord, study_of
from kduel.store.manifest import FORBIDDEN, HEX, RUN_FILES, changes, run_digests
from kduel.store.run_lock import MOST_BYTES, decode_holder
from kduel.store.run_lock import NAME as HELD
from kduel.store.rundir import EXACT, EXPLAIN, FLEET, INDEX, PAGE, PAGE_DIGEST, PROFILE_FILES, RESULTS, RunDir
from kduel.study.first_part import EXACT_SEED, SUITE
from kduel.study.plan import PlannedTrial, make_plan

OWN_FILES = frozenset({"lock.json", "plan.jsonl", "study.toml", "trials", "repeated", EXACT, EXPLAIN, FLEET, HELD})
DERIVED = {RESULTS, PAGE.parts[0], INDEX}
"""Of every run: what reports and the index write again."""
MOST_NAMED = 4
"""Files of one trial that a sentence names."""


class Integrity(Struct, frozen=True, kw_only=True):
    """Result of checking a run, or an import."""

    checked: int
    """Trials, or imported files, that were compared with their SHA-256."""
    changes: list[str]
    """What is not as it was left, a sentence each."""
    unreadable: list[str] = []
    """The files that this user may not read, a sentence each: they were not compared."""
    notes: list[str] = []
    """What could not be checked, and why, a sentence each."""

    def together(self, part: "Integrity", name: str) -> "Integrity":
        """With what was found of a part of the run, which lies in the directory `name`; empty: of the run itself."""
        before = f"{name}: " if name else ""
        return Integrity(
            checked=self.checked + part.checked,
            changes=[*self.changes, *(f"{before}{change}" for change in part.changes)],
            unreadable=[*self.unreadable, *(f"{before}{one}" for one in part.unreadable)],
            notes=[*self.notes, *(f"{before}{note}" for note in part.notes)],
        )


class ReportedTrial(Struct, frozen=True):
    id: str


class ReportedTrials(Struct, frozen=True):
    """The trials that results.json is of."""

    trials: list[ReportedTrial]


def follows(record: TrialRecord, planned: PlannedTrial | None, *, exact: bool) -> bool:
    """True if a trial is the planned one. On an exact machine later blocks run only those steps that are still open."""
    if planned is None or structs.replace(planned_as(record), seed=planned.seed, steps=planned.steps) != planned:
        return False
    chosen = [step for step in planned.steps if step in record.steps]
    return record.steps == (chosen if exact and record.block > 1 else planned.steps)


def trials_of(run: RunDir, lock: Lock) -> list[TrialRecord]:
    """The trials in the order of time. Raises InputError for a damaged one, or one that is not planned: a copy."""
    expected = {trial.id: trial for trial in derived_plan(lock)}
    records = run.records()
    for record in records:
        check_planned(run, record, expected, lock)
    return records


def check_planned(run: RunDir, record: TrialRecord, expected: dict[str, PlannedTrial], lock: Lock) -> None:
    """Raises InputError where the trial is not one of the `expected`, which the lock plans."""
    if not follows(record, expected.get(record.id), exact=lock.machine.exact):
        raise InputError(
            f"{run.directory(record.id)} is not of this run's plan ({record.contender[:80]} in block {record.block}, "
            f"trial {record.position + 1})",
            "A trial was copied or changed, or lock.json was: restore it from a copy of the run, or move it away.",
        )


def planned_as(record: TrialRecord) -> PlannedTrial:
    """The line of the plan that a trial names."""
    return PlannedTrial(
        id=record.id, block=record.block, position=record.position, contender=record.contender, boot=record.boot,
        steps=record.steps, host=record.member,
    )  # fmt: skip


def derived_plan(lock: Lock) -> list[PlannedTrial]:
    """The plan that the lock's study and seed give, by the edition of the method that planned it."""
    return make_plan(study_of(lock, ""), lock.seed, lock.edition, lock.hosts)


def checked_plan(run: RunDir, lock: Lock) -> list[PlannedTrial]:
    """The run's plan. Raises InputError where plan.jsonl is not the one that the lock's study and seed give."""
    plan, derived = run.plan(), derived_plan(lock)
    if plan == derived:
        return plan
    path = run.path / "plan.jsonl"
    remedy = "plan.jsonl or lock.json was changed after the run was started; restore them from a copy of the run."
    for number, (found, expected) in enumerate(zip(plan, derived, strict=False), 1):
        if found != expected:
            what = f"the trial {found.id[:80]!r}"
            if found.id != expected.id:
                raise InputError(
                    f"{path}, line {number}: {what}, where seed {lock.seed} gives {expected.id!r}", remedy
                )
            key = next(key for key in found.__struct_fields__ if getattr(found, key) != getattr(expected, key))
            has, given = (shorten(getattr(trial, key), 80) for trial in (found, expected))
            raise InputError(
                f"{path}, line {number}: {what} has {key} {has}, where seed {lock.seed} gives {given}", remedy
            )
    raise InputError(
        f"{path} has {len(plan)} lines, where the study and seed {lock.seed} give {len(derived)}", remedy
    )


def verify(run: RunDir) -> Integrity:
    """Examine a run and its exact part."""
    found = verify_alone(run)
    return found.together(verify_alone(RunDir.find(run.exact_part)), EXACT) if run.exact_part else found


def verify_alone(run: RunDir, own: Set[str] = OWN_FILES) -> Integrity:
    """Examine a run of which nothing is known to be whole: a damaged document is a change; `own` are its names."""
    try:
        lock = run.lock()
        expected = {trial.id: trial for trial in derived_plan(lock)}
        names = sorted(run.names())
    except InputError as error:
        return of_error(error)
    records, damaged, forbidden = [], {}, {}
    for name in names:
        try:
            record = run.record(name)
            check_planned(run, record, expected, lock)
            records.append(record)
        except UnreadableError as error:
            forbidden[name] = error.message
        except InputError as error:
            damaged[name] = error.message
    records.sort(key=lambda record: record.position)
    found = examine(run, lock, records, {*damaged, *forbidden})
    found = structs.replace(
        found,
        changes=[*damaged.values(), *found.changes, *find_added(run.path, own), *find_odd_holder(run.path)],
        unreadable=[*forbidden.values(), *found.unreadable],
    )
    for mark in sorted((run.path / EXPLAIN).glob("*/lock.json")):
        found = found.together(
            verify_alone(RunDir.find(mark.parent), OWN_FILES.union(PROFILE_FILES)), f"{EXPLAIN}/{mark.parent.name}"
        )
    return found


def compare_page(run: Path) -> tuple[list[str], list[str]]:
    """Changes of a run's page since it was written, and what could not be compared (no digest), a sentence each."""
    again = f"`kduel report {shlex.quote(str(run))} -f html` writes it again"
    try:
        page = read_whole(run / PAGE)
    except OSError:
        return [], []
    try:
        kept = read_whole(run / PAGE_DIGEST)
    except OSError as error:
        return [], [f"{PAGE} was not compared: {PAGE_DIGEST.name} cannot be read: {error.strerror} ({again})"]
    if kept[:HEX].decode("ascii", errors="replace") == hashlib.sha256(page).hexdigest():
        return [], []
    return [f"{PAGE} was changed ({again})"], []


def find_added(path: Path, own: Set[str], place: str = "") -> list[str]:
    """Names that are neither a run's `own` nor of its reports, a sentence each, after `place`. Raises HostError."""
    try:
        names = sorted(entry.name for entry in entries(path))
    except OSError:
        return []  # Whoever reads what should be there reports that.
    return [f"{place}{visible(name, 200)} was added" for name in names if name not in own | DERIVED]


def find_odd_holder(path: Path) -> list[str]:
    """A sentence where a run's lock holds something else than a command's own words, or what a power cut leaves of them."""
    try:
        data = read_bytes(path / HELD, MOST_BYTES + 1)
    except OSError:
        return []
    if not data.strip(b"\0") or (len(data) <= MOST_BYTES and decode_holder(data) is not None):
        return []
    return [f"{HELD} was changed: it names no command that was at work here"]


def check_special_files(path: Path) -> Integrity | None:
    """Result for a run that holds links or special files, of which nothing else is read; None where it holds none."""
    found = [
        f"{visible(str(name.relative_to(path)), 200)} was added: it is {kind}" for name, kind in special_files(path)
    ]
    if not found:
        return None
    return Integrity(checked=0, changes=found, notes=["nothing else was compared"])


def of_error(error: InputError) -> Integrity:
    """Result for a run whose own documents cannot be read, or are damaged."""
    if isinstance(error, UnreadableError):
        return Integrity(checked=0, changes=[], unreadable=[error.message])
    return Integrity(checked=0, changes=[error.message])


def missing(
    lock: Lock, records: list[TrialRecord], damaged: Set[str] = frozenset(), put_aside: Set[str] = frozenset()
) -> list[str]:
    """The planned trials that are not there though later ones of the same machine are, a sentence each: they were
    removed. An exact machine has several of a block in hand, and others are repeated at its end: there later blocks
    count."""
    by_block = lock.machine.exact or lock.fleet is not None
    there = {record.id for record in records} | damaged
    last: dict[str, tuple[int, int]] = {}
    for record in records:
        place = record.block, -1 if by_block else record.position
        last[record.member] = max(place, last.get(record.member, place))
    return [
        f"trials/{trial.id} is missing, though later trials are there"
        for trial in derived_plan(lock)
        if trial.id not in there
        and (trial.block, math.inf if trial.id in put_aside else trial.position) < last.get(trial.host, (0, 0))
    ]


def check_none_removed(run: RunDir, lock: Lock) -> None:
    """Raises InputError where a trial was removed: it would be measured again, until somebody likes the value."""
    if found := find_removed(run, lock, run.records()):
        raise InputError(
            f"{run.path}: {name_first(found)}",
            "A trial that was removed is not measured again: restore it from a copy of the run, or measure in another "
            "directory: `kduel run` with another --out.",
        )


def name_first(found: list[str]) -> str:
    """The first of some sentences, and how many more there are."""
    return f"{found[0]} (and {len(found) - 1} more)" if len(found) > 1 else found[0]


def find_removed(run: RunDir, lock: Lock, records: list[TrialRecord]) -> list[str]:
    """The trials that were removed, a sentence each: later ones are there, or the report names them. None on an exact machine,
    on which a repetition gives the same, nor before a machine is prepared. Raises InputError."""
    if lock.machine.exact or not lock.prepared:
        return []
    put_aside = {record.id for _, record in run.put_asides()}
    return missing(lock, records, put_aside=put_aside) or find_reported(run, put_aside)


def find_reported(run: RunDir, put_aside: Set[str]) -> list[str]:
    """The trials that are not there though results.json names them, a sentence each. Raises InputError where it is damaged."""
    path = run.path / RESULTS
    try:
        reported = {trial.id for trial in msgspec.json.decode(read_whole(path), type=ReportedTrials).trials}
    except FileNotFoundError:
        return []
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else visible(error, 200)
        raise InputError(f"cannot read {path}: {reason}", "Restore it from a copy of the run.") from error
    lost = sorted(reported - put_aside - {*run.names()})
    return [f"trials/{visible(name, 200)} is missing, which {RESULTS} has" for name in lost]


def measured_late(lock: Lock, records: list[TrialRecord]) -> list[str]:
    """The trials that began after one that the plan has later, in a sentence. One that was put aside is made again at the end of
    its block; an exact machine has several in hand at once; and a machine of a fleet makes a block that another one lost."""

    def turn_of(record: TrialRecord) -> tuple[int, float, str]:
        return record.block, math.inf if record.repeats else record.position, record.started

    in_order = not lock.machine.exact and lock.fleet is None
    late, soonest = [], ""
    for record in sorted((one for one in records if in_order and one.started), key=turn_of, reverse=True):
        soonest = min(record.started, soonest or record.started)
        if record.started > soonest:
            late.append(f"trials/{record.id}")
    if not late:
        return []
    return [
        f"{list_few(sorted(late), MOST_NAMED, 'more trials')} began after trials that the plan has later: "
        "removed and measured again, or the host's clock was set back"
    ]


def examine(run: RunDir, lock: Lock, records: list[TrialRecord], damaged: Set[str] = frozenset()) -> Integrity:
    """Compare a run with its seed and its trials with their manifests; `damaged` are trials that are no records."""
    found = []
    forbidden: list[str] = []
    try:
        checked_plan(run, lock)
    except UnreadableError as error:
        forbidden.append(error.message)
    except InputError as error:
        found.append(error.message)
    try:
        put_asides = run.put_asides()
    except InputError as error:
        found.append(error.message)
        put_asides = []
    found += missing(lock, records, damaged, {record.id for _, record in put_asides})
    found += measured_late(lock, records)
    found += foreign_part(run, lock)
    known = run_digests(run.path)
    shared = {str(name, "ascii").removeprefix("../../"): name for name in RUN_FILES}
    later: Counter[str] = Counter()
    directories = [run.directory(record.id) for record in records] + [directory for directory, _ in put_asides]
    for trial in directories:
        try:
            compared = changes(trial, known)
        except UnreadableError as error:
            forbidden.append(error.message)
            continue
        except InputError as error:
            found.append(error.message)
            continue
        place = f"{trial.parent.name}/{trial.name}"
        forbidden += [
            f"{name[:100] if name in shared else f'{place}/{name[:100]}'} was {what}"
            for name, what in compared
            if what == FORBIDDEN
        ]
        differing = [(name, what) for name, what in compared if what != FORBIDDEN]
        later.update(f"{name} {became(what)}" for name, what in differing if name in shared)
        own = [f"{name[:100]} {became(what)}" for name, what in differing if name not in shared]
        if own:
            found.append(f"{place}: {list_few(own, MOST_NAMED, 'more files')}")
    found += [f"{what} after {count} of {len(directories)} trials had ended" for what, count in later.items()]
    forbidden = list(dict.fromkeys(one for one in forbidden if not named_twice(one, forbidden)))
    return Integrity(checked=len(directories), changes=found, unreadable=forbidden)


def foreign_part(run: RunDir, lock: Lock) -> list[str]:
    """A sentence where the run's exact part is another run's; none where it is its own or cannot be read."""
    try:
        part = RunDir.find(run.exact_part).lock(prepared=False) if run.exact_part else None
    except InputError:
        part = None
    if part is None:
        return []
    counted, timed = kernels_of(part), kernels_of(lock)
    pairs = {
        "seed": (part.seed, EXACT_SEED),
        "suite": (part.study.name, lock.study.exact_first or SUITE),
        **{f"kernel {name}": (counted.get(name, "none"), timed.get(name, "none")) for name in counted | timed},
    }
    found = [
        f"its {key} is {shorten(one, 80)}, not {shorten(other, 80)}"
        for key, (one, other) in pairs.items()
        if one != other
    ]
    return [f"{EXACT} is of another run: {'; '.join(found)}"] if found else []


def kernels_of(lock: Lock) -> dict[str, str]:
    """By contender, the SHA-256 of its kernel with the command line."""
    named = zip(lock.contenders, lock.kernels, strict=True)
    return {one.name: f"{kernel.sha256} {one.cmdline}".strip() for one, kernel in named}


def named_twice(one: str, forbidden: list[str]) -> bool:
    """True if a document of the run is also named by the error of reading it."""
    name = one.removesuffix(f" was {FORBIDDEN}")
    return name != one and any(other.startswith("cannot read ") and f"/{name}:" in other for other in forbidden)


def became(what: str) -> str:
    """State of a file that differs from its manifest (`manifest.changes`), as said after its name."""
    return f"{'is' if what in ('missing', 'unreadable') else 'was'} {what}"
