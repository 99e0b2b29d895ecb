"""Tables (CSV) as records, line by line, with the numbers of spreadsheets as this house writes them."""

import csv
import os
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import IO

from kduel.core.errors import InputError
from kduel.store.imported.support.foreign import ESCAPES, UTF_16, as_utf8, beginning, location_text, read_bounded
from kduel.store.imported.support.notation import EITHER, Notation, plain_number

LONGEST_LINE = 16 << 10

Records = Iterator[tuple[int, list[str]]]
Notations = dict[int, Notation]
"""By the place of a column."""


def records(path: Path, remedy: str) -> Records:
    """The header and every record below it, with as many fields, and the lines at which they end, without empty ones.
    Raises InputError for what is not CSV; `remedy` is that of an empty file."""
    try:
        with path.open("rb") as stream:
            encoding = "utf-16" if stream.read(2) in UTF_16 else "utf-8-sig"
        with path.open("r", encoding=encoding, errors="strict", newline="") as stream:
            rest = lines(path, stream)
            before = []
            for line in rest:
                if is_above(line):
                    line = "\n"
                before.append(line)
                if line.strip():
                    break
            reader = csv.reader(chain(before, rest), delimiter=separator("".join(before[-1:])), strict=True)
            try:
                header = next((fields for fields in reader if "".join(fields).strip()), None)
                if header is None:
                    raise InputError(f"{path.name} is empty", remedy)
                yield reader.line_num, header
                for fields in reader:
                    if not "".join(fields).strip():
                        continue
                    if len(fields) != len(header):
                        raise InputError(
                            f"{location_text(path, reader.line_num)} has {len(fields)} fields, not {len(header)}",
                            'Give every line the fields of the header; put a field that holds a comma in "quotes".',
                        )
                    yield reader.line_num, fields
            except csv.Error as error:
                raise InputError(
                    f"{location_text(path, reader.line_num)}: {error}",
                    'Put a field that holds a comma or a quote in "quotes".',
                ) from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}", "Name a readable file.") from error


def notations(path: Path, places: Sequence[int]) -> Notations:
    found = {place: Notation() for place in places}
    for _, fields in islice(records(path, ""), 1, None):
        for place, notation in found.items():
            notation.add(fields[place].strip())
    return found


def plain_records(path: Path, table: Records, places: Sequence[int], known: Notations | None = None) -> Records:
    """The records with the numbers in these columns as this house writes them. Unless their notations are `known`, the file
    is read ahead once a number is met that others in its column explain."""
    delimiter = delimiter_of(path)
    for line, fields in table:
        for place in places:
            cell = fields[place].strip()
            if either := EITHER.fullmatch(cell):
                known = known or notations(path, places)
                if place in known and known[place].are_groups(either[1]):
                    fields[place] = cell.replace(either[1], "")
                    continue
            fields[place] = plain_number(fields[place], delimiter)
        yield line, fields


def check_groups(path: Path, header: Sequence[str], places: Sequence[int], told: list[str]) -> Notations:
    """The notations of these columns. Raises InputError for a number of which the mark may be that of thousands, or the decimal
    one. Where commas separate columns a point is the decimal one, and elsewhere where each number has one, which is `told`."""
    found = notations(path, places)
    commas = delimiter_of(path) == ","
    decimal_commas = any("," in one.decimals for one in found.values())
    for place, one in found.items():
        for mark, cell in one.either.items():
            both = mark in one.groups & one.decimals
            shown = one.are_groups(mark) or mark in one.decimals or one.ungrouped or (commas and mark == ".")
            # Points behind which there are three digits everywhere are what programs write.
            alike = not one.below_thousand and len(one.either) == 1 and (mark == "." or decimal_commas)
            whole, decimal = re.sub("[.,]", "", cell), cell.replace(",", ".")
            if both or not (shown or alike):
                beside = f", beside {one.below_thousand}" * bool(one.below_thousand)
                raise InputError(
                    f"{path.name}: {cell} may be {whole} or {decimal}{beside}",
                    "Write numbers without a mark of thousands, and with a point and as many decimals each: 1020, or 1.020 "
                    "beside 980.000.",
                )
            if not shown:
                told.append(
                    f"{path.name}: to take {cell} in the column {header[place].strip()[:60]!r} for {whole}; it was taken for "
                    f"{decimal}. If it is {whole}, write all numbers without a mark of thousands."
                )
    return found


def first_line(head: str) -> str:
    return next((line.strip() for line in head.split("\n") if line.strip() and not is_above(line)), "")


def is_above(line: str) -> bool:
    """True for what a spreadsheet writes above the heading: the separator."""
    return bool(re.fullmatch(r"sep=[,;\t|]\s*", line))


def delimiter_of(path: Path) -> str:
    return separator(first_line(beginning(path).decode("utf-8-sig", errors="replace")))


def separator(header: str) -> str:
    """Separator of the columns: the most frequent in the header of comma, semicolon, tab and bar."""
    return max(",;\t|", key=header.count)


def check_end(path: Path, where: int | str) -> None:
    """Raises InputError where the last line of a file, at `where`, has no end."""
    with path.open("rb") as stream:
        stream.seek(0, os.SEEK_END)
        stream.seek(max(0, stream.tell() - 2))
        # UTF-16 has a byte of zeros beside it.
        if stream.read(2).strip(b"\0")[-1:] not in (b"\n", b"\r"):
            raise InputError(
                f"{location_text(path, where)} has no line end, so that its last number may be cut",
                "Check that the file is complete, and end its last line with a line break.",
            )


def lines(path: Path, stream: IO[str]) -> Iterator[str]:
    """The lines, each bounded, without what colours it as a whole. Raises InputError for one that is too long or not UTF-8."""
    number = 0
    while True:
        number += 1
        try:
            line = stream.readline(LONGEST_LINE)
        except UnicodeDecodeError as error:
            if error.encoding != "utf-8":
                as_utf8(path, read_bounded(path))
            # The decoder works ahead in pieces, so the line is sought again.
            raise InputError(
                f"{location_text(path, undecodable_line(path))}: a byte that is not UTF-8 ({error.reason})",
                "Save the file in the encoding UTF-8.",
            ) from error
        if not line:
            return
        if len(line) == LONGEST_LINE and not line.endswith("\n"):
            raise InputError(
                f"{location_text(path, number)} is longer than {LONGEST_LINE} characters",
                "Write one value a line, seven fields.",
            )
        if "\0" in line:
            raise InputError(
                f"{location_text(path, number)} holds a NUL character", "Save the file as text, in UTF-8."
            )
        yield without_frame(line) if "\x1b" in line else line


def without_frame(line: str) -> str:
    """The line without what colours it as a whole: names in it are checked as they are. Linear in its length."""
    text = line.rstrip("\r\n")
    begin, end = 0, len(text)
    spans = [found.span() for found in re.finditer(ESCAPES, text)]
    for first, last in spans:
        begin = last if first == begin else begin
    for first, last in reversed(spans):
        end = first if last == end else end
    return text[begin : max(begin, end)] + line[len(text) :]


def undecodable_line(path: Path) -> int:
    """The number of the first line that is not UTF-8."""
    number = 1
    with path.open("rb") as stream:
        while line := stream.readline(LONGEST_LINE):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                break
            number += line.endswith(b"\n")
    return number
