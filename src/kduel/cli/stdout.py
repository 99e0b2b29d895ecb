"""Standard output as every command has it: what is printed is written in full, or the command ends with an error."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING

from kduel.core.errors import HostError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

DESCRIPTOR = 1
REMEDY = "Send it to a terminal, a pipe or a file that has room."


class NobodyReadsError(Exception):
    """The reader of standard output (head, less) has closed it: no failure, and no error of a file either."""


class WholeOrError(io.FileIO):
    """The descriptor of standard output. What cannot be written is an error that names it."""

    lost = False
    """True once an error was raised: what is still in a buffer then must not raise another when the process ends."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write all, or raise. Raises HostError or NobodyReadsError, once."""
        if self.lost:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except OSError as error:
            self.lost = True
            if isinstance(error, BrokenPipeError):
                raise NobodyReadsError from None
            if error.errno == errno.EBADF:
                raise HostError("standard output is closed", REMEDY) from None
            raise HostError(f"cannot write to standard output: {error.strerror}", REMEDY) from error


def replace_stdout() -> None:
    """Make `sys.stdout` one that writes all or raises HostError, unless something else than the process's is in its place.

    Python gives a process whose standard output is closed none at all, and the descriptor to the next file that is opened; and
    where PYTHONUNBUFFERED is set, it drops what the system does not take at once.
    """
    former = sys.stdout
    if former is not sys.__stdout__:
        return
    if former is None:
        # Keep a closed standard output's descriptor from being given to a file; it cannot be written to.
        unwritable = os.open(os.devnull, os.O_RDONLY)
        if unwritable == DESCRIPTOR:
            os.set_inheritable(unwritable, True)
        else:
            os.dup2(unwritable, DESCRIPTOR)
            os.close(unwritable)
    raw = WholeOrError(DESCRIPTOR if former is None else former.fileno(), "wb", closefd=False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw), former.encoding if former is not None else "utf-8", line_buffering=raw.isatty()
    )
