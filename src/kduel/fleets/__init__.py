"""Fleets, one module each, here or behind an entry point `kduel.fleets`, with a `PLUGIN`, a `FleetKind`: it acquires
a machine, runs `kduel worker` on it, reports and releases it, without access to orders and verdicts."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from msgspec import Meta, Struct, field

from kduel.core.errors import InputError
from kduel.core.plugins import argument_of, convert_table, named_plugin
from kduel.core.progress import Progress

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
"""What a member may be called: its directory is named after it."""

Positive = Annotated[float, Meta(gt=0, le=30 * 86_400)]
Count = Annotated[int, Meta(ge=1, le=1000)]


class Member(Struct, frozen=True, kw_only=True):
    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    """The machine's settings that are this member's own; they come before those of the study."""


class Beat(Struct, frozen=True, kw_only=True):
    """Knowledge of a member's work at this moment."""

    active: bool
    """True if anything that was started is still to run or running."""
    working: bool = False
    """True if it runs; an active member that does not work waits: for its engine, or for a machine that is away."""
    failed: bool = False
    """Of one that is not active: whether its last work ended in an error."""
    message: str = ""
    """For people: what it waits for, or why it failed."""


IDLE = Beat(active=False)


class FleetSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of every adapter."""

    ahead: Annotated[int, Meta(ge=0, le=100)] = 2
    """Rounds that a machine may be ahead of the slowest one."""
    patience: Positive = 3600.0
    """Seconds without a new trial after which a machine is lost, while others go on."""
    poll: Positive = 0.5
    """Seconds between two looks at the machines."""


class Fleet(ABC):
    """Machines that a run may use, from one thread. `directory` is a member's on this machine: it holds study.toml
    and lock.json (or draft.json before), and in `trials` the trials, whole, as they end on the member."""

    members: tuple[Member, ...]
    """In the order in which blocks go round them."""

    def lease(self, name: str) -> None:  # noqa: B027 - many engines lease by starting
        """Have a member to oneself. Raises HostError with the engine's words."""

    @abstractmethod
    def start(self, name: str, directory: Path, blocks: Sequence[int]) -> None:
        """Have `kduel worker` run these blocks there, one after the other; without any, have it describe the machine.
        Only for an inactive member, which may still be at work for a dead controller."""

    @abstractmethod
    def beat(self, name: str, directory: Path) -> Beat:
        """The member's heartbeat. Brings home trials where the directory is not shared. Never raises for a member."""

    @abstractmethod
    def cancel(self, name: str, directory: Path) -> None:
        """End whatever was started, and wait until it has ended, or cannot be reached."""

    def give_back(self, name: str) -> None:  # noqa: B027
        """End the lease."""

    def clear(self, name: str) -> None:  # noqa: B027
        """Remove what the run left on a member: it has ended."""


S = TypeVar("S", bound=FleetSettings)


class FleetKind(ABC, Generic[S]):
    """A way to get machines, and its settings on the command line or in a file."""

    name: ClassVar[str]
    summary: ClassVar[str]

    Settings: type[S]
    """The `S` of `FleetKind[S]`."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if found := argument_of(cls, FleetKind):
            cls.Settings = found

    def named_members(self, settings: S, machine: str) -> Sequence[Member]:
        """Members as settings name them, without asking an engine. Raises InputError for the wrong machine."""
        return ()

    @abstractmethod
    def open(self, settings: S, *, machine: str, run: str, known: Sequence[str], progress: Progress) -> Fleet:
        """The fleet for a run. `machine` is the study's kind of machine; `run` is a name of the run, the same at each
        start; `known` are the members of a run that goes on, none of a new one. Raises InputError and HostError for what cannot work, before anything is started."""

    def read_settings(self, table: dict[str, Any]) -> S:
        """The typed settings. Raises InputError naming the key."""
        return convert_table(table, self.Settings, f"fleet {self.name}", "settings")


def fleet_kind(name: str) -> FleetKind[Any]:
    """The adapter of that name. Raises InputError that lists what there is."""
    chosen: FleetKind[Any] = named_plugin("fleets", "fleet", name)
    return chosen


def check_members(members: Sequence[Member], where: str) -> None:
    """Raises InputError for names that cannot be directories, and for one that occurs twice."""
    names = [member.name for member in members]
    if not names:
        raise InputError(f"{where} names no machine", "A fleet needs one machine or more.")
    for name in names:
        if not NAME.fullmatch(name):
            raise InputError(
                f"{where}: {name[:80]!r} cannot be the name of a machine",
                "Use up to 60 letters, digits, dots, dashes and underscores.",
            )
        if names.count(name) > 1:
            raise InputError(f"{where} names {name} twice", "Each machine is a stratum of its own: name it once.")
