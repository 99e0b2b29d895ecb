"""Output of a command's result: to standard output, a file or a plot. Files appear whole."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click

from kduel.core.errors import HostError, InputError
from kduel.core.text import escape_json, printable

STDOUT = Path("-")


def emit(text: str, output: Path | None = None) -> None:
    """Print `text`, on a terminal without control characters, or write it to `output`. Raises HostError."""
    if output is None or output == STDOUT:
        # A terminal would obey control characters in names that others chose; a file or a pipe gets them as they are.
        click.echo(printable(text) if is_on_terminal(output) else text, nl=False)
        return
    write(output, text.encode("utf-8", errors="backslashreplace"))


def is_on_terminal(output: Path | None) -> bool:
    """True if what is emitted there appears on a terminal."""
    return output in (None, STDOUT) and sys.stdout.isatty()


def output_width(output: Path | None = None) -> int:
    """Columns of a text that goes there: as many as the terminal has, if it is one."""
    from kduel.core.text import PLAIN_WIDTH
    from kduel.report.text import page_width

    return page_width() if output in (None, STDOUT) else PLAIN_WIDTH


def emit_json(document: Any, output: Path | None = None) -> None:
    import msgspec

    emit(escape_json(msgspec.json.format(msgspec.json.encode(document), indent=2).decode()) + "\n", output)


def write(path: Path, data: bytes) -> None:
    """Write a file whole and name it on stderr. Raises HostError."""
    with open_output(path) as stream:
        stream.write(data)
    click.echo(f"Written: {path}", err=True)


@contextmanager
def open_output(path: Path) -> Iterator[IO[bytes]]:
    """A stream into a file that appears whole once all is written, and not at all otherwise. Raises HostError."""
    from kduel.store.whole_files import whole_file

    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            # A device or a pipe, such as /dev/null: it is written to, and must not be replaced by a file. To open a FIFO
            # that nobody reads would wait without end.
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            os.set_blocking(descriptor, True)
            with os.fdopen(descriptor, "wb") as stream:
                yield stream
        else:
            with whole_file(path.resolve() if path.is_symlink() else path) as stream:
                yield stream
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise InputError(
                f"nobody reads the FIFO {path}", "Start its reader first, or name another file."
            ) from error
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError) -> HostError:
    """The error for a file that cannot be written, with the system's reason."""
    return HostError(
        f"cannot write {path}: {error.strerror or error}",
        "Free space, correct the permissions, or name another file.",
    )


def write_plot(path: Path, svg: str) -> None:
    """Write a picture as SVG or PNG, by its suffix. Raises InputError where it shows nothing, HostError."""
    if not svg:
        raise InputError(
            f"there is nothing to plot: {path} is not written", "A line needs a metric in two runs at least."
        )
    if path.suffix.lower() == ".png":
        from kduel.report.plots.engine import drawing

        write(path, drawing().svg_to_png(svg, scale=2))
    else:
        write(path, svg.encode())
