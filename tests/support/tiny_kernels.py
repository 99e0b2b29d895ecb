"""Kernels of a few bytes, booted by QEMU through their PVH entry: each misbehaves in one way, within milliseconds."""

from __future__ import annotations

import struct
from pathlib import Path

LOAD = 0x100000
SERIAL, POWER = 0x3F8, 0x604
SPIN = b"\xfa\xeb\xfe"  # cli; jmp $
SLEEP_FOR_EVER = b"\xfa\xf4\xeb\xfd"  # cli; hlt; jmp to the hlt
SPIN_OPEN = b"\xb0\xff\xe6\x21\xe6\xa1\xfb\xeb\xfe"  # all interrupts of the two controllers masked; sti; jmp $
RUN_IN_DEVICE = b"\xb8\x00\x00\xe0\xfe\xff\xe0"  # jmp to the local APIC's registers
POWER_OFF = b"\x66\xba" + struct.pack("<H", POWER) + b"\x66\xb8\x00\x20\x66\xef"  # out 0x2000 to the ACPI port
TRIPLE_FAULT = b"\x0f\x01\x1d" + struct.pack("<I", LOAD + 0x800) + b"\xcc"  # lidt of zeros; int3


def say(text: bytes) -> bytes:
    """Code that writes `text` to the serial port."""
    return b"\x66\xba" + struct.pack("<H", SERIAL) + b"".join(b"\xb0" + bytes([char]) + b"\xee" for char in text)


def flood() -> bytes:
    """Code that writes to the serial port for ever."""
    return say(b"x") + b"\xee\xeb\xfd"


def kernel(path: Path, code: bytes) -> Path:
    """An ELF of this 32-bit code with a PVH note."""
    note = struct.pack("<III4sI", 4, 4, 18, b"Xen\0", LOAD)
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, LOAD, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    body = code.ljust(0x1000, b"\0")
    load = struct.pack("<IIQQQQQQ", 1, 7, 0x1000, LOAD, LOAD, len(body), len(body), 0x1000)
    noted = struct.pack("<IIQQQQQQ", 4, 4, 0x200, 0, 0, len(note), len(note), 4)
    path.write_bytes((head + load + noted).ljust(0x200, b"\0") + note.ljust(0xE00, b"\0") + body)
    return path
