"""The cost along a history that was searched by counts: changes other than the one that was found are told."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kduel.core.errors import InputError
from kduel.run.bisect.git import git
from kduel.run.bisect.history import is_ancestor
from kduel.run.bisect.path import cost_path, path_lines


def commit(tree: Path, name: str, *parents: str) -> str:
    empty = git(tree, "mktree") if not parents else git(tree, "rev-parse", f"{parents[0]}^{{tree}}")
    words = [word for parent in parents for word in ("-p", parent)]
    return git(tree, "-c", "user.name=n", "-c", "user.email=e", "commit-tree", empty, "-m", name, *words)


def line(tree: Path, length: int) -> list[str]:
    subprocess.run(["git", "init", "--quiet", tree], check=True)
    commits = [commit(tree, "0")]
    for number in range(1, length):
        commits.append(commit(tree, str(number), commits[-1]))
    return commits


def lines_of(tree: Path, values: dict[str, float], ends: tuple[str, str], found: list[str]) -> list[str]:
    steps = cost_path(tree, *ends, values)
    return path_lines(steps, found, {one: git(tree, "show", "-s", "--format=%s", one) for one in values})


def test_a_second_change_that_masks_the_first_is_told(tmp_path: Path) -> None:
    """The ends differ by +100; commit 4 brings +202, and one after it takes 102 back."""
    c = line(tmp_path, 12)
    # In the order of a search: ends first.
    values = {c[0]: 10_650.0, c[11]: 10_750.0, c[6]: 10_852.0, c[3]: 10_650.0, c[4]: 10_852.0}
    lines = lines_of(tmp_path, values, (c[0], c[11]), [c[4]])
    shown = [text.split() for text in lines if text[2:14] in {one[:12] for one in values}]
    assert [words[-1] for words in shown] == ["0", "3", "4", "6", "11"], "the order of the history"
    assert shown[2] == ["*", c[4][:12], "10,852", "+202", "4"]
    assert "the ends differ by +100" in lines[-3]
    assert lines[-2].strip() == f"after {c[6][:12]}, up to {c[11][:12]}: −102"
    assert lines[-1] == "Such a change is found by a search between its two commits, with the same options."


def test_a_single_change_is_the_only_one(tmp_path: Path) -> None:
    c = line(tmp_path, 4)
    lines = lines_of(tmp_path, {c[0]: 100.0, c[3]: 104.0, c[1]: 100.0, c[2]: 104.0}, (c[0], c[3]), [c[2]])
    assert not any("not the only change" in text for text in lines)


def test_a_commit_of_another_branch_is_compared_with_its_own_ancestor(tmp_path: Path) -> None:
    c = line(tmp_path, 3)
    side = commit(tmp_path, "side", c[0])
    merge = commit(tmp_path, "merge", c[2], side)
    values = {c[0]: 100.0, c[2]: 150.0, side: 100.0, merge: 150.0}
    steps = {step.commit: step for step in cost_path(tmp_path, c[0], merge, values)}
    assert steps[side].since == c[0] and steps[side].change == 0
    assert steps[c[2]].since == c[0] and steps[c[2]].change == 50
    assert steps[merge].since == c[2] and steps[merge].change == 0, "the merge brings nothing of its own"


def test_git_that_cannot_say_whether_a_commit_contains_another_is_no_answer(tmp_path: Path) -> None:
    c = line(tmp_path, 2)
    side = commit(tmp_path, "side", c[0])
    assert is_ancestor(tmp_path, c[0], c[1]) and is_ancestor(tmp_path, c[1], c[1])
    assert not is_ancestor(tmp_path, c[1], c[0]) and not is_ancestor(tmp_path, side, c[1])
    with pytest.raises(InputError, match="git rev-list failed"):
        is_ancestor(tmp_path, "0" * 40, c[1])
