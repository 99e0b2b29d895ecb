"""`kduel bisect --measure` on real repositories, as a user calls it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import ForkedKduel

from kduel.core.errors import InputError
from kduel.run.bisect import command
from kduel.run.bisect.command import parse_number
from kduel.run.bisect.history import read_history
from kduel.run.bisect.terms import Unmeasurable

SOURCE = Path(__file__).parents[3] / "src"
PERSON = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(repository: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(repository), *words], check=True, env=os.environ | PERSON, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(repository: Path, number: int, value: str) -> None:
    (repository / "value").write_text(value)
    folder = repository / ("docs" if number % 2 else "lib")
    folder.mkdir(exist_ok=True)
    (folder / "file").write_text(str(number))
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", f"Commit {number}")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight commits c0 ... c7: the value is 100, from c4 on 105; c2 has none."""
    place = tmp_path_factory.mktemp("git") / "program"
    subprocess.run(["git", "init", "-q", "-b", "main", str(place)], check=True)
    for n in range(8):
        commit(place, n, "" if n == 2 else "100\n" if n < 4 else "105\n")
        git(place, "tag", f"c{n}")
    git(place, "branch", "side", "c3")
    return place


def start(repository: Path, cache: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "kduel", "bisect", "--tree", str(repository), *words],
        env=os.environ | {"PYTHONPATH": str(SOURCE), "KDUEL_CACHE": str(cache)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.fixture
def bisect(forked_kduel: ForkedKduel, repository: Path) -> Callable[..., tuple[int, str, str]]:
    """Exit status, output and errors of `kduel bisect WORDS...` with a cache."""

    def call(cache: Path, *words: str) -> tuple[int, str, str]:
        environment = forked_kduel.environment | {"KDUEL_CACHE": str(cache)}
        done = forked_kduel(["bisect", "--tree", repository, *words], cwd=repository.parent, environment=environment)
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout, done.stderr

    return call


def test_neither_a_file_of_the_tree_nor_a_run_is_written_to(
    bisect: Callable[..., tuple[int, str, str]], repository: Path, unpack: Callable[[str], Path], tmp_path: Path
) -> None:
    """`--plot` replaced a picture of the tree, and a run became a build directory."""
    picture = repository / "logo.svg"
    picture.write_text("<svg/>")
    git(repository, "add", "logo.svg")
    (repository / "a*.svg").write_text("of the last search")
    words = ("c0", "c1", "--measure", "cat value", "--plot")
    status, _, err = bisect(tmp_path, *words, str(picture))
    git(repository, "rm", "-q", "-f", "logo.svg")
    assert status == 2 and "logo.svg is a file of" in err and "Give another --plot" in err
    assert "is a file of" not in bisect(tmp_path, *words, str(repository / "a*.svg"))[2]
    run = unpack("process")
    before = sorted(run.rglob("*"))
    for place in (run, run / "new"):
        status, _, err = bisect(tmp_path, *words[:-1], "--build-dir", str(place))
        assert status == 2 and f"would change the run {run}" in err and "Give another --build-dir" in err
    assert sorted(run.rglob("*")) == before


@pytest.mark.slow
def test_the_commit_is_found_and_written_as_json_text_and_plot(
    bisect: Callable[..., tuple[int, str, str]], repository: Path, tmp_path: Path
) -> None:
    words = ("c0", "c7", "--measure", "cat value", "--plot", str(tmp_path / "plot.svg"))
    status, out, err = bisect(tmp_path, *words, "--format", "json")
    assert status == 0, err
    document = json.loads(out)
    assert list(document) == [
        "schema", "good", "bad", "metric", "set", "probability", "effect_pct", "ci_low_pct", "ci_high_pct", "levels",
        "measurements", "confirmed",
    ]  # fmt: skip
    assert document["schema"] == 1
    assert document["set"] == [git(repository, "rev-parse", "c4")]
    assert document["effect_pct"] == pytest.approx(5) and document["confirmed"] is True
    assert list(document["levels"][0]) == ["commit", "n", "mean", "ci_low", "ci_high", "status"]
    assert sum(level["n"] for level in document["levels"]) == document["measurements"]
    assert (tmp_path / "plot.svg").read_text().startswith("<svg")
    # Nothing is measured again: the same command repeats the answer, as text.
    status, text, err = bisect(tmp_path, *words)
    assert status == 0 and "Resuming" in err
    assert "(Commit 4) made what 'cat value' prints 5 % higher" in text and "confirm it" in " ".join(text.split())
    body, _, last = text.partition("Reproduce:")
    assert all(len(line) <= 72 and line.isascii() for line in body.splitlines())
    assert "--measure 'cat value'" in last
    assert len(git(repository, "worktree", "list").splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("c0", "c3", "--measure", "cat value"), 1, "Nothing found: the ends differ by less than 1 %"),
        (("c0", "c3", "--measure", "true"), 1, "the command printed nothing"),
        (("c0", "c3", "--measure", "echo NaN"), 1, "printed NaN, which is no finite number"),
        (("c0", "c3", "--measure", "echo 1 2"), 1, "printed 2 numbers, not one"),
        (("c0", "c3", "--measure", "echo two 2"), 1, "'two 2', not one number"),
        (("c0", "c3", "--measure", "sleep 60", "--timeout", "0.2"), 1, "did not end within 0.2 s"),
        (("c0", "c3", "--measure", "echo oh >&2; exit 3"), 1, "ended with status 3: oh"),
        (("c3", "c0", "--measure", "cat value"), 2, "the ends are swapped"),
        (("c0", "c0", "--measure", "cat value"), 2, "the same commit"),
        (("c0", "c9", "--measure", "cat value"), 2, "has no commit 'c9'"),
        (("c0", "c7"), 2, "--benchmark or --measure"),
        (("c0", "c7", "--measure", "cat value", "--metric", "y"), 2, "--metric has no meaning for"),
        (("c0", "c7", "--measure", "x", "--benchmark", "pipe"), 2, "--benchmark and --measure exclude each other"),
        (("c0", "c7", "--measure", "cat value", "--", "no/such/path"), 2, "changes no/such/path"),
    ],
)
def test_what_cannot_be_searched_ends_with_a_clear_message(
    bisect: Callable[..., tuple[int, str, str]], tmp_path: Path, words: tuple[str, ...], status: int, said: str
) -> None:
    found, out, err = bisect(tmp_path, *words)
    assert (found, said in " ".join((out + err).split())) == (status, True), out + err


@pytest.mark.slow
def test_uncommitted_changes_are_told_and_not_measured(
    bisect: Callable[..., tuple[int, str, str]], repository: Path, tmp_path: Path
) -> None:
    try:
        (repository / "value").write_text("999\n")
        status, out, err = bisect(tmp_path, "c3", "c5", "--measure", "cat value")
    finally:
        git(repository, "checkout", "-q", "value")
    assert status == 0 and "1 changed files that are not committed" in " ".join(err.split())
    assert "Commit 4" in out and "999" not in out


def test_a_path_limits_the_commits(repository: Path) -> None:
    assert len(read_history(repository, "c0", "c7")) == 7
    assert len(read_history(repository, "c0", "c7", paths=["lib"])) == 3


def test_merges_and_first_parents(tmp_path: Path, repository: Path) -> None:
    place = tmp_path / "merged"
    subprocess.run(["git", "clone", "-q", str(repository), str(place)], check=True)
    git(place, "checkout", "-q", "-b", "topic", "c5")
    (place / "topic").write_text("1")
    git(place, "add", ".")
    git(place, "commit", "-q", "-m", "Topic")
    git(place, "checkout", "-q", "main")
    git(place, "merge", "-q", "--no-ff", "-m", "Merge topic", "topic")
    whole = read_history(place, "c4", "main")
    assert len(whole) == 5 and not whole.linear
    first = read_history(place, "c4", "main", first_parent=True)
    assert len(first) == 4 and first.linear
    git(place, "checkout", "-q", "-b", "elsewhere", "c2")
    git(place, "commit", "-q", "--allow-empty", "-m", "Elsewhere")
    with pytest.raises(InputError, match="on different branches") as raised:
        read_history(place, "elsewhere", "main")
    assert git(place, "rev-parse", "c2")[:12] in raised.value.remedy


def test_a_shallow_clone_is_named_with_its_remedy(tmp_path: Path, repository: Path) -> None:
    place = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth", "3", f"file://{repository}", str(place)], check=True)
    git(place, "fetch", "-q", "--depth", "1", "origin", "refs/tags/c0:refs/tags/c0")
    with pytest.raises(InputError, match="shallow clone") as raised:
        read_history(place, "c0", "HEAD")
    assert "--unshallow" in raised.value.remedy


@pytest.mark.slow
def test_killed_at_any_time_it_goes_on_to_the_same_answer(
    bisect: Callable[..., tuple[int, str, str]], repository: Path, tmp_path: Path
) -> None:
    words = ("c0", "c7", "--measure", "sleep 0.05; cat value", "--format", "json", "--quiet")
    expected = bisect(tmp_path / "whole", *words)
    for number_done in (1, 9, 20):
        process = start(repository, tmp_path / "killed", *words)
        while process.poll() is None:
            files = list((tmp_path / "killed").glob("bisect/*/searches/*/measurements.jsonl"))
            if files and len(files[0].read_bytes().splitlines()) > number_done:
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert bisect(tmp_path / "killed", *words)[:2] == expected[:2]
    assert len(git(repository, "worktree", "list").splitlines()) == 1


@pytest.mark.parametrize("printed", ["", " \n", "nan", "inf", "1 2", "1,5", "ten", "\x1b[1m5"])
def test_only_one_finite_number_counts(printed: str) -> None:
    with pytest.raises(Unmeasurable):
        parse_number(printed)


def test_numbers_are_read_as_printed() -> None:
    assert [parse_number(text) for text in ("5", " 5.25\n", "-1e3", "+7")] == [5.0, 5.25, -1000.0, 7.0]


def test_the_ends_keep_their_checkouts(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are measured again and again, and each has its own build."""
    monkeypatch.setattr(command, "KEPT", 2)
    first, last, *others = [git(repository, "rev-parse", f"c{number}") for number in (0, 7, 3, 4)]
    measured = command.ShellMeasurement(repository, tmp_path / "place", "true", (first, last), 9)
    try:
        for one in (first, last, *others):
            measured.check_out(one)
        assert {path.name for path in (tmp_path / "place").iterdir()} == {first, last, others[-1]}
    finally:
        measured.close()


def test_a_command_that_a_signal_ended_gives_no_value(repository: Path, tmp_path: Path) -> None:
    commit = git(repository, "rev-parse", "c0")
    measured = command.ShellMeasurement(repository, tmp_path / "place", "echo 5; kill -KILL $$", (commit, commit), 9)
    try:
        with pytest.raises(Unmeasurable, match="was ended by signal 9: 5"):
            measured(commit)
    finally:
        measured.close()
