"""Parts that every foreign format shares: the row that it yields, the interface, and files read within bounds."""

import codecs
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import msgspec

from kduel.core.errors import InputError
from kduel.core.experiment import Aspect, Better, Role, Statistic
from kduel.core.samples import within_reason
from kduel.store.imported.support.names import Kind

MOST_BYTES = 64 << 20
"""Of a file that must be in memory as a whole."""

HEAD = 64 << 10

MOST_BEFORE = 5
"""Lines before the first that belongs to a format: a prompt, a warning."""

JSON_BEGINS = re.compile(rb"\s*(?:\{|\[\s*(?:[\]\[{\"\d-]|\Z))")
"""Where JSON begins, which the prompt `[root@host ~]#` does not."""

ESCAPES = r"\x1b\[\??[0-9;]*[mKhl]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)"

Typed = TypeVar("Typed")


class ForeignRow(NamedTuple):
    """One value, as a file states it. `where` is the line, or the place in words."""

    contender: str
    trial: int
    benchmark: str
    metric: str
    unit: str
    better: Better
    value: float
    where: int | str
    statistic: Statistic = "value"
    least: float | None = None
    """Below which the metric cannot be, where that is known: no duration is negative."""
    kind: Kind = "measured"
    aspect: Aspect | None = None
    """What the metric measures; None where the file does not state it."""
    resolution: int = 0
    """Nanoseconds below which the machine resolves no time, of what is scheduled."""
    condition: str = ""
    """Of a count that was taken under several conditions that must not matter: which."""
    numbered: bool = False
    """Whether the file itself numbers its trials, so that the values with one number are of one trial. Else numbers count
    the repetitions of one benchmark, of which there may be as many as its program chose."""
    role: Role | None = None
    """Whether the metric decides; None where the file does not state it."""
    settings: tuple[tuple[str, str], ...] = ()
    """With what the benchmark was called, as far as the file says it and the benchmark's name does not: names and values."""


class ForeignFormat(ABC):
    """A program's way to write its results down."""

    name: ClassVar[str]
    summary: ClassVar[str]
    derived: ClassVar[str] = ""
    """How a value is calculated from several numbers of the file, in words; empty where the file states it."""
    calls: ClassVar[bool] = False
    """Whether a trial is one call of a program, so that all trials of a benchmark have the same figures."""
    general: ClassVar[bool] = False
    """Whether `recognises` takes what several formats look like, so that all others are asked first."""

    names_contenders: ClassVar[bool] = False
    """Whether a file holds several contenders under names of their own."""

    begins: ClassVar[str] = ""
    """A regular expression for how a file in this format begins."""
    holds: ClassVar[tuple[str, ...]] = ()
    """Words that are in its first 64 KiB."""

    def recognises(self, head: str) -> bool:
        """True if a file that begins like this (64 KiB at most) is in this format: by `begins` and `holds`, unless it is told otherwise."""
        alike = re.match(self.begins, head) is not None and all(word in head for word in self.holds)
        return alike and bool(self.begins or self.holds)

    def new_rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        """The rows of a file that is brought in. Raises InputError also where it does not say clearly what it holds, which a kept
        import is not asked."""
        self.check(path, contender)
        return self.rows(path, contender, skipped)

    def check(self, path: Path, contender: str | None) -> None:  # noqa: B027 - most formats need none
        """Raises InputError for what `new_rows` refuses besides."""

    def contender_of(self, path: Path, given: str | None, alone: bool) -> str | None:
        """Name of the contender, the user's or the file's own; None where it names several; `alone`: no other file."""
        return given or (None if self.names_contenders else file_stem(path))

    @abstractmethod
    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        """All values, of that `contender`; a sentence on each other thing goes to `skipped`. Raises InputError with place."""

    def order(self, path: Path, contender: str | None) -> Sequence[str]:
        """The contenders in the order in which the file names them; empty where it is that of the values."""
        return ()

    def environments(self, path: Path, contender: str | None) -> dict[str, dict[str, Any]]:
        """The file's facts about the machines, by contender, in the shape of a trial's environment.json."""
        return {}


MAGIC = {
    b"\x1f\x8b": "compressed with gzip",
    b"BZh": "compressed with bzip2",
    b"\xfd7zXZ\x00": "compressed with xz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"PK\x03\x04": "a ZIP archive, or a spreadsheet in one",
    b"\xd0\xcf\x11\xe0": "a document of an office program",
}


def beginning(path: Path, most: int = MOST_BYTES) -> bytes:
    """The first 64 KiB of a text file. Raises InputError: not regular, larger than `most`, empty or compressed."""
    try:
        if not path.is_file():
            what = f"{path} is not a file" if path.exists() else f"there is no {path}"
            raise InputError(what, "Name the file with the results.")
        if path.stat().st_size > most:
            raise InputError(f"{path.name} is larger than {most >> 20} MiB", "Split it by benchmark.")
        with path.open("rb") as stream:
            data = stream.read(HEAD)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {path}: {reason}", "Name a readable file.") from error
    for magic, what in MAGIC.items():
        if data.startswith(magic):
            raise InputError(
                f"{path.name} is in no format that KDuel knows: it is {what}",
                "Unpack it, and give the text file that is in it.",
            )
    data = as_utf8(path, data, "replace")
    if not data.removeprefix(codecs.BOM_UTF8).strip():
        raise InputError(f"{path.name} is empty", "Name a file with results.")
    return data


UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def as_utf8(path: Path, data: bytes, errors: str = "strict") -> bytes:
    """Text in UTF-8; with the mark of UTF-16, which spreadsheets and PowerShell write, it is converted. Raises InputError."""
    if not data.startswith(UTF_16):
        return data
    try:
        return data.decode("utf-16", errors).encode("utf-8", "replace")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path.name} is not complete UTF-16: {error.reason}", "Save the file in the encoding UTF-8."
        ) from error


def file_stem(path: Path) -> str:
    """The name of a file without its ending, which a release number (`6.1.10`) does not have."""
    return path.name if re.fullmatch(r"\.\d[\w~+-]*", path.suffix) else path.stem


def location_text(path: Path, where: int | str) -> str:
    """The place that a message is about: `results.csv, line 12`."""
    return f"{path.name}, {f'line {where}' if isinstance(where, int) else where}"


def read_bounded(path: Path, most: int = MOST_BYTES) -> bytes:
    """The whole file. Raises InputError where it is larger than `most` bytes, no regular file, or cannot be read."""
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is not a file", "Name a regular file.")
        with path.open("rb") as stream:
            data = stream.read(most + 1)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}", "Name a readable file.") from error
    if len(data) > most:
        raise InputError(
            f"{path.name} is larger than {most >> 20} MiB",
            "Split it by benchmark, or bring its values in as CSV, which is read line by line.",
        )
    return as_utf8(path, data)


def plain_lines(text: str) -> list[str]:
    """The lines, without colours, blanks at their ends and what Windows ends lines with."""
    # Without the sequences that colour it on a terminal, and those of shells: modes, the window's title (ECMA-48).
    text = re.sub(ESCAPES, "", text) if "\x1b" in text else text
    return [line.strip("\r").rstrip(" ") for line in text.split("\n")]


def text_lines(path: Path, whole: str = "") -> Iterator[tuple[int, str]]:
    """The numbered lines of a whole file. Raises InputError where it is not UTF-8, or its last line has no end and
    holds a number, which may be cut: unless it is as `whole`, a regular expression of a line that is seen to be complete."""
    data = read_bounded(path)
    try:
        lines = plain_lines(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(
            f"{location_text(path, count_newlines(data, error.start) + 1)}: a byte that is not UTF-8",
            "Save the file in UTF-8.",
        ) from error
    last = lines.pop()
    if re.search(r"\d", last) and not (whole and re.fullmatch(whole, last)):
        raise InputError(
            f"{location_text(path, len(lines) + 1)} has no line end, so that its last number may be cut",
            "Check that the file is complete, and end its last line with a line break.",
        )
    if last:
        lines.append(last)
    return enumerate(lines, 1)


def check_complete(path: Path, where: int | str, complete: bool, sign: str) -> None:
    """Raises InputError where a call's output has no line that begins with `sign`: it ended early, or was cut."""
    if not complete:
        raise InputError(
            f"{location_text(path, where)}: the call before it has no line that begins with {sign}",
            "Remove what is left of this call from the file.",
        )


def json_number(path: Path, where: int | str, what: str, value: object) -> float:
    """A number of a JSON file. Raises InputError for anything else, and for one that is beyond all bounds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{location_text(path, where)}: {what} is {value!r:.80}, not a number", "Export it again.")
    if not within_reason(value):
        raise InputError(
            f"{location_text(path, where)}: {what} is {value!r:.40}, which is too large or too small",
            "Export it again.",
        )
    return float(value)


def read_json(path: Path, kind: type[Typed], program: str) -> Typed:
    """A typed JSON file; unknown keys are ignored. Raises InputError naming the line or the key that is wrong."""
    return _decode(path, json_only(read_bounded(path).removeprefix(codecs.BOM_UTF8)), kind, program, unique=True)


def json_documents(path: Path, kind: type[Typed], program: str) -> Iterator[Typed]:
    """Typed JSON documents that were appended to one file, each of which begins and ends a line with a brace. Keys may be
    there twice, as in what iperf3 3.12 writes. Raises as `read_json`, with the line counted from its document's."""
    data = json_only(read_bounded(path).removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n"))
    for document in re.split(rb"(?<=\}) *\n\s*(?=\{)", data):
        yield _decode(path, document, kind, program, unique=False)


def json_only(data: bytes) -> bytes:
    """A file with JSON, with empty lines in place of at most five lines before it, so that lines keep their numbers."""
    if b"\x1b" in data:
        # JSON itself has no such character.
        data = re.sub(ESCAPES.encode(), b"", data)
    if b"NaN" in data or b"Infinity" in data:
        # What C++ programs write for it; JSON has no such number.
        data = re.sub(rb"(?<=[:\[,])( *)-?(?:NaN|Infinity)(?=\s*[,\]}])", rb"\1null", data)
    lines = data.split(b"\n", MOST_BEFORE)
    rests = (b"\n".join(line[:HEAD] for line in lines[number:]) for number in range(len(lines)))
    first = next((number for number, rest in enumerate(rests) if JSON_BEGINS.match(rest)), 0)
    return b"\n".join([b""] * first + lines[first:])


def _decode(path: Path, data: bytes, kind: type[Typed], program: str, unique: bool) -> Typed:
    if not data.strip():
        raise InputError(f"{path.name} is empty", f"Give the file that {program} wrote.")
    try:
        found = msgspec.json.decode(data, type=kind)
        if unique:
            # Numbers are not converted: Python takes none of more than 4,300 digits.
            json.loads(data, object_pairs_hook=partial(check_no_duplicate_keys, path), parse_int=str, parse_float=str)
        return found
    except RecursionError as error:
        raise InputError(f"{path.name} nests too deep", f"It is not the JSON that {program} writes.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        place = re.search(r"\(byte (\d+)\)", str(error))
        where = f", line {count_newlines(data, int(place[1])) + 1}" if place else ""
        raise InputError(
            f"{path.name}{where}: {error}",
            f"It is not the JSON that {program} writes, or it was cut off; export it again.",
        ) from error


def check_no_duplicate_keys(path: Path, pairs: list[tuple[str, object]]) -> None:
    """Raises InputError where an object of a JSON file has a key twice: of two values, one would be lost."""
    keys = set()
    for key, _ in pairs:
        if key in keys:
            raise InputError(f"{path.name} has the key {key[:80]!r} twice in one object", "Export it again.")
        keys.add(key)


def count_newlines(data: bytes, end: int) -> int:
    return data.count(b"\n", 0, end)
