"""The version of KDuel that is running, with its commit: `0.2.0+g0123456789ab`; `.d` and eight digits follow where
the package's files differ from it. Without a history it is the bare `0.2.0`."""

import hashlib
import os
import re
import subprocess
from functools import cache
from pathlib import Path

__version__ = "0.2.0"

PACKAGE = Path(__file__).resolve().parent.parent
NAMED = re.compile(r"([0-9a-f]{12})[0-9a-f]{28,52}(\.d[0-9a-f]{8})?")
OF_COMMIT = re.compile(r"\+g([0-9a-f]{12})")
SLOWEST = 20
"""Seconds that git may take."""


@cache
def full_version() -> str:
    """The version with its commit. Calls git in a checkout: not for what has to answer at once."""
    found = NAMED.fullmatch(commit())
    return f"{__version__}+g{found[1]}{found[2] or ''}" if found else __version__


def commit(package: Path = PACKAGE) -> str:
    """The commit that a package was made from, in full, with `.d` and eight digits where files differ from it. Empty where
    nothing names it: neither the file that a build or `git archive` writes, nor git."""
    written = package / "COMMIT"
    baked = written.read_text("ascii", "replace").strip() if written.exists() else ""
    if NAMED.fullmatch(baked):
        return baked
    root = package.parent.parent
    # The repository of another project may hold this package: only one that has it as src/kduel is ours.
    if package.parent.name != "src" or not (root / ".git").exists():
        return ""
    try:
        head = git(root, "rev-parse", "HEAD").decode("ascii", "replace").strip()
        changes = git(root, "diff", "--no-ext-diff", "--no-textconv", "--full-index", "HEAD", "--", "src/kduel")
    except (OSError, subprocess.SubprocessError):
        return ""
    return head + (f".d{hashlib.sha256(changes).hexdigest()[:8]}" if changes else "")


def commit_of(version: str | None) -> str:
    """The beginning of the commit that a version names; empty where it names none."""
    found = OF_COMMIT.search(version or "")
    return found[1] if found else ""


def git(root: Path, *words: str) -> bytes:
    """Output of git about the checkout, independent of the user's settings and of the repository that a hook works in."""
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    return subprocess.run(
        ["git", "-c", f"safe.directory={root}", "-C", str(root), *words],
        env={"PATH": os.environ.get("PATH", os.defpath)} | quiet,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=SLOWEST,
    ).stdout
