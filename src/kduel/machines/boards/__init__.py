"""Boards, one file each (docs/boards.md has its keys). `NAME.toml` here is a board of that name; a path names any other file."""

from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct, structs

from kduel.core.errors import InputError
from kduel.core.toml import parse_toml, read_text
from kduel.guest.programs import TARGETS

ROOT_FILE = "@ROOT@"
MOUNT = {
    "disk": 'cmdline = "root=/dev/vda rootwait"',
    "nfs": 'cmdline = "root=/dev/nfs nfsroot=SERVER:DIRECTORY,vers=3,tcp ip=dhcp"',
}
"""For roots that a kernel mounts itself, how a description may name it."""


class EmulatorSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    program: str
    package: str
    machine: str
    cpu: str
    results: str = "virtio"
    extra: list[str] = []
    """Further arguments. @ROOT@ stands for the file of a root on disk."""


class Real(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    environment: str
    files: str
    commands: list[str] = []
    """For the boot loader. @CMDLINE@ stands for the kernel's command line, @INITRD_SIZE@ for bytes in hexadecimal."""
    fastboot: list[str] | None = None
    """In place of `commands`, for a boot loader with fastboot: mkbootimg's further arguments."""
    flash: str = ""
    """With fastboot, the partition that a root on disk is written to before each boot."""
    place: str = ""
    target: str = "main"
    seconds_per_command: int = 60


class Board(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    summary: str
    architecture: str
    console: str
    memory: str
    qemu: EmulatorSettings | None = None
    labgrid: Real | None = None
    cpus: int = 1
    cmdline: str = ""
    root: Literal["ram", "disk", "nfs"] = "ram"
    tree: str = ""
    clocksource: str = ""
    modules: list[str] = []
    busybox: str = ""


def known_boards() -> dict[str, Board]:
    """The boards that come along, by name."""
    folder = resources.files("kduel.machines.boards")
    return {
        item.name.removesuffix(".toml"): read(item.read_text("utf-8"), item.name)
        for item in sorted(folder.iterdir(), key=lambda item: item.name)
        if item.name.endswith(".toml")
    }


def board(name: str) -> Board:
    """The board of that name, or of the file that `name` is the path of. Raises InputError."""
    if name.endswith(".toml"):
        text = read_text(Path(name), "the board", "Name a board's description; see docs/boards.md.")
        return resolve_files(read(text, name), Path(name).resolve().parent)
    found = known_boards()
    if name not in found:
        raise InputError(
            f"there is no board {name!r}" if name else "the machine board needs a board",
            f"Name one: --machine board:NAME, of {', '.join(found)}; or a file of your own: --machine board:MINE.toml.",
        )
    return found[name]


def resolve_files(found: Board, folder: Path) -> Board:
    """With the files that a description names taken from the folder that it lies in."""
    if found.busybox:
        found = structs.replace(found, busybox=str(folder / Path(found.busybox).expanduser()))
    if found.tree:
        found = structs.replace(found, tree=str(folder / Path(found.tree).expanduser()))
    if found.labgrid:
        real = structs.replace(
            found.labgrid,
            environment=str(folder / Path(found.labgrid.environment).expanduser()),
            files=str(folder / Path(found.labgrid.files).expanduser()),
        )
        found = structs.replace(found, labgrid=real)
    return found


def read(text: str, origin: str) -> Board:
    """A description's content; `origin` is named in errors. Raises InputError."""
    try:
        found = msgspec.convert(parse_toml(text, f"the board {origin}", "See docs/boards.md."), Board, strict=True)
    except msgspec.ValidationError as error:
        keys = ", ".join(Board.__struct_fields__)
        raise InputError(f"the board {origin}: {error}", f"A board's keys: {keys}; see docs/boards.md.") from error
    if found.architecture not in TARGETS:
        raise InputError(
            f"the board {origin}: architecture = {found.architecture!r} is none that programs can be built for",
            f"There are: {', '.join(sorted(TARGETS))}.",
        )
    if (found.qemu is None) == (found.labgrid is None):
        raise InputError(
            f"the board {origin} needs a table [qemu] or a table [labgrid], and not both", "See docs/boards.md."
        )
    for told, remedy in contradictions(found):
        raise InputError(f"the board {origin}: {told}", remedy)
    return found


def contradictions(found: Board) -> Iterator[tuple[str, str]]:
    """Contradictions between keys, with remedies."""
    root = f"root = {found.root!r}"
    if found.root in MOUNT and not any(word.startswith("root=") for word in found.cmdline.split()):
        yield f"{root}, but cmdline does not state what to mount", f"Add to it, for example {MOUNT[found.root]}."
    if (found.root == "nfs") != bool(found.tree):
        yield (
            f"{root}, and tree = {found.tree!r}",
            'root = "nfs" needs tree = "DIRECTORY", the one that your server offers; other roots have none.',
        )
    if found.qemu and (found.root == "disk") != any(ROOT_FILE in word for word in found.qemu.extra):
        yield (
            f"{root}, and extra = {found.qemu.extra}",
            f'root = "disk" needs a disk made of {ROOT_FILE}: extra = ["-drive", '
            f'"if=none,id=root,format=raw,file={ROOT_FILE}", "-device", "virtio-blk-pci,drive=root"]; '
            "other roots have none.",
        )
    if real := found.labgrid:
        if bool(real.commands) == (real.fastboot is not None):
            yield (
                "[labgrid] needs either commands or fastboot",
                'Write commands = ["tftp ...", ...] for a boot loader with a prompt; fastboot = [] for one that '
                "speaks fastboot.",
            )
        if real.flash and (real.fastboot is None or found.root != "disk"):
            yield f"{root}, and flash = {real.flash!r}", 'flash goes with fastboot and root = "disk".'
