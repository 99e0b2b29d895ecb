"""Errors as a person should read them: what happened, where, and what to do about it."""

import errno
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from kduel.core.text import did_you_mean

MEASURED = 0
NOT_MEASURED = 1
USAGE = 2
HOST_LACKS = 3
SLOWER = 10
INTERRUPTED = 130


class KduelError(Exception):
    """A failure shown to the user in one paragraph: `message`, then `remedy`. `exit_status` is the process's."""

    exit_status = NOT_MEASURED

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}\n{self.remedy}" if self.remedy else self.message


class InputError(KduelError):
    """The command line, a study, a kernel or another input file is not usable."""

    exit_status = USAGE


class UnreadableError(InputError):
    """A file is there, and this user may not read it: nothing of it is changed or damaged."""


class HostError(KduelError):
    """This host lacks something that the work needs."""

    exit_status = HOST_LACKS


class NotMeasuredError(KduelError):
    """A contender could not be measured."""

    exit_status = NOT_MEASURED


PERMIT = "Give this user the permission to read it, or start KDuel as its owner."


def cannot_read(path: object, error: OSError, remedy: str) -> InputError:
    """Error about a user's file that cannot be read, with the system's reason. The remedy is a permission if one is lacking."""
    message = f"cannot read {path}: {error.strerror or error}"
    if isinstance(error, PermissionError):
        return UnreadableError(message, PERMIT)
    return InputError(message, remedy)


def unusable_path(path: object, reason: str) -> InputError:
    """Error about a path that leads nowhere, whatever is on the disk."""
    return InputError(f"{path} cannot be used: {reason}", "Give another path.")


def unknown_name(message: str, name: str, known: Collection[str]) -> InputError:
    """Error about a name that is none of those known, with what it may be meant for."""
    return InputError(message, f"{did_you_mean(name, known)}There are: {', '.join(known) or 'none'}.")


@contextmanager
def os_errors(what: str, remedy: str) -> Iterator[None]:
    """Turn an OSError into a HostError with `what` failed, the system's reason, and a remedy."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            remedy = "Close other programs or raise the limit (ulimit -n), then start again: nothing is lost."
        named = f" ({error.filename})" if isinstance(error.filename, str) and error.filename not in what else ""
        raise HostError(f"{what}: {error.strerror or error}{named}", remedy) from error
