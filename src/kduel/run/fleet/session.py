"""A study carried out by a fleet: a new run, or one that goes on."""

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import structs

from kduel.core.errors import InputError
from kduel.core.progress import Progress
from kduel.core.toml import check_values, parse_toml, read_text
from kduel.fleets import Fleet, FleetSettings, check_members, fleet_kind
from kduel.judge.verdict.strata import FEWEST_OF_CLASS
from kduel.run.fleet.controller import Controller
from kduel.run.fleet.gather import FleetRequest, gather
from kduel.run.prepare import read_study
from kduel.run.watch import GiveUp, Watcher
from kduel.store.documents import FleetRecord, Lock
from kduel.store.identity import check_same_study, short_value, value_differences
from kduel.store.rundir import RunDir
from kduel.study.load import Study, read_words
from kduel.study.plan import make_plan, slug

OTHER = "Continue it with `kduel resume`, or start a new run with another --out."


def read_fleet(spec: str) -> tuple[str, dict[str, Any]]:
    """Kind and settings from `KIND[:key=value,...]` or a TOML file. Raises InputError, also for wrong settings."""
    if not spec.endswith(".toml"):
        kind, _, words = spec.partition(":")
        table = read_words(words, "file")
        check_values(table, "--fleet")
        fleet_kind(kind).read_settings(table)
        return kind, table
    remedy = 'Give KIND[:key=value,...], or a TOML file: kind = "hosts", then a table [[host]] for each machine.'
    table = parse_toml(read_text(Path(spec), "the fleet", remedy), spec, remedy)
    kind = table.pop("kind", "hosts")
    if not isinstance(kind, str):
        raise InputError(f"{spec}: kind is {kind!r}", remedy)
    try:
        fleet_kind(kind).read_settings(table)
    except InputError as error:
        raise InputError(f"{spec}: {error.message}", error.remedy) from error
    return kind, table


def read_fleet_study(study: Study, spec: str, origin: str) -> str:
    """The fleet's kind, where the study can be carried out on it as far as both are written: nothing is asked or
    fetched. Raises InputError as `read_fleet`, the fleet and `read_study` do."""
    kind, table = read_fleet(spec)
    check_no_turns(study)
    chosen = fleet_kind(kind)
    own = {
        member.name: member.settings for member in chosen.named_members(chosen.read_settings(table), study.machine)
    }
    for name, settings in (own or {"": {}}).items():
        member = structs.replace(study, machine_settings=study.machine_settings | settings)
        read_study(member, f"{spec}: {name}" if settings else origin)
    return kind


def check_no_turns(study: Study) -> None:
    """Raises InputError for turns: half of a block may come in from a machine that is lost then, and makes the block again."""
    if study.blocks.in_turns:
        raise InputError(
            "a fleet takes no turns: its machines carry out one boot after the other",
            'Write turns = "off" in [blocks], or give --turns off; or measure on one machine, without --fleet.',
        )


def run_fleet(
    study: Study,
    kind: str,
    table: dict[str, Any],
    path: Path,
    *,
    origin: str,
    seed: Callable[[bool], int],
    progress: Progress,
    watch: Watcher,
    give_up: GiveUp = lambda *_: False,
) -> RunDir:
    """Carry the study out in `path` on a fleet, or go on there; `seed` is asked for when it is known whether machines
    are exact. Raises what the adapter raises, NotMeasuredError, InputError for another run, HostError."""
    check_no_turns(study)
    chosen = fleet_kind(kind)
    settings: FleetSettings = chosen.read_settings(table)
    there = RunDir.open(path).lock() if (path / "lock.json").is_file() else None
    # Of the place: adapters find their jobs by it, also after the controller was killed.
    name = slug(path.absolute().name)[:20] + "-" + sha256(os.fsencode(path.absolute())).hexdigest()[:8]
    known = there.hosts if there else []
    fleet = chosen.open(settings, machine=study.machine, run=name, known=known, progress=progress)
    check_members(fleet.members, f"fleet {kind}")
    if study.about.machines == "class" and len(fleet.members) < FEWEST_OF_CLASS:
        progress.warn(
            f"the study is about a class of machines, and this fleet has {len(fleet.members)}: it decides nothing about the "
            f"class until it is merged with runs on others ({FEWEST_OF_CLASS} machines or more)"
        )
    if there is not None:
        run = RunDir.open(path)
        check_same_fleet(there, study, kind, fleet, path)
    else:
        wanted = FleetRequest(kind=kind, settings=table, fleet=fleet)
        found = gather(study, wanted, path, origin=origin, progress=progress)
        lock = structs.replace(found, seed=seed(found.machine.exact))
        run = RunDir.create(path, study.text, lock, make_plan(study, lock.seed, hosts=lock.hosts))
    if warning := run.lock().machine.timing_warning:
        progress.info(warning)
    with run.at_work():
        controller = Controller(run, progress, watch, give_up, fleet, settings)
        controller.go()
        controller.clear()
    return run


def check_of_fleet(lock: Lock, study: Study, path: Path) -> FleetRecord:
    """The fleet of the run in `path`. Raises InputError where it is another study's, or on one machine."""
    check_same_study(lock, study, path, OTHER)
    if lock.fleet is None:
        raise InputError(f"{path} holds a run on one machine", OTHER)
    return lock.fleet


def check_same_fleet(lock: Lock, study: Study, kind: str, fleet: Fleet, path: Path) -> None:
    """Raises InputError where the run in `path` is another study's or fleet's; machines are compared later."""
    there = check_of_fleet(lock, study, path)
    old = {one.name: one.settings for one in there.members} | {"": there.kind}
    new = {one.name: one.settings for one in fleet.members} | {"": kind}
    found = [
        f"{what}: {short_value(was)} in the run, {short_value(now)} now"
        for what, was, now in value_differences("fleet", old, new)
    ]
    if found:
        raise InputError(f"{path} holds a run of another fleet:\n  " + "\n  ".join(found[:5]), OTHER)
