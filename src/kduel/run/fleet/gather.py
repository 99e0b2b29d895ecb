"""Before the first trial: every member describes its machine and kernels, and what must be the same is compared."""

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, json, structs

from kduel.core.editions import EDITION
from kduel.core.errors import HostError, InputError
from kduel.core.experiment import MachineRecord
from kduel.core.progress import Progress
from kduel.core.temporary import ordinary_mode
from kduel.core.version import full_version
from kduel.fleets import Fleet, Member
from kduel.run.fleet.worker import DESCRIBED, DRAFT, MemberDescription
from kduel.store.documents import FleetRecord, KernelRecord, Lock, MemberRecord, read_json
from kduel.store.identity import differences, short_value
from kduel.store.whole_files import CHOOSE, as_disk_error
from kduel.study.load import Study

CLOCK_TROUBLE = 60.0
"""Seconds by which a clock may be wrong before it is worth a note: nothing but dates depends on it."""
ALIKE = ("accelerator", "clocksource", "root", "architecture")
"""Facts of a machine that measures time in which members may not differ, unless their own settings say so."""
MOST_NAMED = 5


class FleetRequest(Struct, frozen=True, kw_only=True):
    kind: str
    settings: dict[str, Any]
    fleet: Fleet


def gather(study: Study, wanted: FleetRequest, path: Path, *, origin: str, progress: Progress) -> Lock:
    """The lock of a new run in `path`, but for its seed. The first member goes first: all others must have its
    kernels. Raises HostError where a member cannot describe itself, InputError where members differ that must not."""
    members = wanted.fleet.members
    draft = draft_lock(study, wanted, origin)
    with as_disk_error(path, CHOOSE):
        path.parent.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent)).absolute()
        place.chmod(ordinary_mode(0o777))
    try:
        with progress.task("machines", total=len(members)) as task:
            found = collect_descriptions(wanted.fleet, members[:1], place, draft, study.text, task.advance)
            first = found[members[0].name]
            known = structs.replace(draft, kernels=first.lock.kernels)
            found |= collect_descriptions(wanted.fleet, members[1:], place, known, study.text, task.advance)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    check_alike(members, found)
    for member in members:
        if abs(ahead := found[member.name].clock) > CLOCK_TROUBLE:
            progress.warn(
                f"the clock of {member.name} is {abs(ahead):.0f} s {'ahead' if ahead > 0 else 'behind'}: the dates of "
                "its trials are wrong, its measurements are not"
            )
    return structs.replace(
        first.lock,
        directory=draft.directory,
        machine=structs.replace(first.lock.machine, settings=study.machine_settings),
        fleet=FleetRecord(
            kind=wanted.kind,
            settings=wanted.settings,
            members=[member_record(member, found[member.name]) for member in members],
        ),
    )


def draft_lock(study: Study, wanted: FleetRequest, origin: str) -> Lock:
    """Lock of a run whose machines are not known yet."""
    machine = MachineRecord(kind=study.machine, settings=study.machine_settings)
    members = [MemberRecord(name=one.name, settings=one.settings, machine=machine) for one in wanted.fleet.members]
    return Lock(
        kduel=full_version(), seed=0, origin=origin, directory=str(Path.cwd()), study=study.about,
        blocks=study.blocks, settle=study.settle, machine=machine, contenders=study.contenders,
        kernels=[KernelRecord(spec=contender.kernel) for contender in study.contenders], steps=study.steps,
        edition=EDITION, fleet=FleetRecord(kind=wanted.kind, settings=wanted.settings, members=members),
    )  # fmt: skip


def collect_descriptions(
    fleet: Fleet, members: Sequence[Member], place: Path, draft: Lock, text: str, advance: Callable[[], None]
) -> dict[str, MemberDescription]:
    """By name, the description of each member; `clock` is how far its clock is ahead. Raises HostError."""
    began: dict[str, float] = {}
    found: dict[str, MemberDescription] = {}
    trouble: dict[str, str] = {}
    given = draft.fleet.settings.get("patience") if draft.fleet else None
    patience = float(given) if given is not None else 3600.0
    try:
        for member in members:
            directory = place / member.name
            directory.mkdir()
            (directory / DRAFT).write_bytes(json.encode(draft))
            (directory / "study.toml").write_text(text, "utf-8")
            began[member.name] = time.time()
            try:
                fleet.lease(member.name)
                fleet.start(member.name, directory, ())
            except HostError as error:
                trouble[member.name] = str(error)
        end = time.monotonic() + patience
        while waiting := began.keys() - found.keys() - trouble.keys():
            for name in sorted(waiting):
                beat = fleet.beat(name, place / name)
                if not beat.active and (place / name / DESCRIBED).is_file():
                    said = read_json(place / name / DESCRIBED, MemberDescription)
                    found[name] = structs.replace(said, clock=clock_ahead(said.clock, began[name], time.time()))
                    advance()
                elif not beat.active:
                    trouble[name] = beat.message or "it ended without a description of its machine"
                elif time.monotonic() > end:
                    trouble[name] = f"no answer for {patience:.0f} s: {beat.message or 'it was still at work'}"
            time.sleep(0.1)
    finally:
        for name in began.keys() - found.keys():
            fleet.cancel(name, place / name)
    if trouble:
        whole = len(fleet.members)
        rest = (
            ""
            if len(members) == whole or members[0] is not fleet.members[0]
            else " The others have not been asked yet."
        )
        listed = "\n".join(f"  {name}: {why}" for name, why in list(trouble.items())[:MOST_NAMED])
        raise HostError(
            f"{len(trouble)} of {whole} machine(s) cannot be used:\n{listed}",
            f"Nothing was measured. Repair them, or leave them out of the fleet.{rest}",
        )
    return found


def clock_ahead(clock: float, began: float, ended: float) -> float:
    """Seconds by which a clock that was read between two moments of ours is ahead; 0 where it is between them."""
    return clock - ended if clock > ended else clock - began if clock < began else 0.0


def check_alike(members: Sequence[Member], found: dict[str, MemberDescription]) -> None:
    """Raises InputError, naming machines and facts, where members differ in what must be the same."""
    first = members[0]
    theirs = found[first.name].lock
    for member in members:
        if (version := found[member.name].lock.kduel) != full_version():
            raise InputError(
                f"{member.name} has KDuel {version}, and this is {full_version()}",
                "Nothing was measured. Install this version there: its trials must be those that are analysed here.",
            )
    own_settings = {key for member in members for key in member.settings}
    lines = []
    for member in members[1:]:
        lock = found[member.name].lock
        listed = [("architecture", theirs.host.architecture, lock.host.architecture)]
        listed = [line for line in listed if line[1] != line[2]]
        listed += [
            line for line in differences(theirs, lock) if must_be_alike(line[0], lock.machine.exact, own_settings)
        ]
        lines += [
            f"{what}: {short_value(was)} on {first.name}, {short_value(now)} on {member.name}"
            for what, was, now in listed
        ]
    if lines:
        more = [f"and {len(lines) - MOST_NAMED} more"] if len(lines) > MOST_NAMED else []
        raise InputError(
            "the machines of the fleet differ in what must be the same:\n"
            + "\n".join(f"  {line}" for line in lines[:MOST_NAMED] + more),
            "Nothing was measured. Make them alike, or leave machines out of the fleet.",
        )


def must_be_alike(fact: str, exact: bool, own_settings: set[str]) -> bool:
    """True if members may not differ in a fact, named as in `differences`."""
    parts = fact.split(".")
    if parts[:2] == ["machine", "settings"]:
        return parts[2] not in own_settings
    if parts[:2] != ["machine", "facts"]:
        return True
    return parts[2] not in own_settings and (parts[2] in ALIKE or (exact and parts[2] != "host"))


def member_record(member: Member, found: MemberDescription) -> MemberRecord:
    """A member as lock.json has it."""
    return MemberRecord(
        name=member.name,
        settings=member.settings,
        machine=found.lock.machine,
        host=found.lock.host,
        clock_ahead=round(found.clock, 1) if abs(found.clock) > CLOCK_TROUBLE else 0.0,
    )
