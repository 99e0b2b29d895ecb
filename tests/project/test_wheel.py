"""An installed KDuel: what its documentation names comes with the package."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An environment with the wheel of this checkout; dependencies come from the one that the tests run in."""
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-I", "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["/usr/bin/python3", "-I", "-m", "venv", place / "env"], check=True)
    (wheel,) = place.glob("*.whl")
    pip = [place / "env/bin/pip", "install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run([*pip, wheel], check=True)
    (packages,) = (place / "env/lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("platlib"))
    yield place / "env"


def kduel(installed: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([installed / "bin/kduel", *words], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("study", sorted(path.name for path in (ROOT / "studies").glob("*.toml")))
def test_every_study_of_the_documentation_comes_with_the_wheel(installed: Path, tmp_path: Path, study: str) -> None:
    done = kduel(installed, "run", f"studies/{study}", "--out", "/dev/null/no", cwd=tmp_path)
    assert "cannot read the study" not in done.stderr, done.stderr
    done = kduel(installed, "run", "studies/no-such.toml", cwd=tmp_path)
    assert done.returncode and "cannot read the study" in done.stderr


@pytest.mark.slow
def test_the_manual_page_completion_and_version_come_with_the_wheel(installed: Path, tmp_path: Path) -> None:
    assert (installed / "share/man/man1/kduel.1").is_file()
    assert "kduel" in kduel(installed, "--completion", "bash", cwd=tmp_path).stdout
    assert kduel(installed, "--version", cwd=tmp_path).stdout.startswith("kduel, version ")
