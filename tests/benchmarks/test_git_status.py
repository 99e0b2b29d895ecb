"""The tree that git looks at, made on this host by the service's own lines."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from kduel.benchmarks import benchmark


def test_git_trusts_the_index_from_the_first_look_on(tmp_path: Path) -> None:
    """A file as young as the index could have changed within the same second: git then reads it, and writes the index anew
    at each look until the clock's second is over, which is more work in some trials than in others."""
    chosen = benchmark("git-status")
    service = chosen.service(chosen.read_parameters({"files": 40}))
    assert service is not None
    environment = os.environ | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    run = ["sh", "-ec", service.start]
    subprocess.run(run, cwd=tmp_path, env=environment, check=True, capture_output=True)
    tree = tmp_path / "tree"
    written = (tree / ".git/index").stat().st_mtime
    files = sorted(tree.glob("d*/**/*.c"))
    assert len(files) == 40 and all(path.stat().st_mtime < written - 3600 for path in files)
    traced = environment | {"GIT_TRACE2_PERF": "1"}
    looked = subprocess.run(
        ["git", "status", "--porcelain"], cwd=tree, env=traced, check=True, capture_output=True, text=True
    )
    assert looked.stdout == "" and "do_read_index" in looked.stderr and "do_write_index" not in looked.stderr
