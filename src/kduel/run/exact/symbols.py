"""Names for a kernel that has none in the guest, built without CONFIG_KALLSYMS: from its vmlinux, or a System.map."""

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path

from kduel.core.errors import InputError
from kduel.core.this_host import text_of
from kduel.kernels import Kernel
from kduel.kernels.files.image import kernel_contents

ELF64 = b"\x7fELF\x02\x01"
SYMBOL_TABLE, EXECUTABLE = 2, 4
UNTYPED, FUNCTION = 0, 2

Bytes = bytes | mmap.mmap


def symbols_of_build(kernel: Kernel) -> str:
    """The kernel's own functions, without modules, in the format of /proc/kallsyms: from the vmlinux of its tree, an
    ELF image of the same code, or a System.map beside it. Raises InputError where there is none."""
    for elf in filter(None, (kernel.vmlinux, kernel.image)):
        found = read_elf(elf, kernel)
        if found:
            return found
    where = kernel.vmlinux or Path(kernel.provenance.get("path") or kernel.image)
    for path in (where.with_name(f"System.map-{kernel.release}"), where.with_name("System.map")):
        if text := text_of(path):
            return text
    raise InputError(
        f"the kernel {kernel.spec} does not export its symbol names",
        f"Build it with CONFIG_KALLSYMS=y, or put its System.map or vmlinux next to it in {where.parent}.",
    )


def read_elf(path: Path, kernel: Kernel) -> str:
    """Functions of an ELF file; empty where it is none, is damaged, has no symbols, or is not what boots."""
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if data[:6] != ELF64:
                return ""
            lines = [f"{address:016x} T {name}" for address, name in _functions(data)]
            if not lines or _first_segment(data) != _first_segment(kernel_contents(kernel.image)):
                return ""
    except (OSError, ValueError, IndexError, struct.error):
        return ""
    return "\n".join([*lines, ""])


def _functions(elf: Bytes) -> Iterator[tuple[int, str]]:
    table, size, count = struct.unpack_from("<Q", elf, 40)[0], *struct.unpack_from("<HH", elf, 58)
    sections = [struct.unpack_from("<IIQQQQII", elf, table + number * size) for number in range(count)]
    code = {number for number, section in enumerate(sections) if section[2] & EXECUTABLE}
    for _, kind, _, _, offset, length, link, _ in sections:
        if kind != SYMBOL_TABLE:
            continue
        names = sections[link][4]
        for name, info, _, section, address, _ in struct.iter_unpack("<IBBHQQ", elf[offset : offset + length]):
            if section in code and info & 15 in (UNTYPED, FUNCTION):
                start = names + name
                yield address, elf[start : elf.find(b"\0", start)].decode("ascii", errors="replace")


def _first_segment(elf: Bytes) -> bytes:
    """The kernel's code, as it is loaded."""
    if elf[:6] != ELF64:
        return b""
    table, size, count = struct.unpack_from("<Q", elf, 32)[0], *struct.unpack_from("<HH", elf, 54)
    for number in range(count):
        kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", elf, table + number * size)
        if kind == 1:
            return bytes(elf[offset : offset + length])
    return b""
