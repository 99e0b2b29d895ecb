"""What a person reads while a tree is unpacked, which may take minutes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kduel.core.cache import Cache
from kduel.core.errors import InputError
from kduel.core.progress import Progress, Task
from kduel.kernels.compile import source
from kduel.kernels.git import PLUGIN, ask_git


class Counting(Task):
    def __init__(self) -> None:
        self.done = 0.0

    def advance(self, amount: float = 1) -> None:
        self.done += amount


class Told(Progress):
    def __init__(self) -> None:
        self.tasks: list[tuple[str, float | None]] = []

    @contextmanager
    def task(self, text: str, total: float | None = None) -> Iterator[Task]:
        self.tasks.append((text, total))
        yield Task()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A repository with a kernel's tree of four files."""
    place = tmp_path / "repository"
    (place / "a").mkdir(parents=True)
    (place / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 0\n")
    for name in ("Kconfig", "a/b", "a/c d"):
        (place / name).write_text(f"{name}\n")
    own = ["git", "-C", str(place), "-c", "user.name=a", "-c", "user.email=a@localhost"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "kernel"]):
        subprocess.run([*own, *words], check=True)
    return place


def test_a_damaged_repository_is_named_not_its_archive(place: Path, tmp_path: Path) -> None:
    asked = subprocess.run(["git", "-C", str(place), "rev-parse", "HEAD:a/b"], check=True, capture_output=True)
    blob = asked.stdout.decode().strip()
    (place / ".git/objects" / blob[:2] / blob[2:]).unlink()
    cache = Cache(tmp_path / "cache")
    with pytest.raises(InputError, match=rf"git archive failed for \w+ in {place}: .*a/b"):
        PLUGIN.source(str(place), cache=cache, progress=Progress(), offline=True)
    with pytest.raises(InputError, match="git archive failed"):
        PLUGIN.source(str(place), cache=cache, progress=Progress(), offline=True)


def test_a_commit_is_unpacked_with_the_number_of_its_files(place: Path, tmp_path: Path) -> None:
    told = Told()
    PLUGIN.source(str(place), cache=Cache(tmp_path / "cache"), progress=told, offline=True)
    ((text, total),) = told.tasks
    assert text.startswith("unpacking commit ") and text.endswith("(4 files)") and total == 4


def test_files_are_counted_as_they_appear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "LOOK_SECONDS", 0.01)
    task = Counting()
    with source.count_files(tmp_path, task):
        for number in range(3):
            (tmp_path / f"d{number}").mkdir()
            (tmp_path / f"d{number}/file").touch()
        while task.done < 3:
            pass
    assert task.done == 3


def test_what_a_failing_git_prints_is_no_answer(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    assert subprocess.run(["git", "-C", tmp_path, "rev-parse", "nothing"], capture_output=True, check=False).stdout, (
        "git prints the word and fails"
    )
    assert ask_git(tmp_path, "rev-parse", "nothing") == ""
