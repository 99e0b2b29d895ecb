"""What is compared of two trials that must be the same, and which of three stands alone."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kduel.core.cache import Cache
from kduel.machines import Outcome, Trial
from kduel.machines.guests.proofs import find_odd_one, fingerprint, first_difference, trial_contents
from kduel.machines.icount import IcountMachine

CONSOLE = "     0.101 [    0.5] Linux\n     0.102 kduel: script ended with 0\n     0.103 off\n"


def trial(where: Path, stdout: str = "{}\n", console: str = CONSOLE) -> Path:
    (where / "01-pipe").mkdir(parents=True)
    (where / "01-pipe" / "stdout").write_text(stdout)
    (where / "console.log").write_text(console)
    (where / "guest.sh").write_text("written by the host")
    return where


def test_equal_trials_are_equal_whatever_the_hosts_clock_read(tmp_path: Path) -> None:
    one = trial_contents(trial(tmp_path / "a"))
    late = CONSOLE.replace("     0.1", "    17.2").replace(" off", " on the way off")
    other = trial_contents(trial(tmp_path / "b", console=late))
    assert one == other and set(one) == {"01-pipe/stdout", "console.log"}
    assert first_difference(one, other) == ""


@pytest.mark.parametrize(
    ("stdout", "console", "difference"),
    [
        ("1\n23\n3\n", CONSOLE, "01-pipe/stdout: line 2 is b'22' and b'23'"),
        ("1\n22\n3\nx", CONSOLE, "01-pipe/stdout: one is 7 bytes long, the other 8"),
        ("1\n22\n3\n", CONSOLE.replace("0.5]", "0.6]"), "what they print: line 1"),
    ],
)
def test_a_difference_is_named(stdout: str, console: str, difference: str, tmp_path: Path) -> None:
    one = trial_contents(trial(tmp_path / "a", "1\n22\n3\n"))
    assert difference in first_difference(one, trial_contents(trial(tmp_path / "b", stdout, console)))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    one, other = trial(tmp_path / "a"), trial(tmp_path / "b")
    (other / "01-pipe" / "more").write_text("")
    assert first_difference(trial_contents(one), trial_contents(other)) == "01-pipe/more: only one of them has it"


def test_of_three_the_one_that_stands_alone_is_found() -> None:
    a, b, c = (fingerprint({"stdout": data}) for data in (b"1", b"2", b"3"))
    assert [find_odd_one(three) for three in ((b, a, a), (a, b, a), (a, a, b))] == [0, 1, 2]
    assert find_odd_one((a, b, c)) is None and find_odd_one((a, a, a)) is None


@pytest.mark.parametrize(
    ("boots", "void", "told"),
    [
        (("1", "1"), "", "a second boot gave the same"),
        (("1", "2", "1"), "", "two of three boots are the same; the second one differs: stdout"),
        (
            ("1", "2", "3"),
            "not-deterministic",
            "Three equal boots gave three results. The first two differ in stdout",
        ),
        (("1", "hang", "1"), "not-deterministic", "one is good, the other void by hang"),
    ],
)
def test_a_trial_that_its_repetitions_contradict_is_void_and_the_run_goes_on(
    boots: tuple[str, ...], void: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, numbers = object.__new__(IcountMachine), count()
    machine.cache = Cache(tmp_path / "cache")
    into = tmp_path / "trial"
    into.mkdir()

    def boot_once(made: Trial) -> Outcome:
        left = boots[0 if made.into == into else int(made.into.name) - 1]
        next(numbers)
        if left == "hang":
            return Outcome(void="hang", message="It froze.")
        (made.into / "stdout").write_text(left)
        (made.into / "console.log").write_text(CONSOLE)
        return Outcome()

    monkeypatch.setattr(machine, "boot_once", boot_once)
    monkeypatch.setattr(machine, "key", lambda _: "key")
    arm: Any = SimpleNamespace()
    outcome = machine.boot(Trial(id="1", arm=arm, script="", deadline=60, into=into))
    assert outcome.void == void and told in (outcome.message if void else outcome.facts["proof"])
    assert next(numbers) == (2 if "hang" in boots else len(boots))
