"""Git commands, and checkouts in directories of their own, so that the user's tree stays as it is."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kduel.core.errors import HostError, InputError


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
    """A checkout in a directory of its own, removed afterwards. One that was left by a search that was killed is used again:
    in a fresh one all files are new, and everything would be built again."""
    if not _taken_over(tree, place, commit):
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


def _taken_over(tree: Path, place: Path, commit: str) -> bool:
    """Whether `place` is a checkout of this tree, which then is at the commit."""
    try:
        if not (place / ".git").is_file():
            return False
        common, own = git(place, "rev-parse", "--path-format=absolute", "--git-common-dir", "--git-dir").splitlines()
        if common != git(tree, "rev-parse", "--path-format=absolute", "--git-common-dir"):
            return False
        # Nobody else is at work there: the caller holds the directory above.
        for lock in Path(own).glob("*.lock"):
            lock.unlink()
        git(place, "bisect", "reset", commit, check=False)
        check_out(place, commit)
    except (InputError, OSError):
        return False
    return True


def check_out(place: Path, commit: str) -> None:
    """Bring the worktree to a commit, whatever a build left there."""
    git(place, "checkout", "--quiet", "--force", "--detach", commit)


def subject(tree: Path, commit: str) -> str:
    """The first line of a commit's message."""
    return git(tree, "show", "--no-patch", "--format=%s", commit)
