"""Names of a kernel that was built without CONFIG_KALLSYMS."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kduel.core.errors import InputError
from kduel.explain.symbols import UNKNOWN, Symbols
from kduel.kernels import Kernel
from kduel.run.exact.subject import check_operation, operation_study
from kduel.run.exact.symbols import symbols_of_build

TEXT = 0xFFFFFFFF81000000
CODE = bytes(range(64))
FUNCTION, DATA = 2, 1


def elf(code: bytes, symbols: list[tuple[str, int, int, int]]) -> bytes:
    """A kernel's ELF: one loaded segment, its section 1; section 2 is data; symbols as (name, kind, section, address),
    in sections 3 and 4 if there are any."""
    names, table = b"\0", bytes(24)
    for name, kind, section, address in symbols:
        table += struct.pack("<IBBHQQ", len(names), 16 | kind, 0, section, address, 0)
        names += name.encode() + b"\0"
    placed = 64 + 56 + len(code)
    sections = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (0, 1, 6, TEXT, 120, len(code), 0, 0, 0, 0),
        (0, 1, 3, 0, 0, 0, 0, 0, 0, 0),
    ]
    if symbols:
        sections += [
            (0, 2, 0, 0, placed, len(table), 4, 0, 8, 24),
            (0, 3, 0, 0, placed + len(table), len(names), 0, 0, 1, 0),
        ]
    body = code + table + names if symbols else code
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 64, 120 + len(body), 0, 64, 56, 1, 64, len(sections), 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 120, TEXT, 0, len(code), len(code), 0)
    return head + load + body + b"".join(struct.pack("<IIQQQQIIQQ", *section) for section in sections)


NAMED = [
    ("schedule", FUNCTION, 1, TEXT),
    ("entry_SYSCALL_64", 0, 1, TEXT + 16),
    ("jiffies", DATA, 2, TEXT + 999),
    ("in_data", 0, 2, TEXT + 32),
]


def kernel(tmp_path: Path, named: bytes | None, booted: bytes = CODE) -> Kernel:
    """A kernel whose image has no symbols, with a vmlinux beside it if `named`."""
    (tmp_path / "image").write_bytes(elf(booted, []))
    if named is not None:
        (tmp_path / "vmlinux").write_bytes(named)
    vmlinux = tmp_path / "vmlinux" if named is not None else None
    return Kernel(spec="tree:x", release="6.1.0", image=tmp_path / "image", sha256="0", vmlinux=vmlinux)


def test_functions_and_labels_of_the_code_get_their_names_and_data_does_not(tmp_path: Path) -> None:
    found = Symbols.from_kallsyms(symbols_of_build(kernel(tmp_path, elf(CODE, NAMED))))
    assert found.names == {"schedule", "entry_SYSCALL_64"}
    assert found.function(TEXT + 15) == "schedule"
    assert found.function(TEXT + 40) == "entry_SYSCALL_64"


def test_the_symbols_of_another_build_are_not_taken(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="CONFIG_KALLSYMS=y") as caught:
        symbols_of_build(kernel(tmp_path, elf(CODE, NAMED), booted=CODE[::-1]))
    assert "tree:x" in caught.value.message


@pytest.mark.parametrize("name", ["System.map", "System.map-6.1.0"])
def test_a_system_map_beside_the_image_serves(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(f"{TEXT:016x} T schedule\n{TEXT + 16:016x} D jiffies\n")
    assert Symbols.from_kallsyms(symbols_of_build(kernel(tmp_path, None))).names == {"schedule"}


def test_an_address_far_behind_the_last_name_has_none() -> None:
    symbols = Symbols([(TEXT, "schedule"), (TEXT + 64, "last")])
    assert symbols.function(TEXT + 4096) == "last"
    assert symbols.function(0xFFFFFFFFC0000000) == UNKNOWN


def test_an_unknown_operation_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="null-call, read"):
        check_operation("lunch")
    with pytest.raises(InputError, match="no operation 'empty\" '"):
        operation_study(["a", "b"], 'empty" ')
