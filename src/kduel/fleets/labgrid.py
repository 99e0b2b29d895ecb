"""Boards of a lab: labgrid's tagged places, driven by workers here (kduel.machines.labgrid); machine `board`."""

import re
from collections.abc import Sequence
from typing import Annotated, ClassVar

from msgspec import Meta, field

from kduel.core.errors import HostError, InputError
from kduel.core.progress import Progress
from kduel.fleets import Fleet, FleetKind, FleetSettings, Member
from kduel.fleets.local import LocalFleet
from kduel.machines.labgrid.client import OURS, PROGRAM, run_client


class LabgridSettings(FleetSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    tags: str = ""
    """Use the places that have these tags: board=imx8, or several joined by +: board=imx8+lab=2. Or give `places`."""
    places: list[str] = field(default_factory=list)
    """Use these places."""
    count: Annotated[int, Meta(ge=0, le=1000)] = 0
    """Use so many of the places that have the tags, free ones, the first ones by name; 0 for all."""
    coordinator: str = ""
    """HOST[:PORT]; labgrid's own default if empty."""


class LabgridFleet(LocalFleet):
    """Workers of this machine, one a place. A place is held from the first block to the last."""

    def __init__(self, settings: LabgridSettings, members: Sequence[Member]) -> None:
        super().__init__(members)
        self.settings = settings
        self.held: set[str] = set()

    def lease(self, name: str) -> None:
        if name not in self.held:
            client(self.settings, "-p", name, "acquire", harmless=OURS)
            self.held.add(name)

    def give_back(self, name: str) -> None:
        if name in self.held:
            self.held.discard(name)
            try:
                client(self.settings, "-p", name, "release")
            except HostError:
                # The coordinator is away: the place stays acquired by this user, and the next lease finds it so.
                return


def client(settings: LabgridSettings, *words: str, harmless: str = "\0") -> str:
    """Output of labgrid's own client. Raises HostError with its words, but for a harmless refusal."""
    where = ["-x", settings.coordinator] if settings.coordinator else []
    done = run_client(*where, *words)
    said = done.stderr + done.stdout
    if done.returncode and harmless not in said:
        lines = [line for line in said.strip().splitlines() if line.strip()]
        raise HostError(
            f"{PROGRAM} {' '.join(words)}: {lines[-1][:300] if lines else 'no reason given'}",
            "See that the coordinator runs (LG_COORDINATOR, or coordinator=HOST:PORT), and who has the place.",
        )
    return done.stdout


class LabPlace(Member, frozen=True, kw_only=True):
    tags: frozenset[str]
    free: bool


def places(text: str) -> list[LabPlace]:
    """From `labgrid-client -v places`, by name."""
    found = []
    for part in re.split(r"^Place ", text, flags=re.MULTILINE)[1:]:
        name = re.match(r"'([^']+)':", part)
        tags = re.search(r"^  tags: (.*)$", part, re.MULTILINE)
        acquired = re.search(r"^  acquired: (.*)$", part, re.MULTILINE)
        if name:
            own = frozenset(tag.strip() for tag in tags[1].split(",")) if tags else frozenset()
            found.append(LabPlace(name=name[1], tags=own, free=acquired is None or acquired[1] == "None"))
    return sorted(found, key=lambda place: place.name)


def choose(settings: LabgridSettings, there: Sequence[LabPlace], known: Sequence[str]) -> list[str]:
    """The places: of the run that goes on, named ones, or tagged ones. Raises InputError and HostError."""
    names = [place.name for place in there]
    if known or settings.places:
        wanted = list(known or settings.places)
        if unknown := [name for name in wanted if name not in names]:
            raise InputError(f"labgrid has no place {unknown[0]!r}", f"It has: {', '.join(names[:20]) or 'none'}.")
        return wanted
    tags = frozenset(filter(None, settings.tags.split("+")))
    if not tags:
        raise InputError("the fleet labgrid needs tags=KEY=VALUE, or places", "For example labgrid:tags=board=imx8.")
    having = [place for place in there if tags <= place.tags]
    if not having:
        every = sorted({tag for place in there for tag in place.tags})
        raise InputError(f"no place has the tags {settings.tags}", f"There are: {', '.join(every[:20]) or 'none'}.")
    free = [place.name for place in having if place.free]
    if len(free) < (settings.count or len(having)):
        taken = ", ".join(place.name for place in having if not place.free)
        raise HostError(
            f"{len(free)} place(s) with the tags {settings.tags} are free; {settings.count or len(having)} are requested",
            f"Wait, or give count=N. Taken: {taken or 'none'}.",
        )
    return free[: settings.count or None]


class Labgrid(FleetKind[LabgridSettings]):
    name: ClassVar[str] = "labgrid"
    summary: ClassVar[str] = "boards of a lab: labgrid's places that have given tags, for the machine board"

    def named_members(self, settings: LabgridSettings, machine: str) -> tuple[Member, ...]:
        if machine != "board":
            raise InputError(
                f"--fleet labgrid drives boards, and the study's machine is {machine}",
                "Use --machine board:MINE.toml; docs/boards.md describes its format.",
            )
        return ()

    def open(
        self, settings: LabgridSettings, *, machine: str, run: str, known: Sequence[str], progress: Progress
    ) -> Fleet:
        self.named_members(settings, machine)
        names = choose(settings, places(client(settings, "-v", "places")), known)
        return LabgridFleet(settings, [Member(name=name, settings={"lab_place": name}) for name in names])


PLUGIN = Labgrid()
