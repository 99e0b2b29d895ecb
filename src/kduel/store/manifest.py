"""A trial's manifest: the SHA-256 of every file that it left, as sha256sum(1) writes and checks them.

    cd RUN/trials/0001-b01-debian-6.1 && sha256sum --check manifest.sha256

It is next to the raw files, and covers trial.json and what the trial was run by: lock.json, plan.jsonl, study.toml.
It shows what was changed by accident or carelessly; whoever means to deceive can write another manifest.
"""

import contextlib
import hashlib
import os
from collections.abc import Collection, Sequence
from pathlib import Path

from kduel.core.errors import InputError, cannot_read
from kduel.core.regular_files import open_regular
from kduel.core.untrusted import host_faults, read_whole

NAME = "manifest.sha256"
FORBIDDEN = "not compared, as reading it is not permitted"
"""What is said of a file that this user may not read, in place of `changed`."""
RUN_FILES = (b"../../lock.json", b"../../plan.jsonl", b"../../study.toml")
"""From a trial's directory: what all trials of a run share."""
ESCAPES = {b"\\": b"\\\\", b"\n": b"\\n", b"\r": b"\\r"}
"""As sha256sum writes them in a name; the line then begins with a backslash."""
HEX = 64


def write_manifest(trial: Path, documents: Sequence[bytes] = RUN_FILES) -> None:
    """Write the manifest of a complete trial and of what it was run by; symbolic links are left out."""
    top = os.fsencode(trial) + b"/"
    lines = [manifest_line(name, digest(top + name)) for name in [*files_below(trial), *documents]]
    (trial / NAME).write_bytes(b"".join(lines))


def run_checksum(trials: Path, names: Collection[str]) -> str | None:
    """The SHA-256 of these trials' manifests in order (cat trials/*/manifest.sha256 | sha256sum); or None."""
    stamp = hashlib.sha256()
    try:
        for name in sorted(names):
            stamp.update(read_whole(trials / name / NAME))
    except OSError:
        return None
    return stamp.hexdigest() if names else None


def changes(trial: Path, known: dict[bytes, str]) -> list[tuple[str, str]]:
    """Differences from the manifest: each file's name, and `changed`, `missing`, `added`, `unreadable` or FORBIDDEN.
    `known` has the digests of RUN_FILES, the same for all trials. Raises InputError for a damaged manifest."""
    listed = read_manifest(trial / NAME)
    there = set(files_below(trial))
    found = [(name, "added") for name in [*sorted(there), *empty_directories(trial)] if name not in listed]
    for name, expected in listed.items():
        if name in known:
            what = known[name] if known[name] == FORBIDDEN else "" if known[name] == expected else "changed"
        elif name not in there:
            what = reason_missing(os.path.join(os.fsencode(trial), name))  # noqa: PTH118
        else:
            what = digest_mismatch(os.path.join(os.fsencode(trial), name), expected)  # noqa: PTH118
        if what:
            found.append((name, what))
    return [(name.decode(errors="replace").removeprefix("../../"), what) for name, what in found]


def digest_mismatch(path: bytes, expected: str) -> str:
    """Empty for a file that has this digest, else what is wrong with it."""
    try:
        return "" if digest(path) == expected else "changed"
    except PermissionError:
        return FORBIDDEN
    except OSError:
        return "unreadable"


def reason_missing(path: bytes) -> str:
    """Reason why a file was not found: it is missing, or in a directory that this user may not enter."""
    try:
        os.lstat(path)
    except PermissionError:
        return FORBIDDEN
    except OSError:
        return "missing"
    return "missing"


def run_digests(run: Path) -> dict[bytes, str]:
    """The digests of RUN_FILES that are there; FORBIDDEN of one that this user may not read."""
    found = {}
    for name in RUN_FILES:
        path = run / os.fsdecode(name).removeprefix("../../")
        try:
            found[name] = digest(os.fsencode(path))
        except PermissionError:
            found[name] = FORBIDDEN
        except OSError:
            continue  # Each trial's comparison calls it missing.
    return found


def files_below(trial: Path) -> list[bytes]:
    """The regular files below a trial's directory but the manifest, as names relative to it, in order. Raises HostError."""
    top = os.fsencode(trial)
    found = []
    for folder, _, names in os.walk(top, onerror=raise_host_fault):
        for name in names:
            path = os.path.join(folder, name)  # noqa: PTH118 - names are bytes: a guest chose them
            if os.path.isfile(path) and not os.path.islink(path):  # noqa: PTH113, PTH114
                found.append(os.path.relpath(path, top))
    return sorted(name for name in found if name != os.fsencode(NAME))


def empty_directories(trial: Path) -> list[bytes]:
    """The directories below a trial's without any entry: a trial that is kept has none. Names as of `files`."""
    top = os.fsencode(trial)
    return sorted(
        os.path.relpath(folder, top) for folder, *inside in os.walk(top) if folder != top and not any(inside)
    )


def raise_host_fault(error: OSError) -> None:
    """Raises HostError where a directory could not be listed for want of open files: its files are not missing."""
    with contextlib.suppress(OSError), host_faults(os.fsdecode(error.filename)):
        raise error


def digest(path: bytes) -> str:
    """A file's SHA-256, hexadecimal. Raises OSError, also for what is no plain file."""
    with host_faults(os.fsdecode(path)), open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def manifest_line(name: bytes, found: str) -> bytes:
    escaped = b"".join(ESCAPES.get(name[i : i + 1], name[i : i + 1]) for i in range(len(name)))
    return (b"\\" if escaped != name else b"") + found.encode() + b"  " + escaped + b"\n"


def read_manifest(path: Path) -> dict[bytes, str]:
    """The digests by name. Raises InputError where it is missing or damaged."""
    remedy = "Restore it from a copy of the run; without it a change of this trial cannot be detected."
    try:
        lines = read_whole(path).split(b"\n")
    except OSError as error:
        raise cannot_read(path, error, remedy) from error
    if lines.pop() != b"":
        raise InputError(f"{path} is cut off", remedy)
    found = {}
    for number, text in enumerate(lines, 1):
        escaped = text.startswith(b"\\")
        value, separator, name = text[escaped : HEX + escaped], text[HEX + escaped :][:2], text[HEX + escaped + 2 :]
        if len(value) != HEX or not value.isalnum() or separator != b"  " or not name or b"\0" in name:
            raise InputError(f"{path}, line {number}: {text[:100]!r} is no SHA-256 with a name", remedy)
        found[unescape(name) if escaped else name] = value.decode()
    return found


def unescape(name: bytes) -> bytes:
    """A name as it is, from the way sha256sum writes it."""
    plain = {escape: char for char, escape in ESCAPES.items()}
    out, at = [], 0
    while at < len(name):
        step = 2 if name[at : at + 2] in plain else 1
        out.append(plain.get(name[at : at + step], name[at : at + step]))
        at += step
    return b"".join(out)
