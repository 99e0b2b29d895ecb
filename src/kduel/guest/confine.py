"""QEMU confined: a user who owns nothing, a filter of system calls, and no file but those that it is handed.

What a guest can do to its host, it does by QEMU. So QEMU may not gain rights, start programs or change its own
scheduling; where KDuel is root, it runs as a user of its own, another one for each boot; and whatever it reads or
writes it inherits as open files, so that no directory of the host need be open to that user.
"""

import contextlib
import grp
import os
import secrets
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Protocol

from kduel.core.errors import HostError
from kduel.core.host_packages import install_command
from kduel.core.temporary import memory_file

SANDBOX = ("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny")
"""QEMU's arguments: the system calls that it does without."""
USERS = range(1_801_715_712, 1_801_715_712 + (1 << 16))
"""User ids that nobody has: above all that distributions, directories and containers hand out."""
NOBODY = 65534
"""Ids for a user namespace that does not have those."""
KVM = Path("/dev/kvm")
CPUINFO = Path("/proc/cpuinfo")
PASSED = ("PATH", "LD_LIBRARY_PATH", "QEMU_MODULE_DIR")
"""Variables that QEMU gets of ours: where programs, libraries and its own modules are. Others may be secrets."""


def environment(preload: Path | None = None) -> dict[str, str]:
    """QEMU's whole environment. `preload` is a shared object that it loads before its own."""
    own = {"LC_ALL": "C"} | ({} if preload is None else {"LD_PRELOAD": str(preload)})
    return {name: os.environ[name] for name in PASSED if name in os.environ} | own


def ask_qemu(binary: str, *words: str) -> str:
    """Output of QEMU about itself. Raises HostError where it cannot be run."""
    try:
        return subprocess.run([binary, *words], capture_output=True, text=True, check=True, env=environment()).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise HostError(f"{binary} cannot be run: {error}", f"Install QEMU: {install_command(binary)}.") from error


def user_for_guest() -> int | None:
    """The user and group id that QEMU is to run as; None, KDuel's own, where KDuel is not root."""
    if os.geteuid() != 0:
        return None
    chosen = secrets.choice(USERS)
    return chosen if _is_mapped(chosen) else NOBODY


def _is_mapped(user: int) -> bool:
    """True if this user namespace has the id: /proc/self/uid_map says `first outside count`, a range a line."""
    ranges = (map(int, line.split()) for line in Path("/proc/self/uid_map").read_text().splitlines())
    return any(first <= user < first + count for first, _, count in ranges)


def prefix(user: int | None, accelerator: str) -> list[str]:
    """The command that starts QEMU confined, and lets it die with us however we die. Raises HostError."""
    if shutil.which("setpriv") is None:
        raise HostError(
            "setpriv is not installed; it drops QEMU's privileges", f"Install it: {install_command('setpriv')}."
        )
    lower: list[str] = []
    if user is not None:
        group = kvm_group() if accelerator == "kvm" else None
        groups = ["--clear-groups"] if group is None else ["--groups", str(group)]
        lower = ["--reuid", str(user), "--regid", str(user), *groups]
    return ["setpriv", *lower, "--no-new-privs", "--pdeathsig", "KILL", "--", "sh", "-c", WITH_US, str(os.getpid())]


WITH_US = '[ "$PPID" = "$0" ] && exec "$@"'
"""Starts nothing where we died before the kernel knew that QEMU is to die with us."""


def check_kvm() -> None:
    """Raises HostError where QEMU, as this user starts it, may not open /dev/kvm, with what opens it, if that is of use."""
    if os.geteuid() == 0:
        kvm_group()
    elif not os.access(KVM, os.R_OK | os.W_OK):
        raise closed_error("this user may not open")


def kvm_group() -> int | None:
    """The group that opens /dev/kvm; None where all may. Raises HostError where only root may, as QEMU is not."""
    facts = KVM.stat()
    everybody = 0o006
    if facts.st_mode & everybody == everybody:
        return None
    if not has_group(facts):
        raise closed_error("only root may open")
    return facts.st_gid


def has_group(facts: os.stat_result) -> bool:
    """True if a group that is not root's may open the device."""
    group = 0o060
    return facts.st_mode & group == group and facts.st_gid != 0


def closed_error(who: str) -> HostError:
    """Error about a /dev/kvm that `who` tells to be closed. Without a CPU's virtualisation nobody is sent to open it."""
    facts = KVM.stat()
    closed = f"{who} {KVM} (mode {stat.S_IMODE(facts.st_mode):04o}, group {facts.st_gid})"
    flags = {flag for line in CPUINFO.read_text().splitlines() if line.startswith("flags") for flag in line.split()}
    if not flags & {"vmx", "svm"}:
        return HostError(
            f"{closed}, and the CPU has neither vmx nor svm",
            "Do not change its mode: KVM without them does not boot the kernels of distributions.",
        )
    if has_group(facts):
        return HostError(
            closed, f"Add the user to its group: usermod -aG {group_name(facts.st_gid)} USER; then log in again."
        )
    return HostError(
        closed if os.geteuid() else f"{closed}, and QEMU does not run as root",
        f"Let a group have it: groupadd -f kvm; chgrp kvm {KVM}; chmod 660 {KVM}. A run then tests it with a guest.",
    )


def group_name(number: int) -> str:
    """Name of a group, or its number where it has none."""
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


class Open(Protocol):
    def fileno(self) -> int: ...


class Handles:
    """Open files that QEMU inherits. Their paths there are /proc/self/fd/N; they are closed with `held`."""

    def __init__(self, user: int | None, held: contextlib.ExitStack) -> None:
        self.user, self.held = user, held
        self.numbers: list[int] = []
        self.words: list[str] = []
        """Arguments of QEMU's that stand before all others."""

    def reading(self, path: Path) -> Path:
        """Path by which QEMU is to read a file. Raises HostError where it cannot be opened."""
        try:
            source = self.held.enter_context(path.open("rb"))
        except OSError as error:
            raise HostError(
                f"{path}, which the guest boots from, cannot be opened: {error.strerror}",
                "Was it, or the cache, removed during the run? Run again: what is missing is made again.",
            ) from error
        if self.user is None or os.fstat(source.fileno()).st_mode & stat.S_IROTH:
            return self._known_as(source)
        # Opening it again, by the name that QEMU is given, takes the file's own permission.
        copy = self.held.enter_context(memory_file())
        shutil.copyfileobj(source, copy, 1 << 20)
        copy.flush()
        return self._known_as(copy)

    def writing(self, path: Path) -> Path:
        """Path by which QEMU is to write a new file, which is at `path` only when all handles are closed."""
        copy = self.held.enter_context(memory_file())
        self.held.callback(_bring_out, copy, path)
        return self._known_as(copy)

    def disk(self, path: Path) -> Path:
        """Path of a disk for QEMU, for reading and, where this process may, for writing. Raises HostError."""
        ways = [os.O_RDONLY, *([os.O_RDWR] if os.access(path, os.W_OK) else [])]
        numbers = []
        try:
            for way in ways:
                numbers.append(os.open(path, way | os.O_CLOEXEC))
                self.held.callback(os.close, numbers[-1])
        except OSError as error:
            raise HostError(
                f"the disk {path} cannot be opened: {error.strerror}", "Correct the board's file."
            ) from error
        self.numbers += numbers
        # Of such a set QEMU takes the descriptor that fits, without asking for the file's own permission.
        for number in numbers:
            self.words += ["-add-fd", f"fd={number},set={numbers[0]}"]
        return Path(f"/dev/fdset/{numbers[0]}")

    def hand_over(self, file: Open) -> Path:
        """Path by which QEMU is to use a pipe or a nameless file, which becomes its user's."""
        if self.user is not None:
            os.fchown(file.fileno(), self.user, -1)
        return self._known_as(file)

    def socket(self, end: Open) -> int:
        """The descriptor number of an end of a socket in QEMU."""
        self.numbers.append(end.fileno())
        return end.fileno()

    def _known_as(self, file: Open) -> Path:
        self.numbers.append(file.fileno())
        return Path(f"/proc/self/fd/{file.fileno()}")


@contextlib.contextmanager
def nameless(data: bytes) -> Iterator[Path]:
    """A file in memory with that content, by a path that is valid in this process."""
    with memory_file() as stream:
        stream.write(data)
        stream.flush()
        yield Path(f"/proc/self/fd/{stream.fileno()}")


def _bring_out(source: BinaryIO, path: Path) -> None:
    source.seek(0)
    with path.open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
