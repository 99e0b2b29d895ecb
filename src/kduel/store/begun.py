"""RUN/begun.json: the study of a run whose exact part is under way, or there, and nothing else of it yet. With it `kduel
resume` can go on. It is gone when the run has its own lock.json."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from kduel import __version__
from kduel.store.documents import document_bytes, read_document, restored
from kduel.store.rundir import BEGUN, as_disk_error, write_whole
from kduel.study.load import Study, check_host, check_numbers

BEGUN_SCHEMA = 1


class Begun(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was asked for by the command that began a run."""

    schema: int = BEGUN_SCHEMA
    kduel: str = __version__
    origin: str
    """The suite's name or the study file's path, as given."""
    directory: str
    """Where the command was given: relative paths in the study are meant from here."""
    seed: int | None = None
    """null: none was given."""
    study: Study


def keep_begun(run: Path, begun: Begun) -> None:
    """Write it into a run's directory. Raises HostError."""
    with as_disk_error(run):
        write_whole(run / BEGUN, document_bytes(begun))


def read_begun(run: Path) -> Begun | None:
    """That of a run's directory; None where there is none, or the run has its lock.json. Raises InputError for a
    damaged one."""
    path = run / BEGUN
    if (run / "lock.json").is_file() or not path.is_file():
        return None
    found = read_document(path, Begun, BEGUN_SCHEMA)
    with restored():
        check_numbers(found.study.about, found.study.settle, found.study.blocks, str(path))
        check_host(found.study.host, str(path))
    return found
