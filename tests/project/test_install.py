"""KDuel installed as people install programs: by pipx and by uv, from the wheel, with what they fetch. With `./run-tests --all`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

pytestmark = pytest.mark.network
ROOT = Path(__file__).parents[2]
INSTALL = {
    "pipx": ("install",),
    "uv": ("tool", "install", "--quiet", "--python", "/usr/bin/python3", "--no-python-downloads"),
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-I", "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (found,) = place.glob("*.whl")
    return found


def output(*command: object, cwd: Path, environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("tool", INSTALL)
def test_the_program_with_its_manual_and_completion(wheel: Path, tmp_path: Path, tool: str) -> None:
    """In a home of its own, with the dependencies of the index."""
    places = {
        "PIPX_HOME": tmp_path / "home/pipx",
        "PIPX_BIN_DIR": tmp_path / "bin",
        "PIPX_MAN_DIR": tmp_path / "man",
        "UV_TOOL_DIR": tmp_path / "home/uv",
        "UV_TOOL_BIN_DIR": tmp_path / "bin",
        "UV_CACHE_DIR": tmp_path / "uv-cache",
    }
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment |= {name: str(path) for name, path in places.items()}
    output("/usr/bin/python3", "-m", "venv", tmp_path / "tools", cwd=tmp_path, environment=environment)
    output(tmp_path / "tools/bin/pip", "install", "--quiet", tool, cwd=tmp_path, environment=environment)
    output(tmp_path / "tools/bin" / tool, *INSTALL[tool], wheel, cwd=tmp_path, environment=environment)

    kduel = tmp_path / "bin/kduel"
    assert output(kduel, "--version", cwd=tmp_path, environment=environment).startswith("kduel, version ")
    assert "complete" in output(kduel, "--completion", "bash", cwd=tmp_path, environment=environment)
    assert [path.name for path in (tmp_path / "home").rglob("share/man/man1/*")] == ["kduel.1"]
    suites = output(kduel, "list", "suites", cwd=tmp_path, environment=environment)
    assert "exact-quick" in suites
