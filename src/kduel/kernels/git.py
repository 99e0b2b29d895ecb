"""A kernel built from a commit of a git tree, not its work tree: `git:DIR#REF[,arch=...][,config=...]`."""

import subprocess
import tempfile
from pathlib import Path

from kduel.core.cache import Cache
from kduel.core.errors import HostError, InputError
from kduel.core.progress import Progress
from kduel.core.supervised_process import run_text
from kduel.core.text import plural
from kduel.kernels.compile.from_source import FromSource
from kduel.kernels.compile.source import SourceTree, count_files, read_version, unpack_tree, untar, version_in


class Git(FromSource):
    name = "git"
    prefix = "git:"
    summary = "git:DIR#REF[,arch=A][,config=C][,patch=FILE]: built on this host from a commit, a tag or a branch"

    def check_place(self, place: str) -> None:
        check_tree(*find_commit(place))

    def source(self, place: str, *, cache: Cache, progress: Progress, offline: bool) -> SourceTree:
        top, commit = find_commit(place)

        def extract(into: Path) -> None:
            command = ["git", "-C", str(top), "archive", "--format=tar", commit]
            files = len(ask_git(top, "ls-tree", "-r", "--name-only", "-z", commit).split("\0")) - 1
            with tempfile.TemporaryFile("w+", errors="replace") as said:
                feed = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said)
                try:
                    with (
                        feed,
                        progress.task(f"unpacking commit {commit[:12]} ({plural(files, 'file')})", files) as task,
                        count_files(into, task),
                    ):
                        untar(None, into, feed)
                finally:
                    # An error of git's own, which tar takes for a damaged archive. Below 0: tar ended first.
                    if feed.returncode > 0:
                        said.seek(0)
                        why = said.readline().strip()[:300] or f"status {feed.returncode}"
                        raise InputError(
                            f"git archive failed for {commit[:12]} in {top}: {why}", "Check it with git fsck."
                        )

        tree = unpack_tree(f"git-{commit}", extract, cache=cache)
        revision = place.partition("#")[2] or "HEAD"
        facts = {"source": "git", "path": str(top), "commit": commit, "revision": revision}
        return SourceTree(
            tree=tree, identity=commit, version=read_version(tree), exact=f"{self.prefix}{top}#{commit}", facts=facts
        )


def check_tree(top: Path, commit: str) -> None:
    """Raises InputError where a commit has no kernel's tree, as `unpack_tree` does: one directory that is alone is looked into."""
    tree = f"{commit}:{ask_git(top, 'rev-parse', '--show-prefix').strip()}"
    entries = [line.partition("\t") for line in ask_git(top, "ls-tree", "--full-tree", tree).splitlines()]
    seen = [(facts.split()[1], name) for facts, _, name in entries if not name.startswith(".")]
    if len(seen) == 1 and seen[0][0] == "tree":
        tree = f"{tree}{seen[0][1]}/"
    complete = bool(ask_git(top, "rev-parse", "--verify", "--quiet", f"{tree}Kconfig"))
    version_in(ask_git(top, "show", f"{tree}Makefile"), complete=complete)


def ask_git(top: Path, *words: str) -> str:
    """Output of git; empty where it fails."""
    done = run_text(["git", "-C", str(top), *words])
    return done.stdout if done.returncode == 0 else ""


def find_commit(place: str) -> tuple[Path, str]:
    """The tree and the commit that DIR#REF means. Raises InputError, and HostError where git cannot be run."""
    directory, _, revision = place.partition("#")
    top = Path(directory).expanduser().resolve()
    if not top.is_dir():
        raise InputError(
            f"there is no directory {directory}",
            "Check the path after git:; without a tree, compare two releases (debian:6.1, debian:6.12).",
        )
    command = ["git", "-C", str(top), "rev-parse", "--verify", "--quiet", "--end-of-options"]
    try:
        done = run_text([*command, f"{revision or 'HEAD'}^{{commit}}"])
    except OSError as error:
        raise HostError(f"git cannot be run: {error.strerror}", "Install git.") from error
    words = done.stdout.split()
    if done.returncode or not words:
        raise InputError(
            f"{top} has no commit {revision or 'HEAD'!r}",
            "Give a commit, a tag or a branch of a git tree: git:DIR#REF.",
        )
    return top, words[-1]


PLUGIN = Git()
