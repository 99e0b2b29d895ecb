"""A search by exact counts: what it names must be true, whatever it was told to look at."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_bisect_resumed import PERSON, counting, repository

from kduel.cli.bisect_exact import AMONG, as_text
from kduel.core.errors import NotMeasuredError
from kduel.core.progress import Progress
from kduel.run.bisect import exact
from kduel.run.bisect.exact import ExactSearch, bisect
from kduel.run.bisect.git import git, worktree
from kduel.run.bisect.outcome import SearchOutcome
from kduel.run.bisect.path import PathStep


def searched(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: list[dict[str, str]],
    *paths: str,
) -> tuple[Path, list[str], ExactSearch]:
    """A search between the ends of a history, of which the file `cost` says what each commit costs."""
    tree = tmp_path / "linux"
    commits = repository(tree, files)
    return tree, commits, between(tmp_path, monkeypatch, commits[0], commits[-1], *paths)


def between(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    good: str,
    bad: str,
    *paths: str,
    operation: str = "pipe",
    explained: list[Any] | None = None,
) -> ExactSearch:
    tree, place = tmp_path / "linux", tmp_path / "source"
    with worktree(tree, place, good):
        trier, _ = counting(tree, place, tmp_path, monkeypatch, operation, explained)
        return bisect(place, good, bad, trier, progress=Progress(), paths=paths)


def history(costs: list[str], documented: tuple[int, ...]) -> list[dict[str, str]]:
    """Commits of these costs; those in `documented` change the file `doc`, too."""
    return [
        {"cost": cost, "number": str(number), **({"doc": str(number)} if number in documented else {})}
        for number, cost in enumerate(costs)
    ]


@pytest.mark.slow
def test_a_commit_of_the_paths_is_not_named_for_what_came_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commit 2 brings the change; of those that change `doc`, commit 4 is the first after it."""
    files = history(["100", "100", "104", "104", "104", "104"], documented=(0, 1, 4, 5))
    with pytest.raises(NotMeasuredError) as error:
        searched(tmp_path, monkeypatch, files, "doc")
    commits = git(tmp_path / "linux", "rev-list", "--reverse", "HEAD").splitlines()
    assert (
        f"{commits[4][:12]} 'Commit 4' did not cause it: {commits[3][:12]} 'Commit 3' before it already costs 104"
        in (error.value.message)
    )
    assert "does not change doc" in error.value.message
    assert f"between {commits[1][:12]} and {commits[3][:12]}" in error.value.remedy


@pytest.mark.slow
def test_of_the_commits_of_the_paths_the_one_that_caused_it_has_its_cost_and_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = history(["100", "100", "101", "101", "104", "104"], documented=(0, 1, 4, 5))
    tree, commits, result = searched(tmp_path, monkeypatch, files, "doc")
    assert result.found.commits == [commits[4]]
    assert (result.before, result.after) == (101, 104), "against its parent, which does not change the paths"
    document = result.outcome(commits[0], commits[-1], "pipe").document()
    assert document["effect_pct"] == pytest.approx(100 * 3 / 101)
    text = as_text(tree, result, "pipe", 25, 100)
    assert f"after {commits[1][:12]}, up to {commits[3][:12]}: +1" in text, "and the other change is told"


@pytest.mark.slow
def test_where_the_commit_before_does_not_build_all_that_were_not_tried_are_in_the_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = history(["100", "100", "100", "bad", "104", "104"], documented=(0, 1, 4, 5))
    tree, commits, result = searched(tmp_path, monkeypatch, files, "doc")
    assert result.found.commits == commits[2:5]
    assert result.explanation is None
    assert "It is one of these" in as_text(tree, result, "pipe", 25, 100)


def test_a_branch_that_began_before_the_good_commit_is_not_blamed_for_a_cost_that_it_had_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0 costs 104; 1 (GOOD) saves 4, which the branch from 0 does not have; its merge takes the saving away."""
    tree = tmp_path / "linux"
    commits = repository(tree, [{"cost": "104"}, {"cost": "100"}])

    def run(*words: str) -> None:
        subprocess.run(["git", "-C", str(tree), *words], check=True, env=os.environ | PERSON, capture_output=True)

    run("checkout", "-q", "-b", "side", commits[0])
    (tree / "number").write_text("2")
    run("add", ".")
    run("commit", "-q", "-m", "Side")
    run("checkout", "-q", "--detach", commits[1])
    run("merge", "-q", "--no-commit", "side")
    (tree / "cost").write_text("104")
    run("commit", "-q", "-a", "-m", "Merge")
    with pytest.raises(NotMeasuredError, match="began before") as error:
        between(tmp_path, monkeypatch, commits[1], git(tree, "rev-parse", "HEAD"))
    assert "--first-parent" in error.value.remedy


@pytest.mark.slow
def test_a_branch_from_before_a_change_back_is_not_blamed_for_the_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1 costs 4 more, 2 takes it back; a branch from 1 has it still. git takes 1 for good, as 3 is, which contains it."""
    tree = tmp_path / "linux"
    costs = ["100", "104", "100", "100", "100"]
    commits = repository(tree, [{"cost": cost, "number": str(number)} for number, cost in enumerate(costs)])

    def run(*words: str) -> None:
        subprocess.run(["git", "-C", str(tree), *words], check=True, env=os.environ | PERSON, capture_output=True)

    run("checkout", "-q", "-b", "side", commits[1])
    (tree / "side").write_text("")
    run("add", ".")
    run("commit", "-q", "-m", "Side")
    run("checkout", "-q", "--detach", commits[4])
    run("merge", "-q", "--no-commit", "side")
    (tree / "cost").write_text("104")
    run("commit", "-q", "-a", "-m", "Merge")
    with pytest.raises(NotMeasuredError, match="'Side' did not cause it") as error:
        between(tmp_path, monkeypatch, commits[0], git(tree, "rev-parse", "HEAD"))
    assert error.value.message.endswith("on another branch the cost changed back")
    assert error.value.remedy == f"Search between {commits[0][:12]} and {commits[1][:12]} with the same options."


@pytest.mark.slow
def test_the_boot_is_searched_and_its_functions_are_counted_for_the_commit_that_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explained: list[Any] = []
    tree = tmp_path / "linux"
    commits = repository(tree, history(["551000", "551000", "552000", "552000"], documented=()))
    result = between(tmp_path, monkeypatch, commits[0], commits[-1], operation="boot", explained=explained)
    assert [(int(one.name), one.dump) for one in explained] == [(551_000, "by function"), (552_000, "by function")]
    assert result.found.commits == [commits[2]]
    assert (result.before, result.after) == (551_000, 552_000)
    text = as_text(tree, result, "boot", 25, 100)
    assert "552,000 with it (+1,000)" in text and "per operation" not in text


@pytest.mark.parametrize(("operation", "metric"), [("pipe", True), ("boot", False)])
def test_what_is_proposed_where_the_ends_are_equal_can_be_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str, metric: bool
) -> None:
    """The boot is counted once, and has no mean."""
    commits = repository(tmp_path / "linux", history(["100", "104", "100"], documented=()))
    with pytest.raises(NotMeasuredError, match="nothing to find") as error:
        between(tmp_path, monkeypatch, commits[0], commits[-1], operation=operation)
    assert ("instructions-mean" in error.value.remedy) == metric


@pytest.mark.slow
def test_a_cost_that_is_not_that_of_the_end_is_not_called_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commit 2 costs 12 more, of which commit 4 takes 7 back."""
    tree, commits, result = searched(tmp_path, monkeypatch, history(["100", "100", "112", "112", "105"], ()))
    text = as_text(tree, result, "pipe", 25, 100)
    assert result.found.commits == [commits[2]] and "new cost" not in text
    assert "The first commit that costs more like BAD (105) than like GOOD (100):" in text
    assert f"up to {commits[4][:12]}: −7" in text
    tree, commits, result = searched(tmp_path / "other", monkeypatch, history(["100", "100", "105", "105"], ()))
    assert "The first commit with the new cost:" in as_text(tree, result, "pipe", 25, 100)


@pytest.mark.slow
def test_what_was_skipped_is_told_with_the_reason_and_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = ["100", "100", "100", "bad", "100", "104", "104"]
    tree, commits, result = searched(tmp_path, monkeypatch, history(costs, ()))
    assert result.found.commits == [commits[5]]
    lines = as_text(tree, result, "pipe", 25, 100).splitlines()
    table = [
        line[2:].split()[:2] for line in lines if line[2:14] in {one[:12] for one in commits} and "Commit" in line
    ]
    assert [commit for commit, _ in table] == [one[:12] for one in commits if one[:12] in {row[0] for row in table}]
    assert [commits[3][:12], "skipped"] in table
    assert any(line.startswith(f"  {commits[3][:12]} does not build: ") for line in lines)


@pytest.mark.slow
def test_a_set_behind_skipped_commits_is_in_the_order_of_the_history_and_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole set brings 4 more, in functions that are known, though not which of its commits does."""
    explained: list[Any] = []
    tree = tmp_path / "linux"
    commits = repository(tree, history(["100", "100", "bad", "bad", "bad", "104", "104"], ()))
    result = between(tmp_path, monkeypatch, commits[0], commits[-1], explained=explained)
    assert result.found.commits == commits[2:6]
    assert (result.before, result.after) == (100, 104)
    assert [int(one.name) for one in explained] == [100, 104]
    text = as_text(tree, result, "pipe", 25, 100)
    assert "pipe: 100 instructions before them, 104 with them (+4 per operation)." in text
    assert result.outcome(commits[0], commits[-1], "pipe").document()["effect_pct"] == pytest.approx(4)


def test_git_is_read_in_english_whatever_the_language_of_its_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where git's messages are translated, none of them would be recognised."""
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "${LC_ALL-${LANG-}}"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    for name in ("LC_ALL", "LANG", "LANGUAGE", "LC_MESSAGES"):
        monkeypatch.setenv(name, "de_DE.UTF-8")
    assert git(tmp_path, "version") == "C.UTF-8"


def test_a_set_of_thousands_is_not_listed_whole(tmp_path: Path) -> None:
    commits = repository(tmp_path / "linux", [{"number": str(number)} for number in range(3)])
    among = [commits[number % 3] for number in range(AMONG + 7)]
    found = exact.ExactResult(commits=among, steps=[])
    result = ExactSearch(found=found, old_value=1, new_value=2, path=[PathStep(commit=commits[0], value=1)])
    text = as_text(tmp_path / "linux", result, "pipe", 25, 100)
    assert "and 7 more, up to " in text and text.count("Commit 1") < AMONG
    assert isinstance(result.outcome("a", "b", "pipe"), SearchOutcome)
