"""A guest's memory as it was when an operation had been counted: virtual addresses, pages, and the objects that lie in them."""

from __future__ import annotations

import mmap
import struct
from bisect import bisect_right
from functools import cache
from pathlib import Path

from msgspec import Struct

from kduel.explain.sharing.btf import BrokenBtfError, Btf
from kduel.explain.symbols import LONGEST, name_rank

LINEAR, LINEAR_END = 0xFFFF888000000000, 0xFFFFC88000000000
IMAGE, IMAGE_END = 0xFFFFFFFF80000000, 0xFFFFFFFFA0000000
MODULES_END = 0xFFFFFFFFFF000000
"""End of the modules, which lie behind the image."""
MEMORY_MAP, MEMORY_MAP_END = 0xFFFFEA0000000000, 0xFFFFEB0000000000
"""Addresses of the `struct page`s. These three are the kernel's on x86_64 with page tables of four levels and without KASLR."""
PAGE, PAGE_RECORD = 4096, 64
POINTER = 8
PRESENT, LARGE, ADDRESS = 1, 0x80, 0x000FFFFFFFFFF000


class NamelessError(ValueError):
    """An address that the snapshot does not resolve."""


class Cache(Struct, frozen=True):
    """A slab cache."""

    name: str
    size: int
    """Bytes from one object to the next."""
    object_size: int
    inuse: int = 0
    """Bytes of an object up to what the allocator keeps behind it."""
    free_pointer: int = 0
    """Where in an object the allocator keeps the address of the next free one."""

    @property
    def track(self) -> int | None:
        """Offset in an object of the record of its allocation; None where it does not (boot option slub_debug=U)."""
        at = self.inuse + (POINTER if self.free_pointer >= self.inuse else 0)
        return at if at + 2 * POINTER <= self.size else None


class Data(Struct, frozen=True):
    """Symbols of variables by address; per-CPU ones lie at their offsets."""

    addresses: list[int]
    names: list[str]
    known: dict[str, int]
    """Addresses by name, functions and marks in the code included."""

    @classmethod
    def read(cls, path: Path) -> Data:
        """Read /proc/kallsyms. Where several names share an address, the choice depends on the names alone. What lies among the
        initialised data is a variable, though kernels since 6.18 mark it as code."""
        known, code = dict[str, int](), set[str]()
        for line in path.read_text("utf-8", errors="replace").splitlines():
            if (words := line.split(maxsplit=2))[2:]:
                name = words[2].replace("\t", " ").rstrip()  # of a module: `counter [module]`
                known.setdefault(name, int(words[0], 16))
                code |= {name} if words[1] in "tTwW" else set()
        data = range(known.get("_sdata", 0), known.get("_edata", 0))
        code = {name for name in code if known[name] not in data}
        variables = sorted(known.keys() - code, key=name_rank, reverse=True)
        found = {known[name]: name for name in variables}
        addresses = sorted(found)
        return cls(addresses, [found[address] for address in addresses], known)

    def at(self, address: int) -> tuple[str, int]:
        """The variable that an address is in, and how far. Raises NamelessError."""
        place = bisect_right(self.addresses, address) - 1
        if place < 0 or address - self.addresses[place] >= LONGEST:
            raise NamelessError(f"{address:#x} is in no variable")
        if address >= IMAGE_END:
            module, following = ([name.partition(" [")[2] for name in self.names[place : place + 2]] + [""])[:2]
            if not module or module != following:
                raise NamelessError(f"{address:#x} is not between two variables of one module")
        return self.names[place], address - self.addresses[place]

    def address(self, name: str) -> int:
        """Raises NamelessError."""
        try:
            return self.known[name]
        except KeyError as error:
            raise NamelessError(f"the kernel has no symbol {name}") from error


class Memory:
    """A snapshot with the symbols of its kernel."""

    def __init__(self, snapshot: Path, symbols: Data) -> None:
        """Raises NamelessError where the kernel does not describe its types."""
        self.symbols = symbols
        with snapshot.open("rb") as stream:
            self.bytes = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        top = next((name for name in ("init_top_pgt", "swapper_pg_dir") if name in symbols.known), "init_top_pgt")
        self.top = symbols.address(top) - IMAGE
        begin, end = symbols.address("__start_BTF"), symbols.address("__stop_BTF")
        try:
            self.btf = Btf(self.read(begin, end - begin))
        except BrokenBtfError as error:
            raise NamelessError(f"the kernel's BTF is damaged: {error}") from error
        self.slab_of_page = cache(self._slab_of_page)
        self.cache_at = cache(self._cache_at)

    def physical(self, address: int) -> int:
        """Physical address of a virtual address of the kernel. Raises NamelessError."""
        if IMAGE <= address < IMAGE_END:
            return address - IMAGE
        if LINEAR <= address < LINEAR_END:
            return address - LINEAR
        table = self.top
        for shift in (39, 30, 21, 12):
            (entry,) = self.unpack("<Q", (table & ADDRESS) + (address >> shift & 511) * 8)
            if not entry & PRESENT:
                raise NamelessError(f"{address:#x} is not mapped")
            table = entry & ADDRESS
            if shift > 12 and entry & LARGE:
                size = 1 << shift
                return int(table & ~(size - 1)) + (address & (size - 1))
        return int(table) + address % PAGE

    def unpack(self, form: str, physical: int) -> tuple[int, ...]:
        """Numbers at a physical address. Raises NamelessError."""
        try:
            return struct.unpack_from(form, self.bytes, physical)
        except struct.error as error:
            raise NamelessError(f"{physical:#x} is outside of the memory") from error

    def read(self, address: int, size: int) -> bytes:
        """Bytes at a virtual address. Raises NamelessError."""
        out = bytearray()
        while len(out) < size:
            here = address + len(out)
            at, room = self.physical(here), min(size - len(out), PAGE - here % PAGE)
            out += self.bytes[at : at + room]
            if at + room > len(self.bytes):
                raise NamelessError(f"{here:#x} is outside of the memory")
        return bytes(out)

    def word(self, address: int) -> int:
        """A number of 8 bytes. Raises NamelessError."""
        return self.unpack("<Q", self.physical(address))[0]

    def half(self, address: int) -> int:
        """A number of 4 bytes. Raises NamelessError."""
        return self.unpack("<I", self.physical(address))[0]

    def text(self, address: int) -> str:
        """A string. Raises NamelessError."""
        at = self.physical(address)
        return self.bytes[at : at + 64].partition(b"\0")[0].decode(errors="replace")

    def offset(self, structure: str, field: str) -> int:
        """Raises NamelessError where the kernel has no such field."""
        found = self.btf.offset(structure, field)
        if found is None:
            raise NamelessError(f"this kernel's {structure} has no {field}")
        return found

    def per_cpu(self, address: int, cpus: int) -> tuple[int, int] | None:
        """CPU and offset of an address in the CPUs' copies of the per-CPU variables; None where it is in none."""
        begin, end = self.symbols.address("__per_cpu_start"), self.symbols.address("__per_cpu_end")
        table = self.symbols.address("__per_cpu_offset")
        for cpu in range(cpus):
            at = address - self.word(table + 8 * cpu) & (1 << 64) - 1
            if begin <= at < end:
                return cpu, at
        return None

    def _slab_of_page(self, frame: int) -> tuple[int, Cache] | None:
        """First page and cache of the slab that a page belongs to; None where it belongs to none. Raises NamelessError."""
        record = MEMORY_MAP + PAGE_RECORD * frame
        head = self.word(record + 8)
        if head & 1:
            first = head - 1
            if first >> 40 == 0xFFFFFF:  # since 7.x: a mask, no address
                first &= record
            pages, rest = divmod(first - MEMORY_MAP, PAGE_RECORD)
            if not rest and 0 <= pages <= frame:
                frame, record = pages, first
        constants, kind = self.btf.constants, "slab" if "slab" in self.btf.structures else "page"
        if "PGTY_slab" in constants:
            is_slab = self.half(record + self.offset("page", "page_type")) >> 24 == constants["PGTY_slab"]
        else:
            is_slab = bool(self.word(record) >> constants["PG_slab"] & 1)
        return (frame, self.cache_at(self.word(record + self.offset(kind, "slab_cache")))) if is_slab else None

    def _cache_at(self, address: int) -> Cache:
        return Cache(
            self.text(self.word(address + self.offset("kmem_cache", "name"))),
            self.half(address + self.offset("kmem_cache", "size")),
            self.half(address + self.offset("kmem_cache", "object_size")),
            self.half(address + self.offset("kmem_cache", "inuse")),
            self.half(address + self.offset("kmem_cache", "offset")),
        )
