"""Location of a kernel's bytes, by subsystem, symbol and option; every byte that size(1) counts appears once."""

import gzip
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from msgspec import Struct

from kduel.core.errors import InputError
from kduel.kernels.sizes.elf import Elf, ElfSection, Kind, Symbol, read_elf

GENERATED = "(linker)"
"""Symbols of no object: what the linker and the last steps of a build add."""
NAMELESS = "(no symbol)"
UNIQUE = re.compile(r"^__UNIQUE_ID_|^__addressable_|^__initcall__|^__key\b|^__func__|^__already_done|^__warned")


class Piece(Struct, frozen=True):
    """Bytes of vmlinux that belong together."""

    directory: str
    """Path of the object, or GENERATED, or NAMELESS."""
    object: str
    option: str
    """Option that brings the object, without CONFIG_; or nothing."""
    symbol: str
    """Without the compiler's counters; NAMELESS with the section's name for what has none."""
    kind: Kind
    size: int


class SizeAccount(Struct, frozen=True, kw_only=True):
    pieces: list[Piece]
    totals: dict[Kind, int]
    """Totals as size(1) prints them; the pieces add up to them."""
    placed: bool
    """True if it is known which object a symbol came from."""

    def bytes_by(self, key: Callable[[Piece], str]) -> Counter[str]:
        found: Counter[str] = Counter()
        for piece in self.pieces:
            found[key(piece)] += piece.size
        return found


class SizeLine(Struct, frozen=True, kw_only=True):
    """One row of a comparison, in bytes; None where the kernel has none of it."""

    name: str
    baseline: int | None
    contender: int | None

    @property
    def change(self) -> int:
        return (self.contender or 0) - (self.baseline or 0)


def account_for(vmlinux: Path, objects: Path | None) -> SizeAccount:
    """Account for a vmlinux. `objects` is what kduel.kernels.sizes.objects left of its build. Raises InputError."""
    elf = read_elf(vmlinux)
    origin = Origins(objects) if objects is not None and objects.is_file() else None
    pieces = []
    for section, symbol, size in spread_symbols(elf):
        path, option = ("", "")
        if symbol is not None and origin is not None:
            path, option = origin.find(symbol)
        directory = str(PurePosixPath(path).parent) if path else NAMELESS if symbol is None else GENERATED
        name = stable_name(symbol.name) if symbol is not None else f"{NAMELESS} {section.name}"
        pieces.append(Piece(directory, path, option, name, section.kind, size))
    return SizeAccount(pieces=pieces, totals=elf.totals(), placed=origin is not None)


def spread_symbols(elf: Elf) -> Iterable[tuple[ElfSection, Symbol | None, int]]:
    """Every byte of every section, once: given to the first of the symbols that cover it, or to none."""
    of: dict[int, list[Symbol]] = defaultdict(list)
    for symbol in elf.symbols:
        of[symbol.section].append(symbol)
    for section in elf.sections:
        at, named = section.address, 0
        end = section.address + section.size
        for symbol in sorted(of[section.index], key=first_symbol):
            start, stop = max(at, symbol.value), min(symbol.value + symbol.size, end)
            if stop > start:
                yield section, symbol, stop - start
                named += stop - start
                at = stop
        if named < section.size:
            yield section, None, section.size - named


def first_symbol(symbol: Symbol) -> tuple[int, int, int, str]:
    """Choose from several names for the same bytes: the outermost, then the one with the fewest underscores before it."""
    return symbol.value, -symbol.size, len(symbol.name) - len(symbol.name.lstrip("_")), symbol.name


def stable_name(name: str) -> str:
    """A symbol's name without what the compiler numbers again in every build."""
    name = re.sub(r"\.\d+(?=\.|$)", "", name)
    return re.sub(r"\d+$", "", name) if UNIQUE.match(name) else name


class Origins:
    """Finds the object of a symbol of vmlinux: each symbol is used once, in order, for equally named functions."""

    def __init__(self, path: Path) -> None:
        self.waiting: dict[str, list[tuple[str, str, int]]] = defaultdict(list)
        try:
            with gzip.open(path, "rt", encoding="utf-8", errors="replace") as stream:
                for line in stream:
                    place, option, size, name = line.rstrip("\n").split("\t")
                    self.waiting[name].append((place, option, int(size)))
        except (OSError, EOFError, zlib.error, ValueError) as error:
            raise InputError(
                f"{path} is damaged: {error}", "Remove the kernel from the cache, and build it again."
            ) from error

    def find(self, symbol: Symbol) -> tuple[str, str]:
        """The object's path and its option; two empty strings where no object has such a symbol."""
        candidates = self.waiting.get(symbol.name)
        if not candidates:
            return "", ""
        stem = PurePosixPath(symbol.file).stem

        def fits(candidate: tuple[str, str, int]) -> tuple[bool, bool]:
            place, _, size = candidate
            return bool(stem) and PurePosixPath(place).stem != stem, size != symbol.size

        best = min(candidates, key=fits)
        if len(candidates) > 1:
            candidates.remove(best)
        return best[0], best[1]


def compare_pieces(baseline: Counter[str], contender: Counter[str]) -> list[SizeLine]:
    """Both side by side, the largest difference first; what is the same in both is there too."""
    found = [
        SizeLine(name=name, baseline=baseline.get(name), contender=contender.get(name))
        for name in dict.fromkeys([*baseline, *contender])
    ]
    return sorted(found, key=lambda line: (-abs(line.change), line.name))


def kinds_of_change(rows: Iterable[SizeLine]) -> str:
    """Last line of scripts/bloat-o-meter: what was added and removed, what grew and shrank."""
    counts: Counter[str] = Counter()
    up = down = 0
    for row in rows:
        if row.change > 0:
            counts["grow" if row.baseline else "add"] += 1
            up += row.change
        elif row.change < 0:
            counts["shrink" if row.contender else "remove"] += 1
            down += row.change
    return (
        f"add/remove: {counts['add']}/{counts['remove']} grow/shrink: {counts['grow']}/{counts['shrink']} "
        f"up/down: {up}/{down} ({up + down})"
    )
