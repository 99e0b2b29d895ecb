"""BTF, the kernel's own description of its types (Documentation/bpf/btf.rst): sizes, and the field at a byte of a
structure. The guest's memory holds it, from `__start_BTF` on."""

import struct
from functools import cached_property

from msgspec import Struct

MAGIC = 0xEB9F
INT, POINTER, ARRAY, STRUCT, UNION, ENUM, FORWARD, TYPEDEF, VOLATILE, CONST, RESTRICT = range(1, 12)
FUNCTION, PROTOTYPE, VARIABLE, SECTION, FLOAT, DECLARATION_TAG, TYPE_TAG, ENUM64 = range(12, 20)
TRANSPARENT = (TYPEDEF, VOLATILE, CONST, RESTRICT, TYPE_TAG)
AGGREGATES = (STRUCT, UNION)
AFTER = {INT: 4, ARRAY: 12, VARIABLE: 4, DECLARATION_TAG: 4}
"""Bytes that follow a type of fixed size."""
EACH = {STRUCT: 12, UNION: 12, ENUM: 8, PROTOTYPE: 8, SECTION: 12, ENUM64: 12}
"""Bytes of each member that follows a type."""


class BrokenBtfError(ValueError):
    """The bytes are no BTF."""


class Member(Struct, frozen=True):
    """A field of a structure or union."""

    name: str
    type: int
    at: int
    """Bits from the beginning."""
    bits: int
    """Bits of a bit field; else 0."""


class Type(Struct, frozen=True):
    """A type as it lies in the section."""

    kind: int
    name: str
    size: int
    """Or the type that it refers to."""
    after: bytes
    length: int
    flag: bool


class Btf:
    def __init__(self, data: bytes) -> None:
        """Raises BrokenBtfError."""
        try:
            magic, _, _, header, types_at, types_size, strings_at, strings_size = struct.unpack_from(
                "<HBBIIIII", data
            )
            if magic != MAGIC:
                raise BrokenBtfError(f"the magic number is {magic:#x}")
            self.known: dict[int, list[tuple[int, int, Member]]] = {}
            """By number of a structure: what `places` found, which is asked for at each byte."""
            self.strings = data[header + strings_at : header + strings_at + strings_size]
            self.types = self.read_types(data[header + types_at : header + types_at + types_size])
        except BrokenBtfError:
            raise
        except (struct.error, ValueError) as error:
            raise BrokenBtfError(str(error)) from error

    def read_types(self, data: bytes) -> list[Type]:
        """Types by number; number 0 is void."""
        found, at = [Type(0, "void", 0, b"", 0, False)], 0
        while at < len(data):
            name, info, size = struct.unpack_from("<III", data, at)
            kind, length = info >> 24 & 31, info & 0xFFFF
            more = AFTER.get(kind, 0) + EACH.get(kind, 0) * length
            found.append(Type(kind, self.text(name), size, data[at + 12 : at + 12 + more], length, bool(info >> 31)))
            at += 12 + more
        return found

    def text(self, at: int) -> str:
        return self.strings[at : self.strings.index(b"\0", at)].decode(errors="replace")

    @cached_property
    def structures(self) -> dict[str, int]:
        """Structures and unions by name: the first definition of each."""
        found: dict[str, int] = {}
        for number, one in enumerate(self.types):
            if one.kind in AGGREGATES and one.name:
                found.setdefault(one.name, number)
        return found

    @cached_property
    def variables(self) -> dict[str, int]:
        """Types of variables by name; kernels describe their per-CPU variables."""
        return {one.name: one.size for one in self.types if one.kind == VARIABLE}

    @cached_property
    def constants(self) -> dict[str, int]:
        """Enumerated values by name."""
        return {
            self.text(name): value
            for one in self.types
            if one.kind == ENUM
            for name, value in struct.iter_unpack("<Ii", one.after)
        }

    def members(self, one: Type) -> list[Member]:
        return [
            Member(self.text(name), kind, at & 0xFFFFFF if one.flag else at, at >> 24 if one.flag else 0)
            for name, kind, at in struct.iter_unpack("<III", one.after)
        ]

    def resolve(self, number: int) -> Type:
        """A type without its typedefs and qualifiers."""
        one = self.types[number]
        while one.kind in TRANSPARENT:
            one = self.types[one.size]
        return one

    def size(self, number: int) -> int:
        one = self.resolve(number)
        if one.kind == POINTER:
            return 8
        if one.kind == ARRAY:
            element, _, count = struct.unpack("<III", one.after)
            return self.size(element) * int(count)
        return one.size if one.kind in (INT, STRUCT, UNION, ENUM, FLOAT, ENUM64) else 0

    def offset(self, structure: str, field: str) -> int | None:
        """Bytes before a field, also in a structure without a name; None where there is none."""

        def find(one: Type) -> int | None:
            for member in self.members(one):
                inner = self.resolve(member.type)
                if member.name == field:
                    return member.at // 8
                if not member.name and inner.kind in AGGREGATES and (at := find(inner)) is not None:
                    return member.at // 8 + at
            return None

        number = self.structures.get(structure)
        return None if number is None else find(self.types[number])

    def places(self, number: int) -> list[tuple[int, int, Member]]:
        """The bytes of each member of a structure or union. What has no size is a flexible array, or marks where a group of
        fields begins: any other field there comes first."""
        if number not in self.known:
            found = []
            for member in self.members(self.resolve(number)):
                size = (member.bits + 7) // 8 if member.bits else self.size(member.type)
                found.append((member.at // 8, member.at // 8 + max(size, 1), size == 0, member))
            found.sort(key=lambda place: place[2])
            self.known[number] = [(first, end, member) for first, end, _, member in found]
        return self.known[number]

    def field(self, number: int, at: int) -> str:
        """The innermost field at a byte of a type, such as `mmap_lock.count.counter`; empty for a simple type. Of a union, which
        field it is used as is not known: all of them, such as `i_pipe|i_cdev`."""
        one = self.resolve(number)
        if one.kind == ARRAY:
            element, _, _ = struct.unpack("<III", one.after)
            size = self.size(element)
            return self.field(element, at % size) if size else ""
        if one.kind not in AGGREGATES:
            return ""
        found = [
            ".".join(filter(None, (member.name, self.field(member.type, at - first))))
            for first, end, member in self.places(number)
            if first <= at < end
        ]
        if one.kind == STRUCT:
            return found[0] if found else f"+{at}"
        alternatives = list(dict.fromkeys(path for path in found if path and not path.startswith("+")))
        if len(alternatives) < 2:
            return alternatives[0] if alternatives else f"+{at}"
        names = dict.fromkeys(name for path in alternatives for name in path.partition(".")[0].split("|"))
        return "|".join(names)
