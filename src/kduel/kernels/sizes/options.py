"""Configuration option that brings each object, as the tree's Makefiles say it."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

from kduel.core.this_host import text_of

ASSIGNMENT = re.compile(r"^\s*([\w-]+)-(?:(y|objs)|\$\(CONFIG_(\w+)\))\s*[:+]?=\s*(.*)$")


class OptionSizes:
    """Answers for one tree; Makefiles that do more than assign lists are understood as far as they do."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self.lists = cache(self._read_lists)
        self.option_of = cache(self._option_of)

    def _option_of(self, path: str) -> str:
        """The option, without CONFIG_, of an object or a directory (`fs/ext4/`); empty for what is always built."""
        place = PurePosixPath(path)
        parent = "" if str(place.parent) == "." else f"{place.parent}/"
        name = place.name + ("/" if path.endswith("/") else "")
        own = self._option_in(parent, name)
        return own if own is not None else self.option_of(parent) if parent else ""

    def _option_in(self, directory: str, name: str, depth: int = 0) -> str | None:
        """Option in the directory's own Makefile; None where it has none, or obj-y."""
        for target, option, members in self.lists(directory):
            if name not in members:
                continue
            if option:
                return option
            if target not in ("obj", "lib", "core", "drivers", "libs") and depth < 5:
                # Part of an object that is put together from several.
                return self._option_in(directory, f"{target}.o", depth + 1)
        return None

    def _read_lists(self, directory: str) -> list[tuple[str, str, frozenset[str]]]:
        """The lists of a directory's Makefile: what they belong to, their option or nothing, their members."""
        return list(self._assignments(directory))

    def _assignments(self, directory: str) -> Iterator[tuple[str, str, frozenset[str]]]:
        for name in ("Kbuild", "Makefile"):
            for line in text_of(self.tree / directory / name).replace("\\\n", " ").splitlines():
                if match := ASSIGNMENT.match(line.partition("#")[0]):
                    yield match[1], match[3] or "", frozenset(match[4].split())
