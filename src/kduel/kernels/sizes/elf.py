"""ELF files as far as sizes go: sections and symbols, 32 and 64 bit, either byte order."""

import struct
from pathlib import Path
from typing import Literal

from msgspec import Struct

from kduel.core.errors import InputError

Kind = Literal["text", "data", "bss"]

WRITE, ALLOC, EXECUTABLE = 1, 2, 4
NOBITS, SYMBOL_TABLE = 8, 2
FILE_SYMBOL, SECTION_SYMBOL = 4, 3


class ElfSection(Struct, frozen=True):
    """A section that the program occupies memory with, as `size` counts it."""

    index: int
    name: str
    address: int
    size: int
    kind: Kind


class Symbol(Struct, frozen=True):
    """A symbol with a size, in the order of the table."""

    name: str
    section: int
    value: int
    size: int
    file: str
    """The source file that the table names before it; empty for global symbols."""


class Elf(Struct, frozen=True):
    """Parts of an ELF file that matter for sizes."""

    sections: list[ElfSection]
    symbols: list[Symbol]

    def totals(self) -> dict[Kind, int]:
        """text, data and bss, exactly as `size` prints them."""
        found: dict[Kind, int] = {"text": 0, "data": 0, "bss": 0}
        for section in self.sections:
            found[section.kind] += section.size
        return found


def read_elf(path: Path) -> Elf:
    """Read a file. Raises InputError for what is no ELF file, or a broken one."""
    try:
        return _read(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", "Build the kernel again.") from error
    except (struct.error, IndexError, ValueError) as error:
        raise InputError(f"{path} is not a complete ELF file: {error}", "Build the kernel again.") from error


def _read(data: bytes) -> Elf:
    if data[:4] != b"\x7fELF":
        raise ValueError("it does not begin like one")
    order = "<" if data[5] == 1 else ">"
    wide = data[4] == 2
    (table,) = struct.unpack_from(order + ("Q" if wide else "I"), data, 40 if wide else 32)
    step, count, names_at = struct.unpack_from(order + "HHH", data, 58 if wide else 46)
    form = struct.Struct(order + ("IIQQQQIIQQ" if wide else "IIIIIIIIII"))
    if step != form.size:
        raise ValueError("unusual section headers")
    if count == 0 and table:
        # More than 65,279 sections: the first header's size holds the number.
        count = form.unpack_from(data, table)[5]
    headers = [form.unpack_from(data, table + number * step) for number in range(count)]
    if names_at == 0xFFFF:
        names_at = headers[0][6]
    names = headers[names_at][4] if headers else 0
    sections = []
    for index, (name, kind, flags, address, _, size, *_) in enumerate(headers):
        if flags & ALLOC and size:
            of: Kind = "text" if flags & EXECUTABLE or not flags & WRITE else "bss" if kind == NOBITS else "data"
            sections.append(ElfSection(index, _string(data, names + name), address, size, of))
    symbols: list[Symbol] = []
    for header in headers:
        if header[1] == SYMBOL_TABLE:
            strings = headers[header[6]]
            text = data[strings[4] : strings[4] + strings[5]]
            symbols += _symbols(data[header[4] : header[4] + header[5]], text, order, wide)
    return Elf(sections, symbols)


def _symbols(table: bytes, strings: bytes, order: str, wide: bool) -> list[Symbol]:
    form = struct.Struct(order + ("IBBHQQ" if wide else "IIIBBH"))
    found = []
    file = ""
    for fields in form.iter_unpack(table[: len(table) // form.size * form.size]):
        if wide:
            name, info, _, section, value, size = fields
        else:
            name, value, size, info, _, section = fields
        if info & 15 == FILE_SYMBOL:
            file = _string(strings, name)
        elif size and 0 < section < 0xFF00 and info & 15 != SECTION_SYMBOL:
            found.append(Symbol(_string(strings, name), section, value, size, "" if info >> 4 else file))
    return found


def _string(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode("utf-8", errors="replace")
