"""Operating-system errors that no module expected, reported with the file concerned."""

import errno

from kduel.core.errors import HostError, InputError, KduelError, unusable_path
from kduel.core.toml import shorten

NOT_A_PATH = {errno.ENAMETOOLONG, errno.ELOOP, errno.EILSEQ, errno.ENOTDIR}
"""Errors of a path itself, wherever it leads."""
AS_EXCEPTIONS = {
    "Symlink loop": "a symbolic link leads to itself",
    "Could not determine home directory": "there is no user of that name (~NAME)",
    "embedded null byte": "it holds a NUL character",
}
"""Python's words for impossible paths where it raises no OSError, with their meaning."""


def as_user_error(error: BaseException) -> KduelError | None:
    """The error as a user should read it; None where it is none of the system's."""
    if isinstance(error, UnicodeEncodeError) and error.encoding == "utf-8":
        around = error.object[: error.start].rpartition("\n")[2] + error.object[error.start :].partition("\n")[0]
        return InputError(
            f"{shorten(around)} holds bytes that are not UTF-8",
            "Write the option, the path or the environment variable in UTF-8.",
        )
    if not isinstance(error, OSError):
        reasons = [reason for words, reason in AS_EXCEPTIONS.items() if words in str(error)]
        return (
            InputError(f"a path cannot be used: {reasons[0]} ({shorten(error)})", "Give another.")
            if reasons
            else None
        )
    where = shorten(error.filename) if error.filename is not None else "a file"
    reason = error.strerror or str(error)
    if error.errno in NOT_A_PATH:
        return unusable_path(where, reason)
    if error.errno in (errno.EACCES, errno.EPERM):
        return HostError(f"{where} cannot be used: {reason}", "Correct its permissions, or give another.")
    return HostError(
        f"{where} cannot be used: {reason}",
        "Free some space, correct the permissions, or give another place; what is measured is kept, and `kduel resume RUN` "
        "continues a run.",
    )
