"""What is compared of two trials that must be the same, and which of three stands alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from kduel.guest.repetition import find_odd_one, fingerprint, first_difference, trial_contents

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
