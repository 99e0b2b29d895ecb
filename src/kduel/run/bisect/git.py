"""Git commands, and checkouts in directories of their own, so that the user's tree stays as it is."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kduel.core.errors import HostError, InputError
from kduel.core.progress import Progress
from kduel.core.supervised_process import run_text

OLD = 946_684_800
"""The year 2000."""


def git(tree: Path, *words: str, check: bool = True) -> str:
    """Run git in a tree, in English, as its words are read. Raises InputError with them where it fails, unless not to `check`."""
    try:
        done = run_text(["git", "-C", str(tree), *words], env={**os.environ, "LC_ALL": "C.UTF-8"})
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
    ).split("\n")[0] or _no_commit_error(tree, revision)


def _no_commit_error(tree: Path, revision: str) -> str:
    raise InputError(f"{tree} has no commit {revision!r}", "Give a commit, a tag or a branch of the kernel tree.")


@contextmanager
def worktree(
    tree: Path, place: Path, commit: str, built: str = "", *, progress: Progress | None = None
) -> Iterator[Path]:
    """A checkout in a directory of its own, removed afterwards: at `commit`, or where an earlier search left off.

    In a fresh checkout all files are new, so that make would build everything again. Therefore it stays where the search is
    interrupted or the host lacks something, so that the same command continues; one that was left, also by a search that was
    killed, is used as it is; and a fresh one is at `built`, a commit of which there are objects, and old.
    """
    with (progress or Progress()).task(f"checking out {tree.name}"):
        if not _take_over(tree, place):
            shutil.rmtree(place, ignore_errors=True)
            git(tree, "worktree", "prune")
            known = bool(built) and git(tree, "cat-file", "-t", built, check=False).startswith("commit\n")
            git(tree, "worktree", "add", "--quiet", "--force", "--detach", str(place), built if known else commit)
            if known:
                make_old(place)
                # Else git would take the files for changed ones, and write them again.
                git(place, "update-index", "-q", "--refresh", check=False)
    stays = False
    try:
        yield place
    except (KeyboardInterrupt, HostError):
        stays = True
        raise
    finally:
        if not stays:
            git(place, "bisect", "reset", commit, check=False)
            git(tree, "worktree", "remove", "--force", str(place), check=False)
            shutil.rmtree(place, ignore_errors=True)
            git(tree, "worktree", "prune", check=False)


def make_old(place: Path) -> None:
    """Make all files of a checkout older than anything built of them."""
    for folder, _, names in os.walk(place):
        for name in names:
            os.utime(Path(folder, name), (OLD, OLD), follow_symlinks=False)


def _take_over(tree: Path, place: Path) -> bool:
    """True if `place` is a checkout of this tree, which then is whole."""
    try:
        if not (place / ".git").is_file():
            return False
        common, own = git(place, "rev-parse", "--path-format=absolute", "--git-common-dir", "--git-dir").splitlines()
        if common != git(tree, "rev-parse", "--path-format=absolute", "--git-common-dir"):
            return False
        # Nobody else is at work there: the caller holds the directory above.
        for lock in Path(own).glob("*.lock"):
            lock.unlink()
        git(place, "bisect", "reset", "HEAD", check=False)
        check_out(place, "HEAD")
    except (InputError, OSError):
        return False
    return True


def check_out(place: Path, commit: str) -> None:
    """Bring the worktree to a commit, whatever a build left there."""
    git(place, "checkout", "--quiet", "--force", "--detach", commit)


def is_tracked(tree: Path, path: Path) -> bool:
    """True if git has the file in the tree."""
    return not git(tree, "--literal-pathspecs", "ls-files", "--", str(path), check=False).startswith("\n")


def commit_subject(tree: Path, commit: str) -> str:
    return git(tree, "show", "--no-patch", "--format=%s", commit)
