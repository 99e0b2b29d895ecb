"""Weight for QEMU against other work on the host: about 18 times that of another program, by the best means that the host
permits. The largest weight (88 times, and so for each session) would stop everything else on the host for minutes.

- nice -13 for each thread: against other programs of the same scheduling group.
- The group's nice -13 (`/proc/PID/autogroup`, sched(7)): QEMU runs in a session of its own, so that nobody else gets it.
- A control group with as much weight, where the kernel or the system's manager has put sessions into groups of their
  own, so that autogroups do not apply (Documentation/admin-guide/cgroup-v2.rst).

Real-time policies are left out: a vCPU that spins would take a CPU from the host's own threads for good. What is given
ends with QEMU; an empty control group is removed.
"""

import contextlib
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Collection, Iterator
from pathlib import Path

from kduel.core.errors import HostError, InputError
from kduel.core.supervised_process import run_text

NICE = -13
"""A weight of 18,154, where nice 0 has 1,024 (sched_prio_to_weight in the kernel's kernel/sched/core.c)."""
NICE_OF_MONITOR = -20
WEIGHT = 1_800
"""Of a control group; others have 100."""
GROUP = "kduel-"
CHOICE = "KDUEL_PRIORITY"
"""The environment variable that decides for guests of all studies."""


def is_wanted() -> bool:
    """False where the environment says `normal`. Raises InputError where it says neither that nor `high`."""
    choice = os.environ.get(CHOICE, "high")
    if choice not in ("high", "normal"):
        raise InputError(f"{CHOICE} is {choice!r}", "Set it to high or normal, or unset it.")
    return choice == "high"


@contextlib.contextmanager
def raise_priority(process: int, root: Path = Path("/")) -> Iterator[list[str]]:
    """Give a process that leads a session weight against all others; gives what was got, in words, [] for nothing."""
    got: list[str] = []
    if not is_wanted():
        yield got
        return
    nice = _nice(process, root)
    if nice is not None:
        got.append(f"nice {nice}")
    with contextlib.ExitStack() as held:
        if _autogroup(process, root):
            got.append(f"autogroup nice {NICE}")
        elif held.enter_context(_group(process, root)):
            got.append(f"cgroup weight {WEIGHT}")
        yield got


@contextlib.contextmanager
def raise_own_thread() -> Iterator[None]:
    """Let this thread run before QEMU's, as far as this user may: by a real-time policy that nothing it starts inherits, as its
    session's group has little weight beside that of a guest that keeps all CPUs busy; else by its nice value."""
    thread = threading.get_native_id()
    before, policy = os.getpriority(os.PRIO_PROCESS, thread), os.sched_getscheduler(thread)
    try:
        os.sched_setscheduler(thread, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except OSError:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, min(before, NICE))
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # of a user who got nothing
            os.sched_setscheduler(thread, policy, os.sched_param(0))
            os.setpriority(os.PRIO_PROCESS, thread, before)


def find_obtainable() -> list[str]:
    """Weight that `raise_priority` would get here, tried on a process that sleeps."""
    command = [sys.executable, "-ISc", "import signal; signal.pause()"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True) as sleeper:
        try:
            with raise_priority(sleeper.pid) as got:
                return got
        finally:
            sleeper.kill()


def prefer_monitor(process: int, vcpus: Collection[int]) -> None:
    """Let QEMU's own threads, which obey its monitor and sleep otherwise, run before its vCPUs, as far as this user may."""
    for thread in _threads(process, Path("/")):
        if thread not in vcpus:
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, thread, NICE_OF_MONITOR)


def keep_off(process: int, vcpus: Collection[int], pinned: Collection[int]) -> None:
    """Move QEMU's other threads off the cores of the CPUs that its vCPUs are pinned to, where others are left."""
    taken = {sibling for cpu in pinned for sibling in siblings(cpu)}
    left = os.sched_getaffinity(0) - taken
    if not left or not pinned:
        return
    for thread in _threads(process, Path("/")):
        if thread not in vcpus:
            with contextlib.suppress(ProcessLookupError):
                set_affinity(thread, left)


def set_affinity(thread: int, cpus: Collection[int]) -> None:
    """Let a thread of QEMU run on these CPUs alone; as the thread's user, where root has no CAP_SYS_NICE (a container).
    Raises ProcessLookupError where it has ended, HostError."""
    try:
        os.sched_setaffinity(thread, cpus)
    except PermissionError:
        owner = _owner(thread)
        words = ["taskset", "--pid", "--cpu-list", ",".join(map(str, sorted(cpus))), str(thread)]
        done = run_text(words, user=owner, group=owner, extra_groups=[])
        if done.returncode:
            raise HostError(
                f"QEMU cannot be pinned to CPUs {words[3]}: {done.stderr.strip()}",
                "Give the container or service that KDuel runs in CAP_SYS_NICE (podman, docker: --cap-add SYS_NICE).",
            ) from None


def _owner(thread: int) -> int:
    """The user that a thread runs as. Raises ProcessLookupError."""
    try:
        lines = Path(f"/proc/{thread}/status").read_text("ascii", errors="replace").splitlines()
    except OSError as error:
        raise ProcessLookupError(f"thread {thread} has ended") from error
    return next(int(line.split()[2]) for line in lines if line.startswith("Uid:"))


def siblings(cpu: int) -> set[int]:
    """The hardware threads of a CPU's core, itself included."""
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list")
    found = {cpu}
    with contextlib.suppress(OSError, ValueError):
        for part in path.read_text("ascii").strip().split(","):
            first, _, last = part.partition("-")
            found.update(range(int(first), int(last or first) + 1))
    return found


def _threads(process: int, root: Path) -> list[int]:
    try:
        return [int(name) for name in os.listdir(root / f"proc/{process}/task")]  # noqa: PTH208 - names only
    except OSError:
        return []


def _nice(process: int, root: Path) -> int | None:
    """The nice value that all threads got: NICE, or the nearest to it that this user may give."""
    allowed = 20 - resource.getrlimit(resource.RLIMIT_NICE)[0]
    for value in dict.fromkeys((NICE, max(NICE, allowed))):
        if value >= os.getpriority(os.PRIO_PROCESS, 0):
            continue
        try:
            for thread in _threads(process, root):
                with contextlib.suppress(ProcessLookupError):
                    os.setpriority(os.PRIO_PROCESS, thread, value)
        except OSError:
            continue
        return value
    return None


def _autogroup(process: int, root: Path) -> bool:
    """True if the process's group has the nice value, and groups of sessions decide who runs."""
    enabled = root / "proc/sys/kernel/sched_autogroup_enabled"
    group = root / f"proc/{process}/autogroup"
    try:
        if enabled.read_text("ascii").strip() != "1" or _own_group(process, root):
            return False
        group.write_text(f"{NICE}\n", "ascii")
        return group.read_text("ascii").rstrip().endswith(f"nice {NICE}")
    except OSError:
        return False


def _own_group(process: int, root: Path) -> bool:
    """True if the process is in a control group with a weight of its own, other than the root: then autogroups rest."""
    for line in (root / f"proc/{process}/cgroup").read_text("utf-8", errors="replace").splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0" and path != "/" and (root / f"sys/fs/cgroup{path}/cpu.weight").is_file():
            return True
        if "cpu" in controllers.split(",") and path != "/":
            return True
    return False


@contextlib.contextmanager
def _group(process: int, root: Path) -> Iterator[bool]:
    """A control group (version 2) at the top with the largest weight, for as long as this lasts."""
    top = root / "sys/fs/cgroup"
    _sweep(top)
    group = top / f"{GROUP}{process}"
    got = False
    with contextlib.suppress(OSError):
        if (top / "cgroup.controllers").is_file():
            group.mkdir()
            (group / "cpu.weight").write_text(f"{WEIGHT}\n", "ascii")
            (group / "cgroup.procs").write_text(f"{process}\n", "ascii")
            got = True
    try:
        yield got
    finally:
        with contextlib.suppress(OSError):
            group.rmdir()


def _sweep(top: Path) -> None:
    """Remove the empty groups of runners that were killed. One that has processes cannot be removed."""
    for left in top.glob(f"{GROUP}[0-9]*"):
        with contextlib.suppress(OSError):
            left.rmdir()
