"""Functions of the kernel by address, modules included."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Container, Iterable
from pathlib import Path

from kduel.core.errors import InputError

UNKNOWN = "(code without a symbol)"
LONGEST = 1 << 20
"""Bytes; what lies further behind a symbol is no part of its function."""
LONGEST_LAST = 1 << 12
"""The same behind a module's last symbol: code that the kernel made, such as a BPF program's, lies among modules."""
_LINE = re.compile(r"^([0-9a-fA-F]{8,16}) ([tTwW]) (\S+)(?:\s+\[([^\]\s]+)\])?\s*$")
_COMPILERS = re.compile(r"\.(?:isra|constprop|part|cold|llvm|lto_priv|localalias)(?:\.\d+)*")


class Symbols:
    """Text symbols by address. Where several names share one, the choice depends on the names alone."""

    def __init__(self, symbols: Iterable[tuple[int, str]]) -> None:
        best: dict[int, str] = {}
        for address, name in symbols:
            known = best.get(address)
            if known is None or name_rank(name) < name_rank(known):
                best[address] = name
        self.addresses = sorted(best)
        self.by_address = [best[address] for address in self.addresses]
        self.names = set(self.by_address)
        self.begins: Container[int] | None = None
        """Addresses at which executed blocks begin, where it is known."""

    @classmethod
    def from_kallsyms(cls, text: str) -> Symbols:
        """/proc/kallsyms of root, System.map or nm. Raises InputError where it has no functions or addresses."""
        found = []
        for line in text.splitlines():
            if match := _LINE.match(line):
                name = _COMPILERS.sub("", match[3])
                found.append((int(match[1], 16), f"{name} [{match[4]}]" if match[4] else name))
        if not found:
            raise InputError(
                "the symbol table names no functions of the kernel",
                "Give /proc/kallsyms read as root, a System.map, or the output of `nm vmlinux`.",
            )
        if not any(address for address, _ in found):
            raise InputError("the symbol table hides the addresses", "Read /proc/kallsyms as root.")
        return cls(found)

    @classmethod
    def read(cls, path: Path) -> Symbols:
        """Read a file. Raises InputError."""
        try:
            return cls.from_kallsyms(path.read_text("utf-8", errors="replace"))
        except OSError as error:
            raise InputError(f"cannot read the symbols {path}: {error.strerror}") from error

    def function(self, address: int) -> str:
        """The function at an address; a module's last one only up to where it was entered, if known (BPF follows)."""
        at = bisect_right(self.addresses, address)
        if not at:
            return UNKNOWN
        name, after = self.by_address[at - 1], self.by_address[at] if at < len(self.by_address) else ""
        module = name.partition(" [")[2]
        start, last = self.addresses[at - 1], bool(module) and after.partition(" [")[2] != module
        if last and self.begins is not None and start not in self.begins:
            return UNKNOWN
        return name if address - start < (LONGEST_LAST if last else LONGEST) else UNKNOWN

    def start(self, address: int) -> int:
        """Address where that function begins; the address itself where none is known."""
        at = bisect_right(self.addresses, address)
        return self.addresses[at - 1] if at else address


def name_rank(name: str) -> tuple[bool, bool, bool, int, str]:
    """Lower is better: not padding, not a section's mark, not a local label; then short."""
    return (
        name.startswith(("__pfx_", "__cfi_")),
        name.endswith(("_start", "_end", "_begin", "_stext", "_etext")) or name in {"_text", "_stext", "_etext"},
        name.startswith((".", "$", "__SCT__", "__SCK__")),
        len(name),
        name,
    )
