"""A merged run: runs of one experiment, perhaps of several machines, kept whole below one directory.

    RUN/merge.json  runs/NAME/{lock.json,plan.jsonl,study.toml,trials/...}

Nothing in a part is rewritten: each stays a run by itself, its manifests hold, and results are derived from its raw
files. merge.json lists the parts, and the machine of each.
"""

import contextlib
import os
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kduel.core.errors import InputError
from kduel.core.results import first_date
from kduel.core.validation import in_utc
from kduel.core.version import full_version
from kduel.store import run_lock
from kduel.store.documents import RESTORE, Lock, MemberRecord, document_bytes, read_document
from kduel.store.identity import as_json_value, differences_text, protocol_differences
from kduel.store.integrity import Integrity, find_added, of_error, trials_of, verify
from kduel.store.manifest import NAME as MANIFEST
from kduel.store.manifest import digest
from kduel.store.rundir import EXPLAIN, MERGED, RunDir
from kduel.store.whole_files import whole_directory
from kduel.study.plan import slug

MERGE_SCHEMA = 1
LEFT_OUT = (run_lock.NAME, "report", ".new-*")
"""What a copy of a run does without: the runner's own, and reports, which are made again."""
HARDWARE = ("cpus", "cpu", "memory_mib", "emulated", "product")
"""Facts that distinguish the machines of one host, such as guests with different processors."""


class Part(Struct, kw_only=True, forbid_unknown_fields=True):
    """A run that was merged with others."""

    name: str
    """Of its directory below runs/."""
    machine: str
    """What its machine is called; parts with one name were measured on one machine. Of a fleet's run: what stands before
    the names of its members, or nothing where these names are enough."""


class Merge(Struct, kw_only=True, forbid_unknown_fields=True):
    schema: int = MERGE_SCHEMA
    kduel: str
    merged: str
    """UTC, ISO 8601."""
    parts: list[Part]
    """In the order in which their blocks count."""


class MergedRun(Struct, kw_only=True):
    """A run to be merged, or one that was."""

    part: Part
    run: RunDir
    lock: Lock

    @property
    def machines(self) -> list[str]:
        return [machine_of(self.part.machine, member) for member in self.lock.hosts] or [self.part.machine]


def machine_of(part: str, member: str) -> str:
    """Name of a machine of a part: the part's machine, or its fleet's member."""
    return "/".join(filter(None, (part, member)))


def merge(paths: Sequence[Path], out: Path, machines: Sequence[str] = ()) -> Merge:
    """Make the merged run `out`, whole or not at all, of runs or merged runs. `machines` names the machine of each run;
    without it they are distinguished by the facts in the runs. The machines of a fleet have names; the name that is
    given stands before them.

    Raises InputError for imports, runs of different experiments, a run twice, or runs that are at work."""
    if out.exists() or out.is_symlink():
        raise InputError(f"{out} is there already", "Give another --out.")
    if machines and len(machines) != len(paths):
        raise InputError(
            f"--machines names {len(machines)} machines for {len(paths)} runs",
            "Name the machine of each run, in order.",
        )
    found = [
        one for number, path in enumerate(paths) for one in open_parts(path, machines[number] if machines else "")
    ]
    check(found)
    # The order in which runs are named does not matter; one whose start is not known comes last.
    starts = {id(one): in_utc(first_date(record.started for record in one.run.records())) for one in found}
    found.sort(key=lambda one: ((start := starts[id(one)]) is None, start, one.part.name))
    name_all(found)
    record = Merge(
        kduel=full_version(),
        merged=datetime.now(UTC).isoformat(timespec="seconds"),
        parts=[one.part for one in found],
    )
    with whole_directory(out) as fresh:
        for one in found:
            # A runner may have it: hold it, so that it is copied whole.
            held = (one.run.path / run_lock.NAME).exists()
            with one.run.hold() if held else contextlib.nullcontext():
                shutil.copytree(
                    one.run.path,
                    fresh / "runs" / one.part.name,
                    symlinks=True,
                    ignore=shutil.ignore_patterns(*LEFT_OUT),
                )
        (fresh / MERGED).write_bytes(document_bytes(record))
    return record


def open_parts(path: Path, machine: str = "") -> list[MergedRun]:
    """The run at `path`, or the parts of a merged one. Raises InputError for what cannot be merged."""
    run = RunDir.open(path)
    if run.imported:
        raise InputError(
            f"{path} was imported: its values are in no blocks, and cannot be merged with others",
            "Give all files to one `kduel import`.",
        )
    if not run.merged:
        return [MergedRun(part=Part(name=path.resolve().name, machine=machine), run=run, lock=run.lock())]
    found = parts(path)
    if machine:
        return name_machine(found, machine)
    derived = name_machine(found, "")
    name_all(derived)
    # Names that nobody gave are derived anew, since another run may be of the same machine.
    return name_machine(found, "") if [one.part for one in derived] == [one.part for one in found] else found


def name_machine(found: Sequence[MergedRun], machine: str) -> list[MergedRun]:
    """Parts that are all on a machine of that name; empty: on none that has one yet."""
    return [MergedRun(part=Part(name=one.part.name, machine=machine), run=one.run, lock=one.lock) for one in found]


def check(found: Sequence[MergedRun]) -> None:
    """Raises InputError where the runs are not several of one experiment."""
    if len(found) < 2:
        raise InputError("there is one run only", "Name two or more: kduel merge A B --out C")
    paths = [one.run.path.resolve() for one in found]
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise InputError(f"{twice} is named twice", "Name each run once.")
    first = found[0]
    for other in found[1:]:
        if differing := protocol_differences(first.lock, other.lock):
            names = f"in {first.run.path}", f"in {other.run.path}"
            raise InputError(
                f"{first.run.path} and {other.run.path} are different experiments:\n{differences_text(differing, names)}",
                "Only runs with the same contenders, benchmarks and protocol can be merged. `kduel diff` compares others.",
            )
    seen: dict[tuple[str, str | None], Path] = {}
    for one in found:
        for record in trials_of(one.run, one.lock):
            manifest = one.run.directory(record.id) / MANIFEST
            # It covers trial.json as it was written, whatever that says of the start now.
            key = record.id, digest(os.fsencode(manifest)) if manifest.is_file() else in_utc(record.started)
            if key[1] and seen.setdefault(key, one.run.path) != one.run.path:
                raise InputError(
                    f"{one.run.path} and {seen[key]} hold the same trial {record.id}",
                    "One is a copy of the other: merge it once.",
                )


def name_all(found: Sequence[MergedRun]) -> None:
    """Give each part a safe name of its own, and each machine without a name its place or first run's name."""
    taken: set[str] = set()
    machines: dict[bytes, str] = {}
    for one in found:
        name = base = slug(one.part.name)
        number = 1
        while name in taken:
            number += 1
            name = f"{base}-{number}"
        taken.add(name)
        one.part.name = name
        if not one.part.machine and one.lock.fleet is not None:
            one.part.machine = name if any(namesakes(one.lock, other.lock) for other in found) else ""
        elif not one.part.machine:
            place = one.lock.machine.settings.get("place") if is_place(one.lock) else None
            one.part.machine = machines.setdefault(hardware(one.lock), str(place or name))


def namesakes(lock: Lock, other: Lock) -> bool:
    """True if two fleets have a member of one name that is another machine."""
    if lock.fleet is None or other.fleet is None:
        return False
    known = {one.name: one for one in other.fleet.members}
    return any(member_hardware(one) != member_hardware(known.get(one.name, one)) for one in lock.fleet.members)


def member_hardware(member: MemberRecord) -> bytes:
    """Bytes that distinguish a member of a fleet from others of its name."""
    host = [member.host.machine, member.host.cpu, member.host.cpus]
    facts = {name: member.machine.facts.get(name) for name in HARDWARE}
    return msgspec.json.encode(as_json_value([member.settings, facts, host]), order="sorted")


def is_place(lock: Lock) -> bool:
    """True if the machine is another than the host that drove it, known by its place."""
    return "place" in lock.machine.settings and "host" not in lock.machine.facts


def hardware(lock: Lock) -> bytes:
    """Bytes that distinguish the run's machine from others: its place, or the host with the settings of its guests."""
    known: list[Any] = [lock.machine.kind, lock.hosts]
    if is_place(lock):
        known.append(lock.machine.settings["place"])
    else:
        facts = {name: lock.machine.facts.get(name) for name in HARDWARE}
        known += [lock.machine.settings, facts, lock.host.machine, lock.host.cpu, lock.host.cpus]
    return msgspec.json.encode(as_json_value(known), order="sorted")


def record_of(run: Path) -> Merge:
    """merge.json. Raises InputError where it is missing or damaged."""
    record = read_document(run / MERGED, Merge, MERGE_SCHEMA)
    names = [part.name for part in record.parts]
    if len(set(names)) < len(names) or len(names) < 2 or any(slug(name) != name for name in names):
        raise InputError(f"{run / MERGED}: the parts are {', '.join(names)[:200] or 'none'}", RESTORE)
    return record


def examine(run: Path) -> Integrity:
    """Every part compared with its seed and its manifests. Raises InputError where merge.json is damaged."""
    names = [part.name for part in record_of(run).parts]
    added = [*find_added(run, {MERGED, "runs", EXPLAIN}), *find_added(run / "runs", set(names), "runs/")]
    found = Integrity(checked=0, changes=added)
    for name in names:
        try:
            part = verify(RunDir.open(run / "runs" / name))
        except InputError as error:
            part = of_error(error)
        found = found.together(part, f"runs/{name}")
    if not found.changes:
        try:
            parts(run)
        except InputError as error:
            found = found.together(of_error(error), "")
    return found


def parts(run: Path) -> list[MergedRun]:
    """The parts of a merged run, opened. Raises InputError where one is missing, damaged, or of another experiment."""
    found = []
    for part in record_of(run).parts:
        one = RunDir.open(run / "runs" / part.name)
        if not one.single:
            raise InputError(f"{one.path} is no run that was measured by KDuel", RESTORE)
        found.append(MergedRun(part=part, run=one, lock=one.lock()))
    for other in found[1:]:
        if differing := protocol_differences(found[0].lock, other.lock):
            names = f"in {found[0].part.name}", f"in {other.part.name}"
            raise InputError(
                f"{run}: its parts are different experiments:\n{differences_text(differing, names)}", RESTORE
            )
    return found
