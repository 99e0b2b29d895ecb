"""Packages and lists unpacked, as streams that end at a bound: a small file can stand for any number of bytes."""

import bz2
import gzip
import lzma
import subprocess
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from kduel.core.errors import HostError
from kduel.core.host_packages import install_command
from kduel.core.tar_stream import BoundedStream, RefusedArchive, TarBounds

BOUNDS = TarBounds(members=200_000, extended=64 << 10, others=True)
"""Of packages and of lists that are a tar; 14,000 packages are in Arch's largest."""
ALWAYS, TIMES = 64 << 20, 50
"""Bytes that a file may unpack to, and besides as many times its own size. Kernels in xz take up a seventh."""
ZSTD = b"\x28\xb5\x2f\xfd"
OPENERS = {b"\x1f\x8b": gzip.GzipFile, b"\xfd7zXZ\0": lzma.LZMAFile, b"BZh": bz2.BZ2File}
"""By a file's first bytes."""


class PythonUnpacked(BoundedStream):
    """A stream that one of Python's modules decompresses."""

    def read(self, size: int = -1) -> bytes:
        """Some bytes. Raises RefusedArchive."""
        try:
            return super().read(size)
        except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
            raise RefusedArchive(str(error)) from error


def most_unpacked(packed: Path) -> int:
    return ALWAYS + TIMES * packed.stat().st_size


@contextmanager
def decompress(path: Path) -> Iterator[BoundedStream]:
    """A file of any usual compression, to be read. Raises HostError without zstd, RefusedArchive for what is damaged."""
    with path.open("rb") as raw:
        magic = raw.read(6)
    opener = next((opener for start, opener in OPENERS.items() if magic.startswith(start)), None)
    if opener:
        with opener(path) as stream:
            yield PythonUnpacked(stream, most_unpacked(path))
    elif magic.startswith(ZSTD):
        with output_of(["zstd", "-dcq", str(path)], path) as unpacked:
            yield unpacked
    else:
        with path.open("rb") as stream:
            yield BoundedStream(stream, most_unpacked(path))


@contextmanager
def output_of(command: Sequence[str], packed: Path, stdin: IO[bytes] | None = None) -> Iterator[BoundedStream]:
    """The output of a program that unpacks a file or stream. Raises HostError (no program), RefusedArchive."""
    try:
        process = subprocess.Popen(
            command, stdin=stdin or subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except FileNotFoundError as error:
        program = command[0]
        raise HostError(f"{packed.name} needs {program}", f"Install it: {install_command(program)}.") from error
    refused: RefusedArchive | None = None
    with process:
        assert process.stdout is not None and process.stderr is not None
        ended = False
        try:
            yield BoundedStream(process.stdout, most_unpacked(packed))
            ended = not process.stdout.read(1)
        except RefusedArchive as error:
            refused, ended = error, not process.stdout.read(1)
        finally:
            process.stdout.close()
        said = process.stderr.read().decode("utf-8", errors="replace").strip()
    # A program whose output is not read to its end fails, too, and what it says of that tells nothing.
    if ended and process.returncode:
        raise RefusedArchive(said or f"{command[0]} failed") from refused
    if refused:
        raise refused
