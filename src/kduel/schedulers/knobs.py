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


def set_knobs(knobs: Mapping[str, str | int]) -> str:
    """Shell that keeps each knob's value in $sched_dir/knobs, sets it, and reads it back; ends the shell where it fails."""
    lines = []
    for key, value in knobs.items():
        path, wanted = shlex.quote(knob_path(key)), shlex.quote(str(value))
        call = "sched_feature" if key == FEATURES else "sched_knob"
        for word in str(value).split() if key == FEATURES else [wanted]:
            lines.append(f"{call} {path} {word}\n")
    return "".join(lines)
