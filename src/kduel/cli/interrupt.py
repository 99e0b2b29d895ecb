"""Ctrl-C and its like: every command ends cleanly, with everything kept."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

AGAIN = 0.05
"""Seconds after which a lost interruption is raised again: by then the finalizer that it fell into has ended."""


class Interrupt:
    """Handles SIGINT, SIGTERM and SIGHUP: each ends the work like Ctrl-C, with everything kept. Those that follow
    each other within a second are one interruption (`timeout`, impatient users)."""

    def __init__(self) -> None:
        self.heard = 0.0

    def __call__(self, *_: object) -> None:
        last, self.heard = self.heard, time.monotonic()
        if not last or self.heard - last > 1:
            raise Interruption

    def raise_again(self, lost: sys.UnraisableHookArgs) -> None:
        """Be `sys.unraisablehook`: Python drops an exception that falls into a finalizer or a callback, and goes on."""
        if not isinstance(lost.exc_value, Interruption):
            sys.__unraisablehook__(lost)
            return
        self.heard = 0.0
        repeated = threading.Timer(AGAIN, os.kill, (os.getpid(), signal.SIGTERM))
        repeated.daemon = True
        repeated.start()


class Interruption(KeyboardInterrupt):
    """An exception for a signal. It is not KeyboardInterrupt itself: one that leaves code that was given to `exec` as
    text, such as the making of a dataclass, would make Python end by SIGINT in place of our status, even though it was
    handled (Python/pythonrun.c, run_eval_code_obj)."""


class ReportedInterrupt(KeyboardInterrupt):
    """An interruption that the command has reported, with what it means for its work."""


def was_reported(error: BaseException) -> bool:
    """True if the interruption that an error comes from was already reported."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ReportedInterrupt):
        cause = cause.__cause__
    return cause is not None


def is_interruption(error: BaseException) -> bool:
    """True if an error comes from an interruption: in a class statement a RuntimeError before Python 3.12."""
    while not isinstance(error, KeyboardInterrupt):
        if error.__cause__ is None:
            return False
        error = error.__cause__
    return True
