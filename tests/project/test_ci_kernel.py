"""The steps of the continuous integration examples on a kernel's tree of two commits, from a clean clone. With `./run-tests --all`.

KDUEL_TEST_BUILD names the source, such as debian-source:6.1; each commit takes a build.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from kduel.core.cache import Cache
from kduel.core.progress import Progress
from kduel.kernels.debian_source import PLUGIN

ROOT = Path(__file__).parents[2]
SOURCE = os.environ.get("KDUEL_TEST_BUILD", "")
pytestmark = [
    pytest.mark.guest,
    pytest.mark.network,
    pytest.mark.skipif(not SOURCE, reason="KDUEL_TEST_BUILD names no source: this takes minutes"),
]
SLOWER = """\tint pid;
\tvolatile int spent = 100;

\twhile (spent)
\t\tspent--;
"""
"""A hundred rounds more in getppid()."""


def git(tree: Path, *words: str) -> str:
    """Output of a command of git, by an author of its own."""
    author = ["-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "gc.auto=0"]
    return subprocess.run(
        ["git", *author, *words], cwd=tree, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory, need: Callable[..., str]) -> Path:
    """A kernel's tree, as a job finds it: two commits, and a clone of KDuel in kduel/, set up already."""
    for program in ("git", "make", "flex", "bison", "bc", "ccache"):
        need(program)
    place = SOURCE.partition(":")[2]
    source = PLUGIN.source(place, cache=Cache(), progress=Progress(), offline=False)
    tree = tmp_path_factory.mktemp("ci") / "linux"
    shutil.copytree(source.tree, tree, symlinks=True)
    git(tree, "init", "--quiet")
    git(tree, "add", "--force", "--all")
    git(tree, "commit", "--quiet", "--message", "before")
    path = tree / "kernel/sys.c"
    before = path.read_text()
    after = before.replace("SYSCALL_DEFINE0(getppid)\n{\n\tint pid;\n", f"SYSCALL_DEFINE0(getppid)\n{{\n{SLOWER}")
    assert after != before
    path.write_text(after)
    git(tree, "commit", "--quiet", "--all", "--message", "spend time in getppid")
    git(tree, "clone", "--quiet", str(ROOT), "kduel")
    (tree / "kduel/.venv").symlink_to((ROOT / ".venv").resolve())
    return tree


def step(example: str, base: str, head: str) -> str:
    """The line that compares, as the CI system would expand it, but for a smaller configuration."""
    if example == "github":
        jobs: dict[str, Any] = yaml.safe_load((ROOT / "contrib/ci/github.yml").read_text())["jobs"]
        line = next(one["run"] for one in jobs["compare"]["steps"] if one.get("id") == "compare")
        for name, value in (("base", base), ("head", head)):
            line = re.sub(rf"\$\{{\{{ github\.event\.pull_request\.{name}\.sha \}}\}}", value, line)
    else:
        script = yaml.safe_load((ROOT / "contrib/ci/gitlab.yml").read_text())["kernel-path-length"]["script"]
        line = next(one for one in script if "compare" in one)
    return line.replace("defconfig+guest", "tinyconfig+guest")


@pytest.mark.parametrize("example", ["github", "gitlab"])
def test_the_steps_build_both_commits_and_tell_which_operation_costs_more(
    checkout: Path, example: str, tmp_path: Path
) -> None:
    base, head = git(checkout, "rev-parse", "HEAD~1"), git(checkout, "rev-parse", "HEAD")
    done = subprocess.run(
        ["sh", "-euc", step(example, base, head)],
        cwd=checkout,
        env=os.environ
        | {"KDUEL_CI": str(tmp_path), "CI_MERGE_REQUEST_DIFF_BASE_SHA": base, "CI_COMMIT_SHA": head, "CI": "true"},
        check=False,
    )
    assert done.returncode == 10
    comment = (tmp_path / "comment.md").read_text()
    print(comment)
    assert re.search(r"null-call.*\+\d", comment), comment
    cases = ElementTree.parse(tmp_path / "junit.xml").getroot().findall("*/testcase")
    failed = [case.get("classname", "") for case in cases if case.find("failure") is not None]
    assert [name for name in failed if "null-call" in name] and len(failed) < len(cases)
    assert "<svg" in (tmp_path / "badge.svg").read_text()
