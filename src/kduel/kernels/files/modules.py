"""Module files that a guest needs, in the order of loading: from each module's own .modinfo, as Debian's packages
ship no modules.dep. What `modprobe` does with softdeps and crypto aliases is done here too."""

import gzip
import hashlib
import lzma
import os
import re
import shutil
import struct
import subprocess
import zlib
from collections.abc import Iterable
from pathlib import Path

from kduel.core.errors import HostError, InputError

NO_MODULES = "none"
"""In place of a hash."""
MODULE_FILE = re.compile(r"^(?P<name>[^/]+)\.ko(?:\.(?:xz|zst|gz))?$")


def modules_with_dependencies(modules_dir: Path, names: Iterable[str]) -> list[Path]:
    """The files of these modules and of all that they need, each after what it needs; built-in ones give none.

    `modules_dir` is lib/modules/RELEASE. Softdeps come along where they exist; one that stands for an algorithm
    (`crc32c`) brings every implementation, of which those for another CPU refuse to load: that is harmless.
    Raises InputError naming a module that is missing, HostError where a module cannot be decompressed here.
    """
    tree = _Tree(modules_dir)
    for name in names:
        tree.need(canonical_name(name), "")
    return list(tree.ordered)


def modules_to_load(modules_dir: Path, names: Iterable[str]) -> dict[str, list[Path]]:
    """For each of these modules that the kernel has as a file: what to load for it, itself last. Raises as `modules_with_dependencies`."""
    tree = _Tree(modules_dir)
    found = {}
    for name in names:
        if canonical_name(name) in tree.files:
            tree.ordered = {}
            tree.need(canonical_name(name), "")
            found[name] = list(tree.ordered)
    return found


def modules_directory(given: str, release: str) -> Path:
    """A release's modules in lib/modules/RELEASE or the directory around it. Raises InputError for none or others."""
    place = modules_place(given)
    below = [place / release, *(place / lib / "modules" / release for lib in ("lib", "usr/lib"))]
    found = next((path for path in (place, *below) if (path / "kernel").is_dir()), None)
    if found is None:
        raise InputError(
            f"modules={given} holds no modules of {release}",
            f"Give the directory lib/modules/{release}, or the one given to make as INSTALL_MOD_PATH.",
        )
    for path in module_files(found).values():
        magic = modinfo(path).get("vermagic", [""])[0].split(" ")[0]
        if magic != release:
            raise InputError(
                f"the modules in {found} are of {magic}, the kernel is {release}", "Give its own modules."
            )
        break
    return found


def modules_place(given: str) -> Path:
    """The directory that a user named. Raises InputError where there is none."""
    place = Path(given).expanduser().resolve()
    if not place.is_dir():
        raise InputError(
            f"modules={given} holds no modules: there is no such directory",
            "Give the directory lib/modules/RELEASE of the kernel, or the one given to make as INSTALL_MOD_PATH.",
        )
    return place


def modinfo(path: Path) -> dict[str, list[str]]:
    """The .modinfo of a module file by key, with all values. Raises InputError where the file is no module."""
    found: dict[str, list[str]] = {}
    for entry in _modinfo_section(module_bytes(path), path).split(b"\0"):
        key, equals, value = entry.partition(b"=")
        if equals:
            text = value.decode("utf-8", errors="replace")
            found.setdefault(key.decode("utf-8", errors="replace"), []).append(text)
    return found


def module_bytes(path: Path) -> bytes:
    """A module's ELF, decompressed."""
    try:
        data = path.read_bytes()
        if path.suffix == ".xz":
            return lzma.decompress(data)
        if path.suffix == ".gz":
            return gzip.decompress(data)
    except (OSError, lzma.LZMAError, EOFError, zlib.error) as error:
        raise InputError(f"the module {path} cannot be read: {error}", "Get the kernel's modules again.") from error
    if path.suffix != ".zst":
        return data
    if not shutil.which("zstd"):
        raise HostError(f"the module {path} needs zstd, which is not on this host", "Install the package zstd.")
    done = subprocess.run(["zstd", "-d", "-c", "-q"], input=data, capture_output=True, check=False)
    if done.returncode:
        raise InputError(f"the module {path} is damaged: zstd cannot read it", "Get the kernel's modules again.")
    return done.stdout


def module_files(modules_dir: Path) -> dict[str, Path]:
    """All module files below a directory, by name (with `_` for `-`)."""
    found: dict[str, Path] = {}
    for directory, subdirectories, files in os.walk(modules_dir):
        subdirectories.sort()
        for file in files:
            if match := MODULE_FILE.match(file):
                found.setdefault(canonical_name(match["name"]), Path(directory, file))
    return found


def modules_digest(modules_dir: Path | None) -> str:
    """SHA-256 of all module files below lib/modules/RELEASE with their paths; NO_MODULES where there are none. How they
    are compressed does not matter. Raises InputError, HostError for one that cannot be read."""
    if modules_dir is None:
        return NO_MODULES
    digest = hashlib.sha256()
    for path in sorted(module_files(modules_dir).values()):
        data = module_bytes(path)
        place = path.relative_to(modules_dir).parent / path.name.partition(".")[0]
        digest.update(f"{place.as_posix()} {len(data)}\n".encode(errors="surrogateescape") + data)
    return digest.hexdigest()


class _Tree:
    """The modules of one kernel, and those chosen so far, in order."""

    def __init__(self, modules_dir: Path) -> None:
        self.place = modules_dir
        self.files = module_files(modules_dir)
        self.builtin = _builtin(modules_dir)
        self.ordered: dict[Path, None] = {}
        self.under_way: set[str] = set()
        self._algorithms: dict[str, list[str]] | None = None

    def need(self, name: str, whose: str) -> None:
        if name in self.builtin or name in self.under_way:
            return
        path = self.files.get(name)
        if path is None:
            raise InputError(
                f"the kernel's modules in {self.place} lack {name}" + (f", which {whose} needs" if whose else ""),
                "Name another kernel, or build this one with that driver.",
            )
        if path in self.ordered:
            return
        self.under_way.add(name)
        info = modinfo(path)
        before = [word for text in info.get("softdep", []) for word in _softdeps(text, "pre")]
        after = [word for text in info.get("softdep", []) for word in _softdeps(text, "post")]
        for soft in before:
            self.want(soft)
        for needed in filter(None, ",".join(info.get("depends", [])).split(",")):
            self.need(canonical_name(needed), name)
        self.ordered[path] = None
        for soft in after:
            self.want(soft)
        self.under_way.remove(name)

    def want(self, soft: str) -> None:
        """A softdep: loaded if it is there."""
        name = canonical_name(soft)
        if name in self.files:
            self.need(name, "")
        elif name not in self.builtin:
            for provider in self.algorithms().get(name, []):
                self.need(provider, "")

    def algorithms(self) -> dict[str, list[str]]:
        """Alias to modules, of those that implement algorithms; only their directories are searched."""
        if self._algorithms is None:
            self._algorithms = {}
            for name, path in sorted(self.files.items()):
                if {"crypto", "lib"} & set(path.relative_to(self.place).parts[:-1]):
                    for alias in modinfo(path).get("alias", []):
                        self._algorithms.setdefault(canonical_name(alias), []).append(name)
        return self._algorithms


def canonical_name(name: str) -> str:
    return name.replace("-", "_")


def _softdeps(text: str, which: str) -> list[str]:
    """Words of one part of `pre: a b post: c`."""
    words: list[str] = []
    part = ""
    for word in text.split():
        if word in ("pre:", "post:"):
            part = word[:-1]
        elif part == which:
            words.append(word)
    return words


def _builtin(modules_dir: Path) -> set[str]:
    """Names of what is built in."""
    try:
        listed = (modules_dir / "modules.builtin").read_text(encoding="utf-8", errors="replace").split()
    except FileNotFoundError:
        return set()
    return {canonical_name(Path(line).name.partition(".")[0]) for line in listed}


def _modinfo_section(elf: bytes, path: Path) -> bytes:
    """Section headers of the ELF specification, 32 and 64 bit, either byte order."""
    try:
        if elf[:4] != b"\x7fELF":
            raise ValueError("no ELF file")
        order = "<" if elf[5] == 1 else ">"
        if elf[4] == 2:
            table, size, count, names_at = *struct.unpack_from(order + "Q", elf, 40), *_shape(order, elf, 58)
            form, step = order + "IIQQQQ", 64
        else:
            table, size, count, names_at = *struct.unpack_from(order + "I", elf, 32), *_shape(order, elf, 46)
            form, step = order + "IIIIII", 40
        if size != step:
            raise ValueError("unusual section headers")
        sections = [struct.unpack_from(form, elf, table + number * step) for number in range(count)]
        strings = sections[names_at][4]
        for name, _, _, _, offset, length in sections:
            if elf.startswith(b".modinfo\0", strings + name):
                return elf[offset : offset + length]
        raise ValueError("no .modinfo section")
    except (struct.error, IndexError, ValueError) as error:
        raise InputError(f"{path} is not a kernel module: {error}", "Get the kernel's modules again.") from error


def _shape(order: str, elf: bytes, at: int) -> tuple[int, int, int]:
    """Size of a section header, how many there are, and which one holds the names."""
    size, count, names = struct.unpack_from(order + "HHH", elf, at)
    return size, count, names
