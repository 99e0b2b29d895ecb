"""What the tests call, the setup installs; a missing program skips a test for a developer and fails it in CI."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

from kduel.core.host_packages import COMMANDS, FAMILIES, host_family, install_command, package_table

ROOT = Path(__file__).parents[2]
PROGRAMS = ("ruff", "mypy", "lint-imports", "python", "pytest")
"""Called by ./run-tests."""
EVERYWHERE = {"apt-get", "flock", "setpriv", "unshare"}
"""Of every Debian: apt, and util-linux, which is essential."""


def copy_setup(checkout: Path) -> Path:
    """scripts/setup, with the table that it reads, in an otherwise empty checkout."""
    for name in ("scripts/setup", "src/kduel/core/host_packages.txt"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)
    return checkout / "scripts/setup"


def installed() -> set[str]:
    """The programs that the setup scripts see to."""
    return set(re.findall(r"^ *need (\S+) \S", (ROOT / "scripts/setup-dev").read_text(), re.MULTILINE)) | set(
        package_table()
    )


def test_every_program_that_a_test_needs_is_one_that_the_setup_installs() -> None:
    called = {
        name
        for path in (ROOT / "tests").rglob("*.py")
        for name in re.findall(r"\bneed\(\"([^\"]+)\"\)", path.read_text())
    }
    assert {"perf", "depmod", "shellcheck", "zstd"} <= called
    assert called - installed() - EVERYWHERE == set()


@pytest.mark.slow
@pytest.mark.parametrize(("ci", "outcome"), [("true", "1 failed"), ("", "1 skipped")])
def test_a_missing_program_fails_a_test_in_ci_and_skips_it_elsewhere(tmp_path: Path, ci: str, outcome: str) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text())
    (tmp_path / "test_it.py").write_text("def test_it(need):\n    need('no-such-program')\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:labgrid", tmp_path],
        cwd=tmp_path,
        env=os.environ | {"CI": ci, "KDUEL_TEST_PART": "", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests/support'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in done.stdout, done.stdout
    assert "no-such-program" in done.stdout or not ci


@pytest.mark.parametrize(("environment", "packages", "status"), [(0, 0, 0), (3, 0, 3), (0, 100, 100)])
def test_what_cannot_be_set_up_ends_the_setup_for_development(
    tmp_path: Path, environment: int, packages: int, status: int
) -> None:
    """The environment is made beside the packages: neither's failure may be lost, and nothing goes on."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/setup-dev", tmp_path / "scripts")
    for name, line in (("setup", f"sleep 0.3; touch made; exit {environment}"), ("apt-install", f"exit {packages}")):
        (tmp_path / "scripts" / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / "scripts" / name).chmod(0o755)
    (tmp_path / "bin").mkdir()
    for name in ("dirname", "sleep", "touch"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    # Nearly nothing is installed there, so that packages are asked for.
    command = ["/usr/bin/env", f"PATH={tmp_path / 'bin'}", "/bin/sh", tmp_path / "scripts/setup-dev"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert "installing what the tests need:" in done.stderr
    assert packages or (tmp_path / "made").exists()


def test_the_setup_scripts_are_clean_shell(need: Callable[..., str]) -> None:
    scripts = [
        ROOT / name
        for name in (
            "kduel",
            "run-tests",
            "scripts/setup",
            "scripts/setup-dev",
            "scripts/apt-install",
            "scripts/bare-debian",
        )
    ]
    subprocess.run([need("shellcheck"), *scripts, ROOT / ".ci/run", ROOT / "contrib/ci/compare"], check=True)


def test_ci_runs_the_two_commands_of_the_readme_on_a_bare_system() -> None:
    text = (ROOT / ".ci/run").read_text()
    for command in re.findall(r"^    (\./\S.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)[:2]:
        assert command in text
    assert '"KDUEL_TEST_PART=$part ./run-tests --rest"' in text, "and a part of all other tests"


def calls_of_pytest(tmp_path: Path, *words: str) -> list[list[str]]:
    """The words of the calls of pytest by `./run-tests`."""
    tmp_path.mkdir(exist_ok=True)
    shutil.copy(ROOT / "run-tests", tmp_path)
    for name in ("scripts/setup", "scripts/setup-dev", "scripts/spread", *(f".venv/bin/{name}" for name in PROGRAMS)):
        stub = tmp_path / name
        stub.parent.mkdir(parents=True, exist_ok=True)
        stub.write_text('#!/bin/sh\ncase $0 in */pytest) printf "%s\\n" "$@" called ;; esac\n')
        stub.chmod(0o755)
    said = subprocess.run([tmp_path / "run-tests", *words], capture_output=True, text=True, check=True).stdout
    return [call.splitlines() for call in said.split("called\n")[:-1]]


def selected(tmp_path: Path, *words: str) -> list[str]:
    """The marks that `./run-tests` selects tests by, in the order of its calls of pytest."""
    return [call[call.index("-m") + 1] for call in calls_of_pytest(tmp_path, *words)]


@pytest.mark.slow
def test_what_the_rest_leaves_to_all_is_not_run_with_it(tmp_path: Path) -> None:
    """Real pytest with its words: a file that is named is collected even where it is to be ignored."""
    for name, mark in (("test_slow", "slow"), ("test_fast", "other"), ("machines/remote/test_kvm", "guest")):
        path = tmp_path / f"tests/{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"import pytest\n@pytest.mark.{mark}\ndef test_it(): pass\n")
    for which, files in (("--rest", ["slow"]), ("--all", ["fast", "kvm", "slow"])):
        words = calls_of_pytest(tmp_path, which)[0]
        command = [sys.executable, "-m", "pytest", "-p", "no:labgrid", "-W", "ignore", "--collect-only", "-q", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert sorted(re.findall(r"test_(\w+)\.py", done.stdout)) == files, done.stdout + done.stderr


def test_every_test_is_run_by_default_or_with_the_rest(tmp_path: Path) -> None:
    marks = ("guest", "network", "slow", "alone", "essential")
    default, rest = selected(tmp_path / "default"), selected(tmp_path / "rest", "--rest")
    assert len(default) == 1
    for number in range(2 ** len(marks)):
        its = {mark for place, mark in enumerate(marks) if number >> place & 1}
        if its >= {"alone", "essential"}:
            continue
        chosen = [
            Expression.compile(text).evaluate(lambda name, its=its, **_: name in its) for text in default + rest
        ]
        assert chosen.count(True) == 1, its
        assert chosen[0] == ("essential" in its or not its), its
    (fast,) = selected(tmp_path / "fast", "--fast")
    assert not Expression.compile(fast).evaluate(lambda name, **_: name in ("guest", "essential"))
    everything = selected(tmp_path / "all", "--all")
    assert everything == ["not alone", "alone"]


def test_the_readme_says_how_many_tests_with_guests_there_are_by_default() -> None:
    marked = [
        path
        for path in (ROOT / "tests").rglob("test_*.py")
        for _ in re.finditer(r"^@pytest\.mark\.essential$", path.read_text(), re.MULTILINE)
    ]
    words = dict(enumerate(("eight", "nine", "ten"), 8))
    assert f"and {words[len(marked)]} with real guests" in (ROOT / "README.md").read_text()


@pytest.mark.slow
def test_an_environment_is_small_compiled_and_made_once(tmp_path: Path, need: Callable[..., str]) -> None:
    for program in ("mmdebstrap", "mksquashfs", "mkfs.ext4", "cpio", "xz", "zstd", "lz4", "newuidmap"):
        need(program)
    setup = copy_setup(tmp_path)
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


def apt_place(tmp_path: Path) -> dict[str, str]:
    """The environment of an apt with directories of its own, in which the package `there` is installed."""
    for name in ("lists/partial", "archives/partial", "dpkg"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "dpkg/status").write_text(
        "Package: there\nStatus: install ok installed\nVersion: 1\nArchitecture: all\nMaintainer: A <a@example>\n"
        "Description: it\n"
    )
    (tmp_path / "sources").write_text("")
    (tmp_path / "apt.conf").write_text(
        f'Dir::State::lists "{tmp_path}/lists";\nDir::Cache::archives "{tmp_path}/archives";\n'
        f'Dir::State::status "{tmp_path}/dpkg/status";\nDir::State::extended_states "{tmp_path}/extended";\n'
        f'Dir::Etc::sourcelist "{tmp_path}/sources";\nDir::Etc::sourceparts "-";\n'
        f'Dir::Cache::pkgcache "";\nDir::Cache::srcpkgcache "";\nAPT::Update::Post-Invoke-Success "";\n'
    )
    return os.environ | {"APT_CONFIG": str(tmp_path / "apt.conf"), "KDUEL_APT_PATIENCE": "60"}


@pytest.mark.slow
@pytest.mark.parametrize(("lock", "seconds"), [("lists/lock", 2), ("dpkg/lock-frontend", 7)])
def test_it_waits_while_another_apt_is_at_work(
    tmp_path: Path, need: Callable[..., str], lock: str, seconds: float
) -> None:
    """With apt itself, whose directories are others: nothing is fetched, and what is to be installed is there. What apt
    says of a lock depends on whether it waited."""
    need("apt-get")
    environment = apt_place(tmp_path)
    command = [str(ROOT / "scripts/apt-install"), "there"]
    with (tmp_path / lock).open("w") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        assert process.stderr
        assert "another apt is at work" in process.stderr.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=seconds)
    assert process.wait(timeout=600) == 0, process.stderr.read()


def test_a_repository_that_is_out_of_order_is_not_in_the_way(tmp_path: Path, need: Callable[..., str]) -> None:
    need("apt-get")
    place = apt_place(tmp_path)
    (tmp_path / "sources").write_text(f"deb [trusted=no] file:{tmp_path}/nowhere suite main\n")
    done = subprocess.run(
        [ROOT / "scripts/apt-install", "there"], env=place, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "could not read all repositories" in done.stderr and "nowhere" in done.stderr


def test_it_does_not_wait_for_ever(tmp_path: Path) -> None:
    (tmp_path / "apt.conf").write_text(f'Dir::State::lists "{tmp_path}/lists";\n')
    (tmp_path / "lists/partial").mkdir(parents=True)
    with (tmp_path / "lists/lock").open("w") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        done = subprocess.run(
            [ROOT / "scripts/apt-install", "there"],
            env=os.environ | {"APT_CONFIG": str(tmp_path / "apt.conf"), "KDUEL_APT_PATIENCE": "1"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert "Could not get lock" in done.stderr


@pytest.mark.slow
def test_without_apt_nothing_is_demanded_that_only_making_a_root_takes(tmp_path: Path) -> None:
    copy_setup(tmp_path)
    (tmp_path / "requirements.txt").write_text("")
    programs = tmp_path / "bin"
    programs.mkdir()
    for program in Path("/usr/bin").iterdir():
        if program.name not in ("apt-get", "dpkg-deb", "mmdebstrap", "mksquashfs", "newuidmap"):
            (programs / program.name).symlink_to(program)
    done = subprocess.run(
        [tmp_path / "scripts/setup", tmp_path / "requirements.txt"],
        env={"PATH": str(programs), "HOME": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("release", "manager", "packages"),
    [
        ("ID=fedora\n", "dnf", "qemu-system-x86-core"),
        ('ID=rocky\nID_LIKE="rhel centos fedora"\n', "dnf", "qemu-system-x86-core"),
        ('ID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n', "zypper", "qemu-x86"),
        ("ID=manjaro\nID_LIKE=arch\n", "pacman", "qemu-system-x86"),
    ],
)
def test_setup_installs_by_the_package_manager_of_the_distribution(
    tmp_path: Path, release: str, manager: str, packages: str
) -> None:
    """A stand-in for the package manager notes what it is asked for: its repositories cannot be reached from a test."""
    programs, here = tmp_path / "bin", tmp_path / "checkout"
    programs.mkdir()
    for name in ("sh", "readlink", "dirname", "basename", "id", "python3", "flock", "env", "sudo"):
        if found := shutil.which(name):
            (programs / name).symlink_to(found)
    standin = programs / manager
    standin.write_text(f'#!/bin/sh\necho "$@" >"{tmp_path}/asked"\nexit 1\n')
    standin.chmod(0o755)
    copy_setup(here)
    (tmp_path / "os-release").write_text(release)
    (here / "requirements.txt").touch()
    done = subprocess.run(
        ["/bin/sh", here / "scripts/setup", here / "requirements.txt"],
        env={"PATH": str(programs), "KDUEL_OS_RELEASE": str(tmp_path / "os-release")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3 and f"{packages} " in done.stderr, done.stderr
    asked = (tmp_path / "asked").read_text().split()
    assert packages in asked and "mmdebstrap" not in asked


def test_messages_name_the_package_of_the_hosts_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    for family in FAMILIES:
        host_family.cache_clear()
        monkeypatch.setattr("platform.freedesktop_os_release", lambda family=family: {"ID": "x", "ID_LIKE": family})
        assert install_command("xz") == f"{COMMANDS[family]} {'xz-utils' if family == 'debian' else 'xz'}"
        assert ("mmdebstrap" in install_command("mmdebstrap")) and ("Debian" in install_command("mmdebstrap")) == (
            family != "debian"
        )
    host_family.cache_clear()
