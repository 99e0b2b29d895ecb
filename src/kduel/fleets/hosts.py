"""Machines that ssh reaches, from a file. With machine `ssh` each is measured itself, driven and rebooted from here;
with any other a worker, and its guests, run on each, which needs KDuel there."""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct, field

from kduel.core.errors import InputError
from kduel.core.progress import Progress
from kduel.fleets import Fleet, FleetKind, FleetSettings, Member, check_members
from kduel.fleets.local import LocalFleet
from kduel.fleets.workers.ssh import RemoteWorker
from kduel.machines.remote.connection import Connection


class Host(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    place: str = ""
    """Destination for ssh: HOST or USER@HOST; the name if empty."""
    port: Annotated[int, Meta(ge=0, le=65_535)] = 0
    identity: str = ""
    known_hosts: str = ""
    kduel: str = "kduel"
    """How KDuel is called there."""
    machine: dict[str, Any] = field(default_factory=dict)
    """Settings of the study's [machine] that are this one's own."""

    @property
    def ssh_settings(self) -> dict[str, Any]:
        """Settings of ssh for it, as far as they are given."""
        given = {"port": self.port, "identity": self.identity, "known_hosts": self.known_hosts}
        return {"place": self.place or self.name} | {key: value for key, value in given.items() if value}


class HostsSettings(FleetSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    host: list[Host]
    """Tables [[host]]: name, place, port, identity, known_hosts, kduel, machine."""


class HostsFleet(LocalFleet):
    """Workers on other machines. They end when this process does, or the connection."""

    def __init__(self, members: Sequence[Member], hosts: Sequence[Host], run: str) -> None:
        self.members = tuple(members)
        self.remote = {
            host.name: RemoteWorker(
                Connection(
                    host.place or host.name, port=host.port, identity=host.identity, known_hosts=host.known_hosts
                ),
                host.kduel,
                f".cache/kduel/fleet/{run}/{host.name}",
            )
            for host in hosts
        }
        self.workers = {**self.remote}

    def clear(self, name: str) -> None:
        self.remote[name].remove()


class Hosts(FleetKind[HostsSettings]):
    name: ClassVar[str] = "hosts"
    summary: ClassVar[str] = "machines that ssh reaches, from a file with a table [[host]] for each"

    def named_members(self, settings: HostsSettings, machine: str) -> list[Member]:
        own = {host.name: host.machine for host in settings.host}
        if machine == "ssh":
            own = {host.name: host.ssh_settings | host.machine for host in settings.host}
        members = [Member(name=host.name, settings=own[host.name]) for host in settings.host]
        check_members(members, "the file of hosts")
        # A machine under two names would be two strata, and disturb itself.
        seen: dict[tuple[str, int], str] = {}
        for host in settings.host:
            address = (host.place or host.name).rpartition("@")[2]
            other = seen.setdefault((address.lower(), host.port), host.name)
            if other != host.name:
                raise InputError(
                    f"the file of hosts: {other} and {host.name} are the same machine, {address}",
                    "Each machine is a stratum of its own: name it once. For several workers on this host: --fleet local.",
                )
        return members

    def open(
        self, settings: HostsSettings, *, machine: str, run: str, known: Sequence[str], progress: Progress
    ) -> Fleet:
        members = self.named_members(settings, machine)
        return LocalFleet(members) if machine == "ssh" else HostsFleet(members, settings.host, run)


PLUGIN = Hosts()
