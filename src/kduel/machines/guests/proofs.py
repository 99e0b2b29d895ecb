"""Trials of a deterministic machine, proved by repetition: a second boot must leave the same files, bit for bit."""

import hashlib
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import structs

from kduel.core.cache import Cache
from kduel.core.errors import HostError
from kduel.core.temporary import as_temporary_error, temporary_directory
from kduel.core.text import plural
from kduel.guest import boots
from kduel.guest.console import read_console
from kduel.guest.envelope import OWN
from kduel.machines import Outcome, Trial

CONSOLE = "console.log"
NOT_COMPARED = OWN
"""Written by the host. Of the console what the guest printed is compared."""
Fingerprint = dict[str, str]
"""SHA-256 by file."""

NOT_DETERMINISTIC = "not-deterministic"
"""Code of a void trial that its repetitions contradict."""


class Proofs:
    """Boots a trial as often as it takes to prove it; `key` is a hash of all that determines it."""

    def __init__(self, cache: Cache, key: str, boot_once: Callable[[Trial], Outcome]) -> None:
        self.cache, self.key, self.boot_once = cache, key, boot_once

    def prove(self, trial: Trial) -> Outcome:
        """One boot, proved by a repetition, now or earlier with this cache. Where both differ, a third one decides
        which stands alone; where all three differ, the trial is void. Raises HostError."""
        known = self.cache.path("proofs", self.key) / "files.json"
        with temporary_directory() as place:
            twins = [trial, *(structs.replace(trial, into=place / number) for number in ("2", "3"))]
            with as_temporary_error(place):
                for twin in twins[1:]:
                    twin.into.mkdir()
            if self.cache.has("proofs", self.key):
                outcome = self.boot_once(trial)
                earlier = msgspec.json.decode(known.read_bytes(), type=dict[str, str])
                if outcome.void or fingerprint(trial_contents(trial.into)) == earlier:
                    return add_proof(
                        outcome, f"the same {plural(len(earlier), 'file')} as in an earlier boot, bit for bit"
                    )
                shutil.rmtree(known.parent, ignore_errors=True)
                second = self.boot_once(twins[1])
            else:
                with boots.pool(2) as threads:
                    outcome, second = threads.map(self.boot_once, twins[:2])
            if outcome.void:
                return outcome
            check_not_killed(second.facts.get("killed_by", ""), "the repetition of a trial")
            if second.void:
                return void_not_deterministic(
                    outcome, f"Of two equal boots one is good, the other void by {second.void}: {second.message}"
                )
            left = [trial_contents(twin.into) for twin in twins[:2]]
            if left[0] == left[1]:
                self.keep(fingerprint(left[0]))
                return add_proof(outcome, f"a second boot gave the same {plural(len(left[0]), 'file')}, bit for bit")
            return self.decide(twins, left, outcome)

    def decide(self, twins: Sequence[Trial], left: list[dict[str, bytes]], outcome: Outcome) -> Outcome:
        """The outcome by a third boot, which tells which of two that differ stands alone; void where all three differ."""
        third = self.boot_once(twins[2])
        left.append(trial_contents(twins[2].into) if not third.void else {})
        prints = [fingerprint(one) for one in left]
        difference = first_difference(left[0], left[1])
        odd = find_odd_one(prints)
        if odd is None:
            return void_not_deterministic(
                outcome, f"Three equal boots gave three results. The first two differ in {difference}"
            )
        if odd == 0:
            for path in twins[1].into.iterdir():
                target = twins[0].into / path.name
                if target.is_dir():
                    shutil.rmtree(target)
                shutil.move(path, target)
        self.keep(prints[1 if odd == 0 else 0])
        outcome.facts["odd_boot"] = difference
        which = ("first", "second")[odd] if odd < 2 else "third"
        return add_proof(outcome, f"two of three boots are the same; the {which} one differs: {difference}")

    def keep(self, files: Fingerprint) -> None:
        """Remember what an exact repetition leaves."""

        def build(into: Path) -> None:
            (into / "files.json").write_bytes(msgspec.json.encode(files))

        self.cache.entry("proofs", self.key, build)


def void_not_deterministic(outcome: Outcome, why: str) -> Outcome:
    """The outcome of a boot that its repetitions contradict: nothing of it may be used."""
    return structs.replace(outcome, void=NOT_DETERMINISTIC, message=why)


def add_proof(outcome: Outcome, how: str) -> Outcome:
    if not outcome.void:
        outcome.facts["proof"] = how
    return outcome


def check_not_killed(signal: str, what: str) -> None:
    """Raises HostError where a signal from outside ended QEMU: that says nothing of the kernel."""
    if signal:
        raise HostError(
            f"QEMU was ended by {signal} while it counted {what}",
            "Find out who sent it: the host's kernel does where memory runs out (see dmesg). The same command continues.",
        )


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
