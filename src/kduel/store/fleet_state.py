"""RUN/fleet/state.json: which machines of a fleet are out of service. What is decided there stays decided, since later
analyses count on it: a machine that is out does not come back in this run."""

from pathlib import Path
from typing import Literal

from msgspec import Struct, field, json

from kduel.store.documents import read_document
from kduel.store.rundir import FLEET
from kduel.store.whole_files import as_disk_error, write_whole

STATE_SCHEMA = 1


class Out(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    why: Literal["lost", "quarantined"]
    message: str
    round: int
    """The complete rounds when it was decided."""
    decided: str
    """UTC, ISO 8601, by the controller's clock."""


class FleetState(Struct, kw_only=True, forbid_unknown_fields=True):
    """The controller's decisions about the fleet's machines."""

    schema: int = STATE_SCHEMA
    out: dict[str, Out] = field(default_factory=dict)


class LiveMember(Struct, frozen=True, kw_only=True):
    """A member's activity a few seconds ago."""

    state: str
    """idle, ahead, working, waiting, done, lost or quarantined."""
    blocks: list[int] = field(default_factory=list)
    """Those that it was last given."""
    message: str = ""


class Live(Struct, frozen=True, kw_only=True):
    """RUN/fleet/live.json: what the controller saw last, for `kduel status`. Nothing else reads it."""

    schema: int = STATE_SCHEMA
    controller: int
    """Its process id."""
    written: str
    """UTC, ISO 8601."""
    members: dict[str, LiveMember]


def read_live(run: Path) -> Live | None:
    """The fleet as the controller saw it last, if there is or was one. Raises InputError for a damaged file."""
    path = run / FLEET / "live.json"
    return read_document(path, Live, STATE_SCHEMA) if path.exists() else None


def write_live(run: Path, live: Live) -> None:
    """Write it whole. Raises HostError."""
    with as_disk_error(run):
        write_whole(run / FLEET / "live.json", json.encode(live))


def state_path(run: Path) -> Path:
    return run / FLEET / "state.json"


def read_state(run: Path) -> FleetState:
    """The state; nobody is out where there is none yet. Raises InputError for a damaged file."""
    path = state_path(run)
    return read_document(path, FleetState, STATE_SCHEMA) if path.exists() else FleetState()


def write_state(run: Path, state: FleetState) -> None:
    """Write it whole. Raises HostError."""
    with as_disk_error(run):
        state_path(run).parent.mkdir(exist_ok=True)
        write_whole(state_path(run), json.format(json.encode(state), indent=1) + b"\n")
