"""Trials of a deterministic machine, proved by repetition: a second boot must leave the same files, bit for bit."""

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
from kduel.guest.repetition import Fingerprint, find_odd_one, fingerprint, first_difference, trial_contents
from kduel.machines import Outcome, Trial

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
    """The outcome with the words on its proof."""
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
