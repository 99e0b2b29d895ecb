"""An imported run's directory: import.json and the original files, word for word, under imported/."""

import os
import re
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from kduel.core.errors import InputError, cannot_read
from kduel.core.plugins import named_plugin, plugins
from kduel.core.regular_files import MOST_BYTES
from kduel.core.samples import Samples
from kduel.core.text import visible
from kduel.core.toml import parse_toml
from kduel.core.validation import DATE_FORMS, moment
from kduel.core.version import full_version
from kduel.store.documents import document_bytes, read_document
from kduel.store.imported.support.foreign import (
    JSON_BEGINS,
    MOST_BEFORE,
    ForeignFormat,
    beginning,
    file_stem,
    plain_lines,
    read_bounded,
)
from kduel.store.imported.support.gather import Gathering
from kduel.store.imported.support.unread import check_read
from kduel.store.integrity import Integrity, find_added
from kduel.store.manifest import digest, empty_directories, files_below
from kduel.store.whole_files import whole_directory

MOST_CONDITIONS = 1 << 20
CAVEAT = "imported: not interleaved, not randomised, environment unknown"


class Source(Struct, frozen=True):
    """A file to bring in, and how the user calls what it measured."""

    path: Path
    contender: str | None = None


class StoredFile(Struct, kw_only=True):
    """An original file: `stored` is relative to the run."""

    name: str
    stored: str
    sha256: str
    bytes: int
    format: str
    contender: str | None = None


IMPORT_SCHEMA = 1


class Import(Struct, kw_only=True, forbid_unknown_fields=True):
    schema: int = IMPORT_SCHEMA
    kduel: str
    imported: str
    """UTC, ISO 8601."""
    title: str
    caveat: str = CAVEAT
    delta: float = 1.0
    baseline: str | None = None
    primary: list[str] = field(default_factory=list)
    files: list[StoredFile]
    conditions: StoredFile | None = None
    contenders: list[str] = field(default_factory=list)
    metrics: list[dict[str, str]] = field(default_factory=list)
    """The columns found: benchmark, metric, unit, better."""
    values: int = 0
    skipped: list[str] = field(default_factory=list)
    """What the files hold besides, and why it is not here."""


class ReportedRange(Struct, forbid_unknown_fields=True):
    """Repeats of one metric that a source reports without their values: the lowest and the highest, and where."""

    low: float
    high: float
    where: str


class Conditions(Struct, forbid_unknown_fields=True):
    """A --conditions file: what is known of each contender's environment, and what was meant to differ."""

    contenders: dict[str, dict[str, Any]]
    declared: list[str] = []
    spreads: dict[str, ReportedRange] = {}
    """By `benchmark/metric`."""


def bring_in(
    sources: Sequence[Source],
    out: Path,
    *,
    format_name: str | None = None,
    conditions: Path | None = None,
    baseline: str | None = None,
    primary: Sequence[str] = (),
    delta: float = 1.0,
) -> Import:
    """Make the run directory `out`, whole or not at all. Raises InputError for what is wrong with any input."""
    if out.exists() or out.is_symlink():
        raise InputError(f"{out} is there already", "Give another --out.")
    if not 0 < delta <= 100:
        raise InputError(f"--delta is {delta:g}", "Give the per cent that matter, such as 1.")
    record = Import(
        kduel=full_version(), imported=datetime.now(UTC).isoformat(timespec="seconds"),
        title=", ".join(file_stem(source.path) for source in sources)[:200], delta=delta, baseline=baseline,
        primary=list(primary), files=[],
    )  # fmt: skip
    with whole_directory(out) as fresh:
        chosen: list[ForeignFormat] = []
        for number, source in enumerate(sources, 1):
            chosen.append(the_format(source.path, format_name))
            stored = keep_original(source.path, fresh, f"{number:02d}", chosen[-1].name)
            stored.contender = chosen[-1].contender_of(source.path, source.contender, len(sources) == 1)
            check_alone(source, stored, chosen[-1], record.files, [one.contender for one in sources])
            record.files.append(stored)
        # The copies are read: what is judged is what is kept, even where an original changes meanwhile.
        gathering = gather(fresh, record.files, chosen, record.skipped, new=True)
        if gathering.mixed:
            raise gathering.mixed
        if any(one.general for one in chosen):
            gathering.check_swept()
        samples = gathering.samples(baseline, record.primary)
        record.skipped += gathering.left_out()
        if conditions is not None:
            check_dates(conditions, read_conditions(conditions, samples[0].contenders))
            record.conditions = keep_original(conditions, fresh, "conditions", "conditions")
        record.contenders = samples[0].contenders
        record.values = gathering.count
        record.metrics = [
            {
                "benchmark": table.benchmark,
                "metric": table.metric.name,
                "unit": table.metric.unit,
                "better": table.metric.better,
            }
            for table in samples
        ]
        (fresh / "import.json").write_bytes(document_bytes(record))
    return record


def check_alone(
    source: Source, stored: StoredFile, chosen: ForeignFormat, before: list[StoredFile], given: list[str | None]
) -> None:
    """Raises InputError where an unnamed file may be further trials of another, or a contender has two files."""
    for one, name in zip(before, given, strict=False):
        if stored.contender is None or one.contender != stored.contender:
            continue
        if source.contender is None and name is None and stored.contender == file_stem(source.path):
            raise InputError(
                f"two files are called {stored.contender!r}", "Name the contender of each: NAME=FILE NAME=FILE."
            )
        if one.sha256 == stored.sha256 and (
            not chosen.general or file_stem(Path(one.stored)) == file_stem(Path(stored.stored))
        ):
            raise InputError(
                f"{stored.name} has the same bytes as {one.name}, of the same contender {stored.contender!r}",
                "Give each file once: what was measured once is one trial.",
            )


def gather(
    run: Path, files: Sequence[StoredFile], formats: Sequence[ForeignFormat], skipped: list[str], *, new: bool = False
) -> Gathering:
    """The rows of all files, which are `new` or kept. Without its own name a benchmark is called as its file, or `table` (a file each)."""
    alone = len({stored.contender for stored in files}) == len(files)
    stems = {file_stem(Path(stored.stored)) for stored in files}
    gathering = Gathering()
    for stored, chosen in zip(files, formats, strict=True):
        path = run / stored.stored
        benchmark = "table" if alone and len(stems) > 1 else file_stem(path)
        gathering.order += chosen.order(path, stored.contender)
        rows = (chosen.new_rows if new else chosen.rows)(path, stored.contender, skipped)
        gathering.add(path, rows, chosen.calls, benchmark)
        gathering.order += gathering.contenders
    return gathering


def the_format(path: Path, name: str | None) -> ForeignFormat:
    """The requested format, or the one that the file's beginning shows. Raises InputError that lists what there is."""
    formats = plugins("imported")
    known = ", ".join(formats)
    data = beginning(path, MOST_BYTES)
    if name is not None:
        chosen: ForeignFormat = named_plugin("imported", "format", name)
        return chosen
    head = "\n".join(plain_lines(data.decode("utf-8-sig", errors="replace")))
    special = [one for one in formats.values() if not one.general]
    # A prompt or a warning may come before the output of a program that writes lines.
    rests = [head.split("\n", number)[-1] for number in range(1, MOST_BEFORE + 1)]
    tried = [
        *((head, one) for one in special),
        *((rest, one) for rest in rests for one in special if one.calls or JSON_BEGINS.match(rest.encode())),
    ]
    found: ForeignFormat | None = next((one for text, one in tried if one.recognises(text)), None)
    if found is None:
        check_read(path, head)
        found = next((one for one in formats.values() if one.general and one.recognises(head)), None)
    if found is not None:
        return found
    first = (head.lstrip().splitlines() or [""])[0]
    raise InputError(
        f"{path.name} is in no format that KDuel knows; it begins {first[:60]!r}",
        f"Name one with --format: {known}; kduel import --help says how a table is written.",
    )


def keep_original(path: Path, run: Path, place: str, format_name: str) -> StoredFile:
    """Copy an original into the new run under its own name, and describe it."""
    stored = f"imported/{place}/{re.sub(r'[^A-Za-z0-9._-]', '_', path.name)[-100:]}"
    (run / stored).parent.mkdir(parents=True)
    try:
        stream = path.open("rb")
    except OSError as error:
        raise cannot_read(path, error, "Name a readable file.") from error
    with stream, (run / stored).open("wb") as copy:
        shutil.copyfileobj(stream, copy)
        size = copy.tell()
    name = path.name.encode("utf-8", errors="replace").decode()
    found = digest(os.fsencode(run / stored))
    return StoredFile(name=name, stored=stored, sha256=found, bytes=size, format=format_name)


def read_conditions(path: Path, contenders: Sequence[str]) -> Conditions:
    """Known facts about the environments. Raises InputError naming file and key."""
    remedy = 'Write TOML: declared = ["release"], then a table [contenders.NAME] for each.'
    try:
        text = read_bounded(path, MOST_CONDITIONS).decode()
        found = msgspec.convert(parse_toml(text, path.name, remedy), Conditions, strict=True)
    except (UnicodeDecodeError, msgspec.ValidationError) as error:
        raise InputError(f"{path.name}: {error}", remedy) from error
    strangers = [name for name in found.contenders if name not in contenders]
    if strangers:
        raise InputError(
            f"{path.name}: there is no contender {strangers[0]!r}", f"There are: {', '.join(contenders)[:500]}."
        )
    return found


def check_dates(path: Path, conditions: Conditions) -> None:
    """Raises InputError for a date of a new import that no command would read. Other keys are free."""
    remedy = 'Write it among the conditions: conditions.date = "2026-01-31".'
    for name, facts in conditions.contenders.items():
        if "date" in facts:
            raise InputError(f"{path.name}: contenders.{name} has a date that is not among its conditions", remedy)
        stated = facts.get("conditions")
        for key in (*facts, *(stated if isinstance(stated, dict) else ())):
            if key != (meant := key.strip().casefold()) and meant in ("conditions", "date"):
                raise InputError(
                    f"{path.name}: contenders.{name} has {visible(key, 60)!r}. Did you mean {meant}?", remedy
                )
        if isinstance(stated, dict) and "date" in stated and moment(str(stated["date"])) is None:
            wrong = visible(stated["date"], 60)
            raise InputError(
                f"{path.name}: contenders.{name}.conditions.date is {wrong!r}, not a date of the form {DATE_FORMS}",
                remedy,
            )


def record_of(run: Path) -> Import:
    """import.json. Raises InputError where it is missing or damaged."""
    return read_document(run / "import.json", Import, IMPORT_SCHEMA)


def original(run: Path, stored: StoredFile) -> Path:
    """A file as it was brought in. Raises InputError where it is gone or changed."""
    path = run / stored.stored
    remedy = "Restore it, or import it again."
    try:
        if not path.resolve().is_relative_to(run.resolve()):
            raise InputError(
                f"{run / 'import.json'} names a file outside the run: {stored.stored}", "Import it again."
            )
        if digest(os.fsencode(path)) != stored.sha256:
            raise InputError(f"{path} was changed after it had been imported", remedy)
    except OSError as error:
        raise cannot_read(path, error, remedy) from error
    return path


def examine(run: Path) -> Integrity:
    """Compare the files of an import with their SHA-256. Raises InputError where import.json is damaged."""
    record = record_of(run)
    files = [*record.files, *([record.conditions] if record.conditions else [])]
    originals = run / "imported"
    own = {stored.stored.removeprefix("imported/") for stored in files}
    found = sorted(os.fsdecode(name) for name in [*files_below(originals), *empty_directories(originals)])
    changes = find_added(run, {"import.json", "imported"})
    changes += [f"imported/{visible(name, 200)} was added" for name in found if name not in own]
    for stored in files:
        try:
            original(run, stored)
        except InputError as error:
            changes.append(error.message)
    return Integrity(checked=len(files), changes=changes)


def read(run: Path) -> list[Samples]:
    """Every value of an imported run, read again from the original files, unpaired. Raises InputError."""
    return read_with_settings(run)[0]


def read_with_settings(run: Path) -> tuple[list[Samples], Gathering]:
    """The values, and what they were taken from, which also knows with what benchmarks were called. Raises InputError."""
    record = record_of(run)
    formats = plugins("imported")
    for stored in record.files:
        if stored.format not in formats:
            raise InputError(
                f"{run}: nothing installed reads the format {stored.format!r}", "Install what it was imported with."
            )
        original(run, stored)
    gathering = gather(run, record.files, [formats[stored.format] for stored in record.files], [])
    # Whatever order this version sees in the files, the baseline is that of the import.
    samples = gathering.samples(record.baseline or next(iter(record.contenders), None), record.primary)
    if set(record.contenders) != set(samples[0].contenders):
        raise InputError(f"{run / 'import.json'} names other contenders than its files have", "Import them again.")
    return samples, gathering


def contenders(run: Path) -> list[str]:
    return record_of(run).contenders


def conditions_of(run: Path, record: Import) -> Conditions:
    """The conditions that came with the import; none is an empty table."""
    if record.conditions is None:
        return Conditions(contenders={})
    return read_conditions(original(run, record.conditions), record.contenders)


def environments(run: Path) -> dict[str, dict[str, Any]]:
    """By contender, the facts of its file and of the conditions about its place; empty where nothing is known."""
    record = record_of(run)
    found: dict[str, dict[str, Any]] = {name: {} for name in record.contenders}
    formats = plugins("imported")
    for stored in record.files:
        if stored.format in formats:
            path = original(run, stored)
            for name, facts in formats[stored.format].environments(path, stored.contender).items():
                if name in found:
                    found[name] |= facts
    for name, facts in conditions_of(run, record).contenders.items():
        found[name] |= facts
    return found


def declared_keys(run: Path) -> tuple[str, ...]:
    """Intended differences, by the conditions: keys such as `release` or `conditions.cooldown`."""
    return tuple(conditions_of(run, record_of(run)).declared)
