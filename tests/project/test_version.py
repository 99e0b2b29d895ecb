"""A version names the commit: from git in a checkout, from a file in what was built or archived, and neither elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from kduel.core.version import __version__, commit_of

ROOT = Path(__file__).parents[2]
FILES = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    ".gitattributes",
    "docs/kduel.1",
    "scripts/commit_hook.py",
    "studies/eevdf.toml",
)
FILES = (*FILES, *(f"src/kduel/{name}" for name in ("__init__.py", "COMMIT", "core/__init__.py", "core/version.py")))
WHO = ("-c", "user.name=a", "-c", "user.email=a@example.org")


def version_of(package: Path, **environment: str) -> str:
    """What the version module there says, in a process of its own."""
    code = "import runpy, sys; print(runpy.run_path(sys.argv[1])['full_version']())"
    done = subprocess.run(
        [sys.executable, "-c", code, package / "core/version.py"],
        env=os.environ | environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, need: Callable[..., str]) -> Path:
    """A repository with one commit of the few files that matter here."""
    need("git")
    place = tmp_path / "checkout"
    for name in FILES:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, place / name)
    for words in (("init", "-q"), ("add", "-A"), (*WHO, "commit", "-qm", "first")):
        subprocess.run(["git", *words], cwd=place, check=True)
    return place


def head(checkout: Path) -> str:
    """The number of its commit."""
    return subprocess.run(["git", "rev-parse", "HEAD"], cwd=checkout, capture_output=True, text=True).stdout.strip()


def test_a_checkout_names_its_commit_and_its_changes(checkout: Path) -> None:
    package = checkout / "src/kduel"
    clean = f"{__version__}+g{head(checkout)[:12]}"
    assert version_of(package) == clean and commit_of(clean) == head(checkout)[:12]
    (checkout / "README.md").write_text("other words")
    assert version_of(package) == clean, "the program is the same"
    seen = {clean}
    for words in ("one = 1\n", "two = 2\n"):
        (package / "__init__.py").write_text(words)
        changed = version_of(package)
        assert changed.startswith(f"{clean}.d") and len(changed) == len(clean) + 10
        assert version_of(package) == changed
        seen.add(changed)
    assert len(seen) == 3, "two different changes are two versions"


def test_neither_a_hook_nor_the_users_settings_change_it(checkout: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    subprocess.run(["git", "init", "-q", other], check=True)
    (tmp_path / ".gitconfig").write_text(
        '[diff]\n\texternal = false\n[color]\n\tui = always\n[safe]\n\tdirectory = ""\n'
    )
    package = checkout / "src/kduel"
    inside_a_hook = {"GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other), "HOME": str(tmp_path)}
    assert version_of(package, **inside_a_hook) == version_of(package)
    (package / "__init__.py").write_text("one = 1\n")
    assert version_of(package, **inside_a_hook) == version_of(package)


def test_without_history_the_version_is_bare(checkout: Path) -> None:
    package = checkout / "src/kduel"
    assert version_of(package, PATH="/nowhere") == __version__, "no git"
    shutil.rmtree(checkout / ".git")
    assert version_of(package) == __version__
    assert commit_of(__version__) == "" and commit_of(None) == ""


def test_it_is_not_the_commit_of_the_project_that_holds_an_installed_copy(checkout: Path) -> None:
    place = checkout / ".venv/lib/python3.11/site-packages/kduel"
    shutil.copytree(checkout / "src/kduel", place)
    (checkout / ".venv/lib/.git").mkdir()
    assert version_of(place) == __version__


@pytest.mark.slow
def test_an_archive_and_a_wheel_carry_the_commit(checkout: Path, tmp_path: Path) -> None:
    expected = f"{__version__}+g{head(checkout)[:12]}"
    archive = tmp_path / "archive"
    archive.mkdir()
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=checkout, capture_output=True, check=True).stdout
    subprocess.run(["tar", "x"], cwd=archive, input=packed, check=True)
    assert version_of(archive / "src/kduel") == expected
    for source in (checkout, archive):
        out = tmp_path / f"dist-{source.name}"
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
        subprocess.run(build, cwd=source, check=True, capture_output=True)
        with zipfile.ZipFile(next(out.glob("*.whl"))) as wheel:
            assert wheel.namelist().count("kduel/COMMIT") == 1
            wheel.extractall(out / "installed")
        assert version_of(out / "installed/kduel") == expected
    assert (checkout / "src/kduel/COMMIT").read_text().startswith("$Format"), "a build leaves the source as it is"


@pytest.mark.slow
def test_only_who_asks_for_the_version_waits_for_git(
    start_kduel: Callable[..., subprocess.CompletedProcess[str]], environment: dict[str, str], tmp_path: Path
) -> None:
    fake = tmp_path / "bin/git"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\necho asked >>{tmp_path}/asked\nexit 1\n")
    fake.chmod(0o755)
    environment["PATH"] = f"{fake.parent}:{environment['PATH']}"
    for words in (["--help"], ["run", "--help"], ["list", "suites"]):
        assert start_kduel(*words).returncode == 0
    assert not (tmp_path / "asked").exists()
    done = start_kduel("--version")
    assert done.stdout == f"kduel, version {__version__}\n"
    assert (tmp_path / "asked").exists() == (ROOT / ".git").exists()


def test_the_citation_names_the_version() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
