"""labgrid's own program for places."""

import subprocess

from kduel.core.errors import HostError
from kduel.core.host_packages import pip_command
from kduel.core.supervised_process import run_text

PROGRAM = "labgrid-client"
INSTALL = f"Install it into KDuel's environment: {pip_command('labgrid')}"
OURS = "already acquired place"
"""What it prints for a place that its user has acquired, such as one of a controller that was killed: it is used, and not released."""
ANSWER = 60.0
"""Seconds in which it must answer."""


def run_client(*words: str) -> subprocess.CompletedProcess[str]:
    """The program, run to its end, whatever its status. Raises HostError where it is missing or does not end."""
    try:
        return run_text([PROGRAM, *words], timeout=ANSWER)
    except FileNotFoundError as error:
        raise HostError(f"{PROGRAM} is not in the path", INSTALL) from error
    except subprocess.TimeoutExpired as error:
        raise HostError(
            f"{PROGRAM} does not answer within {ANSWER:.0f} s", "See whether the coordinator runs."
        ) from error
