"""A scheduler with the libraries that it needs, in one directory that runs on any Linux of the same architecture.

NAME             a shell script that starts bin/NAME by the dynamic linker and libraries next to it
bin/NAME  lib/*  about.json
"""

import os
import re
import shutil
from pathlib import Path

import msgspec
from msgspec import Struct

from kduel.core.errors import HostError, InputError
from kduel.core.manifest import sha256_of
from kduel.core.supervised_process import run_text
from kduel.core.untrusted import NOT_JSON

START = """#!/bin/sh
here=$(dirname "$0")
exec "$here/lib/{linker}" --library-path "$here/lib" "$here/bin/{name}" "$@"
"""


class Bundle(Struct, frozen=True, kw_only=True):
    """A bundle in the cache; what `lock.json` keeps of it besides its place."""

    name: str
    version: str
    source: str
    """`crate`, or `path` for one that was in PATH."""
    sha256: str
    """SHA-256 of the program."""
    tools: dict[str, str] = {}
    """Tools that it was built with."""

    def files(self, directory: Path) -> tuple[tuple[str, Path], ...]:
        """Files for the guest: the place below $KDUEL_PROGRAMS, and the file."""
        return tuple(
            (f"sched/{self.name}/{path.relative_to(directory)}", path)
            for path in sorted(directory.rglob("*"))
            if path.is_file() and path.name != "about.json"
        )


def read_bundle(directory: Path) -> Bundle:
    """The bundle in a cache entry. Raises HostError where it is damaged."""
    try:
        return msgspec.json.decode((directory / "about.json").read_bytes(), type=Bundle)
    except (OSError, *NOT_JSON) as error:
        raise HostError(f"the scheduler in {directory} is damaged: {error}", "Remove that directory.") from error


def make_bundle(
    program: Path, name: str, directory: Path, *, version: str, source: str, tools: dict[str, str]
) -> None:
    """Fill an empty directory. Raises InputError where the program is none, HostError where a library is missing."""
    (directory / "bin").mkdir()
    (directory / "lib").mkdir()
    target = directory / "bin" / name
    shutil.copy(program, target)
    target.chmod(0o755)
    linker, libraries = libraries_of(program)
    start = directory / name
    if linker is None:
        start.write_text(f'#!/bin/sh\nexec "$(dirname "$0")/bin/{name}" "$@"\n')
    else:
        for library in (linker, *libraries):
            shutil.copy(library, directory / "lib" / library.name)
            (directory / "lib" / library.name).chmod(0o755)
        start.write_text(START.format(linker=linker.name, name=name))
    start.chmod(0o755)
    bundle = Bundle(name=name, version=version, source=source, sha256=sha256_of(program), tools=tools)
    (directory / "about.json").write_bytes(msgspec.json.format(msgspec.json.encode(bundle)) + b"\n")


def libraries_of(program: Path) -> tuple[Path | None, list[Path]]:
    """The dynamic linker and the libraries of a program, as `ldd` finds them; (None, []) for a static one."""
    try:
        head = program.open("rb").read(4)
    except OSError as error:
        raise InputError(f"cannot read {program}: {error.strerror}") from error
    if head != b"\x7fELF":
        raise InputError(f"{program} is not a Linux program", "Give the scheduler itself, not a script around it.")
    done = run_text(["ldd", str(program)], env=os.environ | {"LC_ALL": "C"})
    if done.returncode != 0:
        if "not a dynamic executable" in done.stdout + done.stderr or "statically linked" in done.stdout:
            return None, []
        raise HostError(f"ldd cannot read {program}: {done.stderr.strip()}")
    missing = re.findall(r"^\s*(\S+) => not found", done.stdout, re.MULTILINE)
    if missing:
        raise HostError(f"{program} needs {', '.join(missing)}, which this host lacks", "Install the library.")
    libraries = [Path(path) for path in re.findall(r"=> (/\S+) \(0x", done.stdout)]
    linkers = [Path(path) for path in re.findall(r"^\s*(/\S+) \(0x", done.stdout, re.MULTILINE)]
    if not linkers:
        return None, []
    return linkers[0], libraries
