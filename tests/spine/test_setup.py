"""What the tests call, the setup installs; a missing program skips a test for a developer and fails it in CI."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EVERYWHERE = {"apt-get", "flock", "setpriv", "unshare"}
"""Of every Debian: apt, and util-linux, which is essential."""


def installed() -> set[str]:
    """The programs that the setup scripts see to."""
    scripts = "".join((ROOT / "scripts" / name).read_text() for name in ("setup", "setup-dev"))
    return set(re.findall(r"^ *need (\S+) \S", scripts, re.MULTILINE))


def test_every_program_that_a_test_needs_is_one_that_the_setup_installs() -> None:
    called = {
        name
        for path in (ROOT / "tests").rglob("*.py")
        for name in re.findall(r"\bneed\(\"([^\"]+)\"\)", path.read_text())
    }
    assert {"perf", "depmod", "shellcheck", "zstd"} <= called
    assert called - installed() - EVERYWHERE == set()


@pytest.mark.parametrize(("ci", "outcome"), [("true", "1 failed"), ("", "1 skipped")])
def test_a_missing_program_fails_a_test_in_ci_and_skips_it_elsewhere(tmp_path: Path, ci: str, outcome: str) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text())
    (tmp_path / "test_it.py").write_text("def test_it(need):\n    need('no-such-program')\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:labgrid", tmp_path],
        cwd=tmp_path,
        env=os.environ | {"CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in done.stdout, done.stdout
    assert "no-such-program" in done.stdout or not ci


def test_the_setup_scripts_are_clean_shell(need: Callable[..., str]) -> None:
    scripts = [
        ROOT / name for name in ("kduel", "run-tests", "scripts/setup", "scripts/setup-dev", "scripts/bare-debian")
    ]
    subprocess.run([need("shellcheck"), *scripts, ROOT / ".ci/run"], check=True)


def test_ci_runs_the_two_commands_of_the_readme_on_a_bare_system() -> None:
    text = (ROOT / ".ci/run").read_text()
    for command in re.findall(r"^    (\./\S.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)[:2]:
        assert command in text


def test_an_environment_is_small_compiled_and_made_once(tmp_path: Path, need: Callable[..., str]) -> None:
    for program in ("mmdebstrap", "mksquashfs", "mkfs.ext4", "cpio", "xz", "zstd", "lz4", "newuidmap"):
        need(program)
    (tmp_path / "scripts").mkdir()
    setup = tmp_path / "scripts/setup"
    setup.write_bytes((ROOT / "scripts/setup").read_bytes())
    setup.chmod(0o755)
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("")
    subprocess.run([setup, requirements], check=True)
    python = tmp_path / ".venv/bin/python"
    asked = [python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"]
    packages = Path(subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip())
    assert packages.is_relative_to(tmp_path / ".venv") and not (packages / "pip").exists()

    for name in ("numpy/_core/tests/test_it.py", "numpy/core.py", "other/tests/data.py"):
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text("")
    os.utime(requirements, (2e9, 2e9))
    subprocess.run([setup, requirements], check=True)
    assert {str(path.relative_to(packages)) for path in packages.rglob("*.py")} == {
        "numpy/core.py",
        "other/tests/data.py",
    }
    assert [path.parent.parent.name for path in packages.rglob("*.pyc")] == ["tests"]

    os.utime(requirements, (1e9, 1e9))
    python.unlink()
    subprocess.run([setup, requirements], check=True)
    assert not python.exists()
