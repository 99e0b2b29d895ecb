"""Driving `git bisect` in a worktree of its own, so that the user's tree stays as it is."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from msgspec import Struct

from kduel.core.errors import HostError, InputError, NotMeasuredError

Judgement = Literal["old", "new", "skip"]


class Step(Struct, frozen=True, kw_only=True):
    """A commit that was tried."""

    commit: str
    subject: str
    judgement: Judgement
    value: float | None = None
    why: str = ""
    """Why it was skipped."""


class Found(Struct, frozen=True, kw_only=True):
    """The end of the search: one commit, or several among which skipped ones hide it."""

    commits: list[str]
    steps: list[Step]


def git(tree: Path, *words: str, check: bool = True) -> str:
    """Run git in a tree. Raises InputError with git's words where it fails, unless not to `check`."""
    try:
        done = subprocess.run(
            ["git", "-C", str(tree), *words], capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        raise HostError(f"git cannot be run: {error.strerror}", "Install git.") from error
    if check and done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise InputError(f"git {words[0]} failed in {tree}: {said[-1] if said else f'status {done.returncode}'}")
    return done.stdout.strip() + ("" if check else "\n" + done.stderr.strip())


def commit_of(tree: Path, revision: str) -> str:
    """The full name of a commit. Raises InputError where there is none, or no repository."""
    git(tree, "rev-parse", "--git-dir")
    return git(
        tree, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", check=False
    ).split("\n")[0] or _no_commit(tree, revision)


def _no_commit(tree: Path, revision: str) -> str:
    raise InputError(f"{tree} has no commit {revision!r}", "Give a commit, a tag or a branch of the kernel tree.")


@contextmanager
def worktree(tree: Path, place: Path, commit: str) -> Iterator[Path]:
    """A checkout of its own, gone afterwards."""
    shutil.rmtree(place, ignore_errors=True)
    git(tree, "worktree", "prune")
    git(tree, "worktree", "add", "--quiet", "--force", "--detach", str(place), commit)
    try:
        yield place
    finally:
        git(place, "bisect", "reset", commit, check=False)
        git(tree, "worktree", "remove", "--force", str(place), check=False)
        shutil.rmtree(place, ignore_errors=True)
        git(tree, "worktree", "prune", check=False)


def check_out(place: Path, commit: str) -> None:
    """Bring the worktree to a commit, whatever a build left there."""
    git(place, "checkout", "--quiet", "--force", "--detach", commit)


def search(place: Path, old: str, new: str, judge: Callable[[str], Step], told: Callable[[Step, int], None]) -> Found:
    """Bisect between two commits whose judgements are known. `judge` tries what is checked out; `told` hears of it
    and of how many commits are left. Raises InputError, NotMeasuredError where git comes to no end."""
    if "new" not in git(place, "bisect", "terms", check=False):
        git(place, "bisect", "start", "--term-old=old", "--term-new=new")
    said = git(place, "bisect", "old", old) + git(place, "bisect", "new", new)
    steps: list[Step] = []
    for _ in range(10_000):
        if match := re.search(r"^([0-9a-f]{40}) is the first new commit$", said, re.MULTILINE):
            return Found(commits=[match[1]], steps=steps)
        if "only 'skip'ped commits left" in said:
            return Found(commits=re.findall(r"^([0-9a-f]{40})\b", said, re.MULTILINE), steps=steps)
        left = re.search(r"Bisecting: (\d+) revision", said)
        commit = git(place, "rev-parse", "HEAD")
        step = judge(commit)
        steps.append(step)
        told(step, int(left[1]) if left else 0)
        git(place, "checkout", "--quiet", "--force", "--detach", commit)
        said = git(place, "bisect", step.judgement, check=False)
        if not any(word in said for word in ("Bisecting:", "first new commit", "'skip'ped")):
            raise NotMeasuredError(f"git bisect does not go on: {said.strip()[:500]}")
    raise NotMeasuredError("git bisect does not come to an end")
