"""An index of many runs in SQLite, derived from them; tables and views are documented (docs/many-runs.md)."""

import hashlib
import os
import shlex
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from msgspec import Struct, field

from kduel.analysis.index_rows import add_run
from kduel.core.errors import HostError, InputError, KduelError, os_errors
from kduel.core.progress import Progress
from kduel.core.temporary import temporary_directory
from kduel.core.text import plural
from kduel.core.toml import shorten, table_beside
from kduel.store.rundir import INDEX

VERSION = 13
"""Of the tables, in `PRAGMA user_version`."""
OWN = {"run", "contender", "verdict", "value", "skipped", "headline"}
"""Tables and views of every version; a database without them is of another program."""
SCHEMA = Path(__file__).with_suffix(".sql").read_text("utf-8")
QUESTIONS: dict[str, str] = table_beside(__file__)
"""Ready questions, by name."""
AT_ONCE = 100
"""Runs that a transaction adds: each waits for the disk, which takes longer than to judge a small run."""
MOST_ROWS = 100_000
BROKEN = {
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOTADB,
}  # fmt: skip
"""Primary result codes that say nothing of the question."""


class IndexUpdate(Struct, kw_only=True):
    path: Path
    runs: int = 0
    added: int = 0
    removed: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    """By directory: why it is not in the index."""


class Answer(Struct, kw_only=True):
    """The rows of a query; missing values are None."""

    columns: list[str]
    rows: list[list[str | int | float | None]]


def stamp_of(run: Path) -> str:
    """Changes whenever a file of the run that its results are derived from is added, removed or rewritten."""
    known = hashlib.sha256()
    names = ("lock.json", "import.json", "merge.json", "plan.jsonl", "explain", "repeated")
    places = []
    for part in (run, *sorted((run / "runs").glob("*"))):
        places += [part / name for name in names]
        # A directory's times stay when a raw file in it is rewritten in place.
        for raw in (part / "trials", part / "imported"):
            places += [raw, *sorted(raw.rglob("*"))]
    for place in places:
        try:
            status = place.stat()
        except OSError:
            continue
        known.update(
            f"{place.relative_to(run)} {status.st_mtime_ns} {status.st_size}\n".encode(errors="surrogateescape")
        )
    return known.hexdigest()


def index_path(place: Path) -> Path:
    """The index of a directory of runs, or `place` itself where it is none."""
    return place / INDEX if place.is_dir() else place


@contextmanager
def open_index(path: Path, *, write: bool = False, shown: Path | None = None) -> Iterator[sqlite3.Connection]:
    """The index, called `shown`. Raises InputError for none or another version, HostError if not writable."""
    if not write and not path.exists():
        raise InputError(
            f"there is no index {path}",
            f"Make it first: kduel query --update {shlex.quote(str(path.parent))}"
            if path.name == INDEX
            else "Name a directory of runs that `kduel query --update` was given, or the index that it wrote.",
        )
    with open_any_index(path, write=write, shown=shown or path) as (connection, version):
        if version == 0:
            connection.executescript(SCHEMA)
            connection.execute(f"PRAGMA user_version = {VERSION}")
        elif version != VERSION:
            rebuild = "" if 0 < version < VERSION else " --rebuild"
            raise InputError(
                f"{shown or path} is an index of version {version}, and this KDuel has version {VERSION}",
                f"Make it again: `kduel query --update DIR{rebuild}{output_of(shown or path)}`.",
            )
        yield connection


@contextmanager
def open_any_index(path: Path, *, write: bool, shown: Path) -> Iterator[tuple[sqlite3.Connection, int]]:
    """An index with its version; 0 is an empty database, where it can be written. Raises InputError for another program's
    database or another file, which is left as it is, and HostError."""
    other = InputError(
        f"{shown} is no index of KDuel",
        "Name another file with --output, or move this one away."
        if write
        else "Name the index that `kduel query --update DIR` wrote; where this file has its place, move it away first.",
    )
    if path.exists() and not path.is_file():
        raise other
    try:
        uri = f"{path.resolve().as_uri()}?mode={'rwc' if write else 'ro'}"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.execute("PRAGMA foreign_keys = ON")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
            if not (names >= OWN and version) and not (write and not path.stat().st_size):
                raise other
            yield connection, version
    except sqlite3.DatabaseError as error:
        code = primary_code(error)
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise HostError(
                f"the index {shown} is in use by another process: {error}",
                "Start again when that has ended; `fuser` names it.",
            ) from error
        if code == sqlite3.SQLITE_NOTADB:
            raise other from error
        if code == sqlite3.SQLITE_CORRUPT:
            raise damage_error(shown, error) from error
        if write:
            raise HostError(
                f"cannot write the index {shown}: {error}",
                "Free some space, move the file away (an index is made of the runs alone), or name another with --output.",
            ) from error
        raise InputError(f"{shown}: {error}", other.remedy) from error


def output_of(path: Path) -> str:
    """The option of `kduel query --update` that names an index; empty for one in its default place."""
    return "" if path.name == INDEX else f" -o {shlex.quote(str(path))}"


def damage_error(path: Path, reason: object) -> InputError:
    return InputError(
        f"the index {path} is damaged: {reason}",
        f"Move it away and run `kduel query --update DIR{output_of(path)}`: if it is an index of KDuel, it is made of the runs alone.",
    )


def primary_code(error: Exception) -> int | None:
    """SQLite's primary result code; None for an error of Python's module."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def update(
    place: Path, runs: Sequence[Path], path: Path, progress: Progress, *, rebuild: bool = False
) -> IndexUpdate:
    """Bring the index at `path` up to date with `runs`, below `place`: changed ones are judged again; unreadable ones
    are noted. A new one, an older version's, or at a `rebuild`, appears whole. Raises InputError, HostError."""
    if path.is_symlink():
        raise InputError(
            f"{path} is a link, which may lead to a file that is no index",
            "Remove it, or name with --output the file that the index is meant to be in.",
        )
    target = path.resolve()
    if target.exists():
        with open_any_index(target, write=True, shown=path) as (connection, version):
            earlier = 0 < version < VERSION
            again = earlier or rebuild
            # Pages that an update does not read may be damaged, too.
            if not again and (said := connection.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                raise damage_error(path, said)
        if not again:
            return bring_up_to_date(place, runs, target, path, progress)
    told = os_errors(f"cannot write the index {path}", "Free some space, or name another file with --output.")
    with temporary_directory(target.parent, ".kduel-index-", told) as fresh:
        found = bring_up_to_date(place, runs, fresh / INDEX, path, progress)
        (fresh / INDEX).replace(target)
    return found


def bring_up_to_date(place: Path, runs: Sequence[Path], path: Path, shown: Path, progress: Progress) -> IndexUpdate:
    """Update the index in the file `path`, shown to the user as `shown`."""
    from kduel.judge.evaluate import judge_run

    found = IndexUpdate(path=shown)
    with open_index(path, write=True, shown=shown) as connection:
        known = dict(connection.execute("SELECT path, stamp FROM run UNION ALL SELECT path, stamp FROM skipped"))
        names = {name_in(place, run): run for run in runs}
        for gone in known.keys() - names.keys():
            forget_run(connection, gone)
            found.removed += 1
        changed = {name: run for name, run in names.items() if known.get(name) != stamp_of(run)}
        with progress.task("indexing runs", total=len(changed)) as task:
            for number, (name, run) in enumerate(changed.items(), 1):
                stamp = stamp_of(run)
                forget_run(connection, name)
                try:
                    add_run(connection, name, stamp, judge_run(run))
                    found.added += 1
                except KduelError as error:
                    reason = storable(error.message)
                    connection.execute("INSERT INTO skipped VALUES (?, ?, ?)", (name, stamp, reason))
                if number % AT_ONCE == 0:
                    connection.commit()
                task.advance()
        connection.commit()
        (found.runs,) = connection.execute("SELECT count(*) FROM run").fetchone()
        found.skipped = dict(connection.execute("SELECT path, reason FROM skipped ORDER BY path"))
    return found


def name_in(place: Path, run: Path) -> str:
    """The name of a run in the index of a directory; a link there may lead to a run elsewhere."""
    return storable(os.path.relpath(run.resolve(), place.resolve()))


def tell_age(place: Path, runs: Sequence[Path]) -> str:
    """Sentence on `runs` of a directory that its index does not have; empty where it has all. A trial that was made since shows
    by the time of its directory; raw files are not looked at."""
    path = index_path(place)
    with open_index(path) as connection:
        known = {name for (name,) in connection.execute("SELECT path FROM run UNION ALL SELECT path FROM skipped")}
    written = path.stat().st_mtime_ns
    names = {name_in(place, run): run / "trials" for run in runs}
    grown = [
        name for name in names.keys() & known if names[name].is_dir() and names[name].stat().st_mtime_ns > written
    ]
    counts = {"lacks": len(names.keys() - known), "is older than": len(grown), "still has": len(known - names.keys())}
    told = [f"{verb} {plural(count, 'run')}" for verb, count in counts.items() if count]
    gone = " that are gone" if len(known - names.keys()) > 1 else " that is gone" if known - names.keys() else ""
    again = f"`kduel query --update {shlex.quote(str(place))}` brings it up to date"
    return f"the index {path} {' and '.join(told)}{gone}; {again}" if told else ""


def storable(text: str) -> str:
    """A text with bytes of file names that are not UTF-8, which SQLite refuses, written as \\xff."""
    return os.fsencode(text).decode(errors="backslashreplace")


def forget_run(connection: sqlite3.Connection, name: str) -> None:
    connection.execute("DELETE FROM run WHERE path = ?", (name,))
    connection.execute("DELETE FROM skipped WHERE path = ?", (name,))


def run_query(path: Path, question: str) -> Answer:
    """The answer to one of QUESTIONS, or to SQL, which can only read. Raises InputError."""
    if storable(question) != question:
        raise InputError(
            f"the question {storable(question)[:60]!r} holds bytes that are not UTF-8", "Write it in UTF-8."
        )
    with open_index(path) as connection:
        only_read = OnlyRead()
        connection.set_authorizer(only_read)
        # Called now and then, it lets a signal end a query that would not end by itself.
        connection.set_progress_handler(lambda: 0, 1_000_000)
        try:
            cursor = connection.execute(QUESTIONS.get(question, question))
            rows = cursor.fetchmany(MOST_ROWS + 1)
        except (sqlite3.DatabaseError, sqlite3.Warning) as error:
            if only_read.is_interruption(error):
                raise KeyboardInterrupt from error
            if primary_code(error) in BROKEN:
                raise
            remedy = f"Give one SELECT over the names in docs/many-runs.md, or one of: {', '.join(QUESTIONS)}."
            if "not authorized" in str(error):
                remedy = "Only a SELECT is allowed: the index is made of the runs, and `kduel query --update DIR` alone writes it."
            raise InputError(f"the question {shorten(question, 60)!r}: {error}", remedy) from error
        if cursor.description is None:
            raise InputError(f"{question!r} asks nothing", f"Give a SELECT, or one of: {', '.join(QUESTIONS)}.")
        if len(rows) > MOST_ROWS:
            raise InputError(
                f"the answer has more than {MOST_ROWS:,} rows",
                "Count, select or average, or take parts with LIMIT and OFFSET.",
            )
        columns = [column[0] for column in cursor.description]
        if twice := sorted({name for name in columns if columns.count(name) > 1}):
            raise InputError(
                f"the answer has two columns {', '.join(twice)}", "Give each a name of its own, with AS."
            )
        return Answer(columns=columns, rows=[list(map(json_value, row)) for row in rows])


READS = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)


class OnlyRead:
    """An authorizer: a query selects, and does nothing else, such as attaching (and creating) another file."""

    denied = False

    def __call__(self, action: int, *_: str | None) -> int:
        if action in READS:
            return sqlite3.SQLITE_OK
        self.denied = True
        return sqlite3.SQLITE_DENY

    def is_interruption(self, error: sqlite3.Error | sqlite3.Warning) -> bool:
        """True for what sqlite3 raises where a signal's exception left a callback: it keeps nothing of the exception, and
        a progress handler that fails interrupts the query, an authorizer that fails denies it."""
        code = getattr(error, "sqlite_errorcode", None)
        return code == sqlite3.SQLITE_INTERRUPT or (code == sqlite3.SQLITE_AUTH and not self.denied)


def json_value(value: object) -> str | int | float | None:
    return value if value is None or isinstance(value, str | int | float) else repr(value)
