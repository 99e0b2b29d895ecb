"""A history as long as that between two releases of Linux: exact counts search it, as `git bisect` does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kduel.core.errors import InputError
from kduel.run.bisect.git import git
from kduel.run.bisect.history import MOST_WITH_MERGES, read_history
from kduel.run.bisect.terms import SearchSettings
from kduel.run.bisect.timed import SearchTask


@pytest.fixture(scope="module")
def long_history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More commits than the matrix of a search under noise holds, from `good` to `bad`, with one merge."""
    tree = tmp_path_factory.mktemp("long")
    subprocess.run(["git", "init", "-q", "--bare", str(tree)], check=True)
    words = "committer A <a@example.org> {0} +0000\ndata 1\n.\n"
    lines = ["commit refs/heads/main\nmark :1\n" + words.format(1)]
    lines.append("commit refs/heads/side\nmark :2\n" + words.format(2) + "from :1\n")
    for number in range(3, MOST_WITH_MERGES + 3):
        merge = "merge :2\n" if number == MOST_WITH_MERGES else ""
        origin = 1 if number == 3 else number - 1
        lines.append(f"commit refs/heads/main\nmark :{number}\n{words.format(number)}from :{origin}\n{merge}")
    lines.append("reset refs/tags/good\nfrom :1\n")
    subprocess.run(["git", "-C", str(tree), "fast-import", "--quiet"], input="\n".join(lines), text=True, check=True)
    return tree


def test_a_history_between_two_releases_is_read_for_exact_counts(long_history: Path) -> None:
    history = read_history(long_history, "good", "main")
    assert len(history) > MOST_WITH_MERGES and not history.linear
    assert history.commits[-1] == git(long_history, "rev-parse", "main")


def test_a_search_under_noise_refuses_what_its_matrix_does_not_hold(long_history: Path) -> None:
    def task(first_parent: bool) -> SearchTask:
        history = read_history(long_history, "good", "main", first_parent=first_parent)
        return SearchTask(
            tree=long_history, history=history, metric="m", subject="s", settings=SearchSettings(), restart=False
        )

    with pytest.raises(InputError, match="can be searched") as raised:
        task(first_parent=False)
    assert "--first-parent" in raised.value.remedy
    assert len(task(first_parent=True).history) == MOST_WITH_MERGES
