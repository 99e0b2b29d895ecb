"""A question to another machine that must be answered for the run to begin."""

import time
from collections.abc import Callable

from kduel.core.errors import HostError
from kduel.machines.remote.connection import (
    REMEDIES,
    CommandResult,
    Connection,
    ConnectionLost,
    TrialRefused,
    last_line,
)

TRIES, PAUSE = 3, 3.0


def patiently(what: Callable[[], CommandResult]) -> CommandResult:
    """The answer, with some retries: a busy machine may let a connection wait too long. Raises ConnectionLost, TrialRefused."""
    for _ in range(TRIES - 1):
        try:
            return what()
        except ConnectionLost:
            time.sleep(PAUSE)
    return what()


def run_or_fail(connection: Connection, script: str, failure: str) -> str:
    """The output of shell lines that must succeed. Raises HostError."""
    try:
        done = patiently(lambda: connection.run(script))
    except (ConnectionLost, TrialRefused) as error:
        raise HostError(f"{failure}: {error}", REMEDIES["unreachable"]) from error
    if done.status:
        raise HostError(f"{failure}: {last_line(done.stderr)}", f"Try by hand: ssh {connection.place} {script!r}")
    return done.text
