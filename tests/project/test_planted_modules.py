"""Python files in the current directory, or in a run that somebody sent, are never executed."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kduel.machines.remote.local_unit import unit_text

ROOT = Path(__file__).parents[2]
NAMES = (
    "click", "numpy", "random", "msgspec", "rich", "kduel", "site", "sitecustomize", "json", "ensurepip", "venv", "pip",
    "compileall", "sysconfig",
)  # fmt: skip
STARTED = re.compile(
    # Also as elements of a list: "python", "-m". The interpreter's other switches may stand before the one that counts.
    r"""(?:sys\.executable|\bpython3?)["'}]*[\s,]+["']?(?P<switches>(?:-[A-Za-z]+["']?[\s,]+["']?)*?)-[A-Za-z]*[mc]\b"""
)


def plant(directory: Path) -> Path:
    """Fill a directory with modules, and with a distribution that offers a plug-in; the file that each would write."""
    owned = directory / "owned"
    text = f"open({str(owned)!r}, 'a').write(__name__ + ' ')\nraise SystemExit(66)\n"
    for name in (*NAMES, "planted_plugin"):
        (directory / f"{name}.py").write_text(text)
    offered = directory / "planted-1.0.dist-info"
    offered.mkdir()
    (offered / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
    (offered / "entry_points.txt").write_text("[kduel.benchmarks]\nplanted = planted_plugin:PLUGIN\n")
    return owned


def run(place: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=place, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("list", "benchmarks"),
        ("report", "."),
        ("report", ".", "--format", "html"),
        ("verify", "."),
        ("plan", "."),
    ],
    ids=" ".join,
)
def test_the_entry_script_imports_nothing_from_the_current_directory(
    unpack: Callable[[str], Path], words: tuple[str, ...]
) -> None:
    received = unpack("qemu")
    owned = plant(received)
    done = run(received, ROOT / "kduel", *words)
    assert not owned.exists(), owned.read_text()
    assert done.returncode != 66 and "Traceback" not in done.stderr, done.stderr
    # verify names the files that lie there beside the run's own.
    lines = [line for line in (done.stdout + done.stderr).splitlines() if not line.endswith(" was added")]
    assert not any("planted" in line for line in lines), lines


def test_a_home_of_another_python_is_not_this_ones(tmp_path: Path) -> None:
    done = run(tmp_path, "/usr/bin/env", "PYTHONHOME=/nowhere", "PYTHONINSPECT=1", ROOT / "kduel", "--version")
    assert done.returncode == 0, done.stderr
    assert ">>>" not in done.stderr, "a prompt of Python waits after the command"


@pytest.mark.slow
def test_setup_imports_nothing_from_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor its pip; an empty entry, as `PYTHONPATH=$PYTHONPATH:/opt/lib` leaves it, is the current directory, too."""
    monkeypatch.setenv("PYTHONPATH", ":/opt/lib")
    checkout, here = tmp_path / "checkout", tmp_path / "here"
    (checkout / "scripts").mkdir(parents=True)
    (checkout / "src/kduel/core").mkdir(parents=True)
    shutil.copy(ROOT / "scripts/setup", checkout / "scripts")
    shutil.copy(ROOT / "src/kduel/core/host_packages.txt", checkout / "src/kduel/core")
    (checkout / "requirements.txt").write_text("")
    here.mkdir()
    owned = plant(here)
    done = run(here, checkout / "scripts/setup", checkout / "requirements.txt")
    assert (done.returncode, owned.exists()) == (0, False), done.stderr
    assert (checkout / ".venv/bin/python").exists()


def test_where_its_own_directory_cannot_be_found_the_entry_script_runs_no_other_setup(tmp_path: Path) -> None:
    owned = tmp_path / "owned"
    (tmp_path / "scripts").mkdir()
    (tmp_path / "bin").mkdir()
    planted = tmp_path / "scripts/setup"
    planted.write_text(f"#!/bin/sh\n: >{owned}\nexit 66\n")
    planted.chmod(0o755)
    done = run(tmp_path, "/usr/bin/env", f"PATH={tmp_path}/bin", "/bin/sh", ROOT / "kduel", "list", "machines")
    assert done.returncode == 127
    assert not owned.exists()


def test_the_resume_unit_starts_python_without_a_directory_of_its_own() -> None:
    start = next(line for line in unit_text(Path("/run")).splitlines() if line.startswith("ExecStart="))
    assert '"-P" "-m" "kduel"' in start


@pytest.mark.slow
def test_python_is_started_nowhere_with_the_current_directory_before_the_library() -> None:
    files = [ROOT / "kduel", ROOT / "run-tests"]
    for folder in ("src", "scripts", "perf", "contrib", "docs"):
        files += [path for path in (ROOT / folder).rglob("*") if path.is_file() and "built" not in path.parts]
    seen = 0
    for path in files:
        text = path.read_text("utf-8", errors="replace")
        for start in STARTED.finditer(text):
            seen += 1
            safe = re.search(r"-[A-Za-z]*[IP]", start[0])
            assert safe, f"{path.relative_to(ROOT)}: {start[0]!r}"
    assert seen >= 15
