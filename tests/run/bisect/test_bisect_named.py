"""A build command or a measuring command whose script was changed is another one, though its words are the same."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from kduel.core.cache import Cache
from kduel.core.progress import Progress
from kduel.run.bisect.build import Builder
from kduel.run.bisect.history import read_history
from kduel.run.bisect.kernels import CommitKernels
from kduel.run.bisect.named import named_files
from kduel.run.bisect.terms import SearchSettings
from kduel.run.bisect.timed import SearchTask, state_directory


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository of two commits."""
    place = tmp_path / "tree"
    for words in (
        ["init", "-q", str(place)],
        *(["-C", str(place), "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", name]
          for name in ("one", "two")),
    ):  # fmt: skip
        subprocess.run(["git", *words], check=True)
    return place


def test_the_files_outside_the_checkout_that_a_command_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "checkout"
    place.mkdir()
    for name in ("recipe", "my recipe", "options", "checkout/own", "by-variable", "beside"):
        (tmp_path / name).write_text(name)
    monkeypatch.setenv("MINE", str(tmp_path))
    command = (
        f"sh {tmp_path}/recipe<{tmp_path}/options; ./own {place}/own; sh '{tmp_path}/my recipe' --with=$MINE/by-variable "
        f"../beside {tmp_path} {tmp_path}/none"
    )
    found = named_files(command, place)
    names = [Path(line.rpartition(" ")[0]).name for line in found]
    assert names == ["beside", "by-variable", "my recipe", "options", "recipe"]
    assert named_files(command, place) == found
    (tmp_path / "recipe").write_text("changed")
    assert [line for line in named_files(command, place) if line not in found] != []
    assert named_files("make -s && ./bench 'unclosed", place) == []


def test_a_corrected_script_builds_the_commit_again(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel that the faulty script had made was taken from the cache, and there was no way to force another."""
    recipe, built = tmp_path / "recipe", tmp_path / "work"
    monkeypatch.setattr(
        "kduel.run.bisect.kernels.resolve",
        lambda spec, **_: SimpleNamespace(release="6.1", image=Path(spec), config=None, modules=None, vmlinux=None),
    )
    builder = Builder(source=tree, build=built, command=f"sh {recipe}", image="image", log=tmp_path / "log", jobs=1)
    kernels = CommitKernels(builder, cache=Cache(tmp_path / "cache"), progress=Progress())
    for content in ("wrong", "right", "wrong"):
        recipe.write_text(f"echo {content} > $KDUEL_BUILD/image")
        assert kernels("HEAD").read_text().strip() == content


@pytest.mark.parametrize("kind", ["build", "measure"])
def test_measurements_with_another_script_are_another_search(tree: Path, tmp_path: Path, kind: str) -> None:
    history = read_history(tree, "HEAD~1", "HEAD", first_parent=False, paths=())

    def directory(content: str) -> Path:
        (tmp_path / "script").write_text(content)
        line = f"sh {tmp_path}/script"
        builder = Builder(source=tree, build=tmp_path, command=line, image="i", log=tmp_path / "log")
        by = builder.identity() if kind == "build" else named_files(line, tree)
        task = SearchTask(
            tree=tree, history=history, metric="m", subject="s", settings=SearchSettings(), made_by=tuple(by)
        )
        return state_directory(tmp_path, task)

    assert directory("a") == directory("a") != directory("b")
