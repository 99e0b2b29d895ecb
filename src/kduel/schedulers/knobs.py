"""Sysctls, files of sysfs and the scheduler's debug knobs: set, read back, and put back as they were, by shell in the guest.

A key is a sysctl (`kernel.sched_autogroup_enabled`), a path below /sys (`/sys/kernel/mm/lru_gen/enabled`), or
`debug.sched.NAME`, a file of /sys/kernel/debug/sched, such as `debug.sched.base_slice_ns`; `debug.sched.features` takes
words such as "NO_RUN_TO_PARITY NEXT_BUDDY". Where the kernel prints all choices, the one in brackets is the value.
"""

import re
import shlex
from collections.abc import Mapping

from kduel.core.errors import InputError

DEBUG = "debug.sched."
FEATURES = "debug.sched.features"


FIRST, LAST = (0, 0), (999, 0)
_OF_CFS = ("latency_ns", "min_granularity_ns", "wakeup_granularity_ns")
RELEASES: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {
    "debug.sched.base_slice_ns": ((6, 6), LAST),
    **dict.fromkeys((DEBUG + name for name in _OF_CFS), ((5, 13), (6, 5))),
    **dict.fromkeys((f"kernel.sched_{name}" for name in _OF_CFS), (FIRST, (5, 12))),
}
"""The first and the last kernel that has a knob, of those that came or went."""
NEVER = {"kernel.sched_base_slice_ns": "debug.sched.base_slice_ns"}
"""Names that no kernel has, with the one that is meant."""


def knob_path(key: str) -> str:
    """The file that a knob is. Raises InputError for what cannot be a knob's name."""
    if not re.fullmatch(r"(/sys/)?[A-Za-z0-9_][A-Za-z0-9_.:/-]*", key) or ".." in key:
        raise InputError(
            f"{key!r} is neither a sysctl nor a file below /sys",
            "Write a sysctl as sysctl does, such as kernel.sched_autogroup_enabled, and a file of sysfs by its path, such as "
            "/sys/kernel/mm/lru_gen/enabled.",
        )
    if key.startswith("/sys/"):
        return key
    if key.startswith(DEBUG):
        return f"/sys/kernel/debug/sched/{key.removeprefix(DEBUG)}"
    return f"/proc/sys/{sysctl_file(key)}"


def sysctl_file(key: str) -> str:
    """A sysctl's file below /proc/sys: dots part names as in sysctl(8), unless a slash comes first."""
    slash_first = next((sign for sign in key if sign in "./"), "/") == "/"
    return key if slash_first else key.translate(str.maketrans("./", "/."))


def check_knobs(knobs: Mapping[str, str | int]) -> None:
    """Raises InputError for a knob or a value that can never be set."""
    for key, value in knobs.items():
        knob_path(key)
        if key == FEATURES and not all(re.fullmatch(r"[A-Z][A-Z0-9_]*", word) for word in str(value).split()):
            raise InputError(
                f"{key} = {value!r} names no scheduler features",
                'Write them as the kernel does: "NO_RUN_TO_PARITY NEXT_BUDDY".',
            )
        if "\n" in str(value) or "\0" in str(value):
            raise InputError(f"the sysctl {key} has a value of several lines", "Give one line.")


def check_release(kernel: str, knobs: Mapping[str, str | int]) -> None:
    """Raises InputError for a knob that Debian's kernel of a written version is known not to have. Others may be patched."""
    found = re.match(r"debian(?:-source)?:(\d+)\.(\d+)", kernel)
    if found is None:
        return
    for key in knobs:
        name = key.replace("/", ".")
        own = NEVER.get(name, name)
        first, last = RELEASES.get(own, (FIRST, LAST))
        lacks = f"the kernel {found[1]}.{found[2]} has no {key}"
        if own != name:
            raise InputError(lacks, f"Give {own}, which {releases_text(first, last)} have.")
        if not first <= (int(found[1]), int(found[2])) <= last:
            raise InputError(
                f"{lacks} ({releases_text(first, last)} have it)",
                "Choose another kernel, or leave it out: docs/schedulers.md lists knobs by kernel.",
            )


def releases_text(first: tuple[int, int], last: tuple[int, int]) -> str:
    """`6.6 and later`, `5.13 to 6.5`, `those to 5.12`."""
    since, until = (".".join(map(str, version)) for version in (first, last))
    if last == LAST:
        return f"{since} and later"
    return f"those to {until}" if first == FIRST else f"{since} to {until}"


def set_knobs(knobs: Mapping[str, str | int]) -> str:
    """Shell that keeps each knob's value in $sched_dir/knobs, sets it, and reads it back; ends the shell where it fails."""
    lines = []
    for key, value in knobs.items():
        path, wanted = shlex.quote(knob_path(key)), shlex.quote(str(value))
        call = "sched_feature" if key == FEATURES else "sched_knob"
        for word in str(value).split() if key == FEATURES else [wanted]:
            lines.append(f"{call} {path} {word}\n")
    return "".join(lines)
