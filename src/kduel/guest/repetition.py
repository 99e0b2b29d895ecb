"""Comparison of a trial's repetitions: what is compared, and which of three stands alone."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from kduel.guest.console import read_console
from kduel.guest.envelope import OWN

CONSOLE = "console.log"
NOT_COMPARED = OWN
"""Written by the host. Of the console what the guest printed is compared."""

Fingerprint = dict[str, str]
"""SHA-256 by file."""


def trial_contents(trial: Path) -> dict[str, bytes]:
    """Output of a trial, by file: every byte that the guest wrote, and its console up to the script's end."""
    found = {str(path.relative_to(trial)): path for path in trial.rglob("*") if path.is_file()}
    left = {name: path.read_bytes() for name, path in sorted(found.items()) if name not in NOT_COMPARED}
    console = read_console(trial / CONSOLE)
    # From its end on the guest waits for the host to take its results.
    ends = (number for number, line in enumerate(console) if "kduel: script ended" in line)
    return left | {CONSOLE: "\n".join(console[: next(ends, len(console))]).encode()}


def fingerprint(left: dict[str, bytes]) -> Fingerprint:
    return {name: hashlib.sha256(data).hexdigest() for name, data in left.items()}


def first_difference(one: dict[str, bytes], other: dict[str, bytes]) -> str:
    """The first file that is not the same in both, and the first line of it; empty where all are."""
    name = min((name for name in one.keys() | other.keys() if one.get(name) != other.get(name)), default="")
    what = "what they print" if name == CONSOLE else name
    return f"{what}: {_line(one.get(name), other.get(name))}" if name else ""


def find_odd_one(prints: Sequence[Fingerprint]) -> int | None:
    """Index of the one of three that stands alone, the other two being the same; None where all three differ, or none does."""
    first, second, third = prints
    same = first == second, first == third, second == third
    return {(True, False, False): 2, (False, True, False): 1, (False, False, True): 0}.get(same)


def _line(one: bytes | None, other: bytes | None) -> str:
    if one is None or other is None:
        return "only one of them has it"
    for number, (a, b) in enumerate(zip(one.splitlines(), other.splitlines(), strict=False), 1):
        if a != b:
            return f"line {number} is {a[:120]!r} and {b[:120]!r}"
    return f"one is {len(one)} bytes long, the other {len(other)}"
