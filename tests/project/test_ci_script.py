"""The steps of the continuous integration examples, carried out by a plain shell."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CI = ROOT / "contrib/ci"


def steps() -> dict[str, str]:
    """By example, the shell line that compares."""
    github: dict[str, Any] = yaml.safe_load((CI / "github.yml").read_text())
    gitlab: dict[str, Any] = yaml.safe_load((CI / "gitlab.yml").read_text())
    lines = {
        "github": [step.get("run", "") for step in github["jobs"]["compare"]["steps"]],
        "gitlab": gitlab["kernel-path-length"]["script"],
    }
    return {name: next(line for line in found if "compare" in line) for name, found in lines.items()}


@pytest.mark.parametrize("example", ["github", "gitlab"])
def test_both_ends_are_built_from_commits(example: str) -> None:
    program, *refs = shlex.split(re.sub(r"\$\{\{.*?\}\}", "REF", steps()[example]))
    assert program == "kduel/contrib/ci/compare"
    assert len(refs) == 2
    assert all(ref.startswith("git:.#") and ",config=defconfig+guest" in ref for ref in refs)


@pytest.mark.parametrize("may", [True, False])
def test_a_token_that_may_not_comment_makes_no_job_red(tmp_path: Path, may: bool) -> None:
    """As on a pull request from a fork; the comment is in the job's summary."""
    found = yaml.safe_load((CI / "github.yml").read_text())["jobs"]["compare"]["steps"]
    (line,) = [step["run"] for step in found if "gh pr comment" in step.get("run", "")]
    (tmp_path / "kduel-ci").mkdir()
    (tmp_path / "kduel-ci/comment.md").write_text("the verdict\n")
    (tmp_path / "gh").write_text(f"#!/bin/sh\nexit {0 if may else 1}\n")
    (tmp_path / "gh").chmod(0o755)
    done = subprocess.run(
        ["sh", "-e", "-c", re.sub(r"\$\{\{.*?\}\}", "7", line)],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and ("::notice::" in done.stdout) != may
    assert (tmp_path / "summary").read_text() == "the verdict\n"


@pytest.mark.guest
def test_a_change_that_costs_more_fails_with_a_comment(tmp_path: Path) -> None:
    # Building both is tested elsewhere, and what the suite counts. Calibrating the timer of the local APIC takes half of a
    # boot's time.
    kernels = [f"debian:{version}-cloud,cmdline=noapictimer" for version in ("6.1", "6.12")]
    done = subprocess.run(
        [CI / "compare", *kernels, "--machine", "icount", "-b", "kbench:operation=fault-anonymous,mode=exact"],
        env=os.environ | {"KDUEL_CI": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 10
    assert "more" in (tmp_path / "comment.md").read_text()
    assert ElementTree.parse(tmp_path / "junit.xml").getroot().findall("*/testcase/failure")
    assert "<svg" in (tmp_path / "badge.svg").read_text() and "<html" in (tmp_path / "page.html").read_text()


@pytest.mark.slow
def test_what_cannot_be_measured_leaves_no_comment(tmp_path: Path) -> None:
    done = subprocess.run(
        [CI / "compare", "nowhere:1", "nowhere:2"], env=os.environ | {"KDUEL_CI": str(tmp_path)}, check=False
    )
    assert done.returncode == 2 and not list(tmp_path.iterdir())


def test_the_script_teaches_its_usage() -> None:
    done = subprocess.run([CI / "compare"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "BASELINE CONTENDER" in done.stderr and "comment.md" in done.stderr


@pytest.mark.parametrize("words", [["-b", "redis"], ["--benchmark=redis"], ["--command", "x"], ["--suite", "quick"]])
def test_what_is_measured_is_counted_only_where_it_is_not_named(tmp_path: Path, words: list[str]) -> None:
    environment = os.environ | {"KDUEL": "echo", "KDUEL_CI": str(tmp_path)}
    line = [CI / "compare", "a", "b", *words]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=True)
    assert "exact-quick" not in done.stdout and f"--quiet {' '.join(words)}" in done.stdout
