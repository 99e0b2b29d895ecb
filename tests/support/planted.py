"""Kernels with a planted regression, and a small history of commits of which one brings it.

A regression is planted by patching a kernel's bytes: the `endbr64` at the head of getppid, which does nothing here, becomes
four `nop`s, so the call takes exactly three instructions more; or it becomes a load.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path
from typing import NamedTuple

from kduel.core.cache import Cache
from kduel.core.progress import Progress
from kduel.kernels import resolve
from kduel.kernels.files.image import uncompressed_kernel

FUNCTION = "__do_sys_getppid"
CULPRIT = "Make getppid nicer"
"""The subject of the commit that brings the regression."""
UNBUILDABLE = "getppid.c:1: error: expected ;"
"""What a commit that does not build says."""
COMMITS = 9


class Planted(NamedTuple):
    """Images of one kernel."""

    plain: Path
    slow: Path
    """With three instructions more in getppid."""
    load: Path
    """With one load more, in place of an instruction without effect."""


def offset_of(elf: bytes | bytearray, address: int) -> int:
    """Where an address is in an ELF file."""
    table, size, count = struct.unpack_from("<Q", elf, 32)[0], *struct.unpack_from("<HH", elf, 54)
    for number in range(count):
        kind, _, offset, virtual, _, length = struct.unpack_from("<IIQQQQ", elf, table + number * size)
        if kind == 1 and virtual <= address < virtual + length:
            return int(offset + address - virtual)
    raise AssertionError(f"{address:#x} is in no segment")


def planted(kernel: str, symbols: str, folder: Path) -> Planted:
    """Patch a kernel whose /proc/kallsyms is known; the images are put into a folder."""
    plain = uncompressed_kernel(resolve(kernel, cache=Cache(), progress=Progress()), Cache())
    assert plain is not None
    address = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(f" {FUNCTION}"))
    elf = bytearray(plain.read_bytes())
    at = offset_of(bytes(elf), address)
    assert elf[at : at + 4] == b"\xf3\x0f\x1e\xfa", "getppid begins with endbr64"
    made = Planted(*(folder / f"vmlinux-{name}" for name in Planted._fields))
    shutil.copyfile(plain, made.plain)
    for path, code in ((made.slow, b"\x90" * 4), (made.load, b"\x8a\x44\x24\x80")):  # nop; mov -0x80(%rsp),%al
        elf[at : at + 4] = code
        path.write_bytes(elf)
    return made


COUNTS = {"shared": b"\xf0\xff\x04\x25", "per-cpu": b"\x65\xff\x04\x25"}
"""lock incl of a variable; incl of a per-CPU variable, at their addresses."""
ROOM = 16
"""Bytes of padding that precede a function."""


CPU_NUMBER = ("pcpu_hot", 12)
"""Where 6.2 to 6.14 keep a CPU's number: a per-CPU variable, whose first field is the running task, and the offset in it."""
FIELDS = {"here": 1024, "there": 2176}
"""Offsets of fields of a task_struct that the call does not use otherwise, nor other fields of their lines."""
COUNTERS, LINE = "poweroff_cmd", 64
"""A variable of four lines that nothing reads here."""
HELPER = "__do_sys_gettid"
"""A function whose padding holds what has no room before FUNCTION."""
STRIDES = {"beside": 2, "apart": 6}
"""Powers of two: from one CPU's counter to the next one's, in one line and in lines of their own."""


def counting(kernel: str, symbols: str, variables: dict[str, str], folder: Path) -> dict[str, Path]:
    """Kernels in which getppid counts its calls: in a variable that is there and has no other use here, by `variables`'s keys (as
    in COUNTS), in the shared one twice, and in a counter of each CPU, by the keys of STRIDES; and in which it reads a field, by
    the keys of FIELDS. The code lies in the padding before the function."""
    plain = uncompressed_kernel(resolve(kernel, cache=Cache(), progress=Progress()), Cache())
    assert plain is not None
    known = {line.split()[2]: int(line.split()[0], 16) for line in symbols.splitlines()}
    original = without_calibration(plain.read_bytes(), known)
    at, other = (offset_of(original, known[name]) for name in (FUNCTION, HELPER))
    assert original[at - ROOM : at + 4] == b"\x90" * ROOM + b"\xf3\x0f\x1e\xfa", "padding, then endbr64"
    assert original[other - ROOM : other] == b"\x90" * ROOM
    made = {"plain": folder / "vmlinux-plain"}
    made["plain"].write_bytes(original)
    for name, variable in variables.items():
        code = COUNTS[name] + struct.pack("<i", signed(known[variable])) + b"\xeb\x0a"  # and on behind endbr64
        made[name] = write_patched(original, {at - ROOM: code}, at, folder / f"vmlinux-{name}")
    again = COUNTS["shared"] + struct.pack("<i", signed(known[variables["shared"]]))
    load_task = b"\x65\x48\x8b\x04\x25" + struct.pack("<i", known[CPU_NUMBER[0]])
    for name, first, second in (
        ("twice", again, again),
        *((name, load_task, b"\x8b\x80" + struct.pack("<i", offset)) for name, offset in FIELDS.items()),
    ):
        patches = {
            at - ROOM: first + jump(known[FUNCTION] - ROOM + len(first), known[HELPER] - ROOM),
            other - ROOM: second + jump(known[HELPER] - ROOM + len(second), known[FUNCTION] + 4),
        }
        made[name] = write_patched(original, patches, at, folder / f"vmlinux-{name}")
    counters = -(-known[COUNTERS] // LINE) * LINE
    for name, stride in STRIDES.items():
        # mov of the CPU's number, shl, jmp to the helper's padding; there incl of a counter, and back behind endbr64.
        first = b"\x65\x8b\x04\x25" + struct.pack("<i", known[CPU_NUMBER[0]] + CPU_NUMBER[1])
        first += b"\xc1\xe0" + bytes([stride]) + jump(known[FUNCTION] - JUMP, known[HELPER] - ROOM)
        second = b"\xff\x80" + struct.pack("<i", signed(counters))
        second += jump(known[HELPER] - ROOM + len(second), known[FUNCTION] + 4)
        patches = {at - ROOM: first, other - ROOM: second}
        made[name] = write_patched(original, patches, at, folder / f"vmlinux-{name}")
    return made


def without_calibration(original: bytes, known: dict[str, int]) -> bytes:
    """The kernel as if `noapictimer` were on its command line, where a test cannot give one: it boots in half of the time."""
    elf = bytearray(original)
    at = offset_of(original, known["disable_apic_timer"])
    assert elf[at : at + 4] == bytes(4)
    elf[at] = 1
    return bytes(elf)


JUMP = 5
"""Bytes of a jmp."""


def jump(here: int, target: int) -> bytes:
    """A jmp from one address to another."""
    return b"\xe9" + struct.pack("<i", target - here - JUMP)


def write_patched(original: bytes, patches: dict[int, bytes], at: int, path: Path) -> Path:
    """Write a kernel with code in paddings, by their offsets; the function at offset `at` begins with what precedes it."""
    elf = bytearray(original)
    for offset, code in patches.items():
        assert len(code) <= ROOM
        elf[offset : offset + len(code)] = code
    elf[at : at + 4] = b"\xeb\xee\x66\x90"  # jmp to the padding
    path.write_bytes(elf)
    return path


def signed(address: int) -> int:
    """An address of the kernel's image as the 32 bits that an instruction has for it."""
    return address - (1 << 64) if address >> 63 else address


def history(repository: Path, kernels: Planted) -> None:
    """Make a repository of COMMITS commits; in each `recipe` says how its kernel is made of the two."""
    plain, slow, _ = kernels
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    for recipe, subject in (
        (f"cp {plain} $KDUEL_BUILD/kernel # 1\n", "Begin"),
        (f"cp {plain} $KDUEL_BUILD/kernel # 2\n", "Change a comment"),
        (f"echo '{UNBUILDABLE}' >&2; exit 2\n", "Break the build"),
        (f"cp {plain} $KDUEL_BUILD/kernel # 4\n", "Repair the build"),
        (f"cp {slow} $KDUEL_BUILD/kernel # 5\n", CULPRIT),
        (f"cp {slow} $KDUEL_BUILD/kernel # 6\n", "Document it"),
        (f"head -c 9000000 {slow} >$KDUEL_BUILD/kernel\n", "Do not boot"),
        (f"cp {slow} $KDUEL_BUILD/kernel # 8\n", "Boot again"),
        (f"cp {slow} $KDUEL_BUILD/kernel # 9\n", "End"),
    ):
        commit(repository, recipe, subject)


def commit(repository: Path, recipe: str, subject: str) -> None:
    """Add a commit."""
    (repository / "recipe").write_text(recipe)
    environment = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "PATH": "/usr/bin:/bin", "HOME": "/"}
    environment |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}
    for words in (["add", "recipe"], ["commit", "-q", "-m", subject]):
        subprocess.run(["git", "-C", str(repository), *words], check=True, env=environment)
