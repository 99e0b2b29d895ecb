"""A question to another machine that must be answered for the run to begin."""

from __future__ import annotations

from kduel.errors import HostError
from kduel.remote.connection import REMEDIES, Broken, Connection, Refused, last_line


def asked(connection: Connection, script: str, failure: str) -> str:
    """The output of shell lines that must succeed. Raises HostError."""
    try:
        done = connection.run(script)
    except (Broken, Refused) as error:
        raise HostError(f"{failure}: {error}", REMEDIES["unreachable"]) from error
    if done.status:
        raise HostError(f"{failure}: {last_line(done.stderr)}", f"Try by hand: ssh {connection.place} {script!r}")
    return done.text
