"""A search that was stopped at any measurement goes on to the same answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kduel.core.errors import InputError
from kduel.core.progress import Progress
from kduel.run.bisect.history import History
from kduel.run.bisect.journal import FILE, Head, Journal, hold_directory
from kduel.run.bisect.noisy import Search
from kduel.run.bisect.terms import SearchSettings, Unmeasurable

NAMES = [f"{number:040x}" for number in range(13)]
HISTORY = History(NAMES[0], NAMES[-1], {name: [NAMES[number]] for number, name in enumerate(NAMES[1:])})
HEAD = Head(good=NAMES[0], bad=NAMES[-1], commits="x", subject="m", seed=1)


class Killed(BaseException):
    pass


class Measured:
    """Noise that depends on how many measurements there were, as on a real machine it does on the time."""

    def __init__(self, directory: Path, stop: int) -> None:
        self.directory, self.stop = directory, stop

    def __call__(self, commit: str) -> float:
        done = len((self.directory / FILE).read_bytes().splitlines()) - 1
        if done == self.stop:
            raise Killed
        place = NAMES.index(commit)
        if place == 6:
            raise Unmeasurable("does not build")
        return 100 + 3 * (place >= 8) + float(np.random.default_rng(done).normal())


def carry_out(directory: Path, stop: int) -> object:
    journal = Journal(directory, HEAD, Measured(directory, stop), Progress())
    return Search(HISTORY, "m", journal, SearchSettings(), lambda _: None).run()


@pytest.mark.slow
def test_stopped_at_every_measurement_it_comes_to_the_same_answer(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    expected = carry_out(whole, -1)
    count = len((whole / FILE).read_bytes().splitlines()) - 1
    parts = tmp_path / "parts"
    parts.mkdir()
    for stop in range(count):
        with pytest.raises(Killed):
            carry_out(parts, stop)
        if stop % 3 == 0:  # killed in the middle of a line
            with (parts / FILE).open("ab") as stream:
                stream.write(b'{"commit":"0000')
    assert carry_out(parts, -1) == expected
    assert (parts / FILE).read_bytes() == (whole / FILE).read_bytes()


def test_a_skipped_commit_is_told_when_it_is_measured_and_not_again(tmp_path: Path) -> None:
    told: list[str] = []

    class Listening(Progress):
        def info(self, text: str) -> None:
            told.append(text)

    def measure(commit: str) -> float:
        raise Unmeasurable("does not build: a.c:1: error: no")

    for _ in range(2):
        with pytest.raises(Unmeasurable):
            Journal(tmp_path, HEAD, measure, Listening())(NAMES[3], 1)
    assert [text for text in told if "is skipped:" in text] == [
        f"{NAMES[3][:12]} is skipped: does not build: a.c:1: error: no"
    ]


def test_the_state_of_another_search_or_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        carry_out(tmp_path, 2)
    other = Head(good=NAMES[1], bad=NAMES[-1], commits="x", subject="m", seed=1)
    with pytest.raises(InputError, match="another search"):
        Journal(tmp_path, other, Measured(tmp_path, 9), Progress())
    lines = (tmp_path / FILE).read_bytes().splitlines(keepends=True)
    (tmp_path / FILE).write_bytes(lines[0].replace(b'"schema":1', b'"schema":9') + lines[1])
    with pytest.raises(InputError, match="later KDuel"):
        Journal(tmp_path, HEAD, Measured(tmp_path, 9), Progress())
    (tmp_path / FILE).write_bytes(lines[0] + b"rubbish\n")
    with pytest.raises(InputError, match="line 2, is damaged"):
        Journal(tmp_path, HEAD, Measured(tmp_path, 9), Progress())
    (tmp_path / FILE).write_bytes(lines[0] + b'{"commit":"f","block":7,"value":1}\n')
    with pytest.raises(InputError, match="another commit"):
        carry_out(tmp_path, 9)
    Journal(tmp_path, other, Measured(tmp_path, 9), Progress(), restart=True)


def test_a_directory_is_held_by_one(tmp_path: Path) -> None:
    with (
        hold_directory(tmp_path / "new"),
        pytest.raises(InputError, match="another kduel bisect"),
        hold_directory(tmp_path / "new"),
    ):
        pass
