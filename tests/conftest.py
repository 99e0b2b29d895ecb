"""What holds for all tests."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forked import ForkedKduel
from hypothesis import HealthCheck, settings
from long_files import estimate_seconds, files_of_part

from kduel.core.cache import cache_root

# labgrid's gRPC has handlers of fork, which abort in a child of a process where its threads are at work.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
# A guest with 18 times the weight of others starves the daemons, and the guests, of the tests beside it.
os.environ.setdefault("KDUEL_PRIORITY", "normal")
# A shell starts what it puts in the background with SIGINT ignored, and children inherit that; several tests
# interrupt a child and see what it leaves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# And so does nohup with SIGHUP.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

STUDY = """
[study]
name = "letters"
delta = 1.0
[[contender]]
kernel = "outside:old"
[[contender]]
kernel = "outside:new"
[machine]
kind = "process"
{machine}
[settle]
mode = "fixed"
seconds = 0
[blocks]
{blocks}
[[benchmark]]
use = "outside-letters"
text = ["hello", "longer"]
primary = ["letters"]
"""

SOURCE = Path(__file__).parents[1] / "src"

# No test is one of timing: a busy machine must not fail one.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The files that take longest come first: a worker must not begin one when all others end. With KDUEL_TEST_PART=1/2 the
    files of the first half stay."""
    tests = Counter(item.path for item in items)
    seconds = {path: estimate_seconds(path, count) for path, count in tests.items()}
    items.sort(key=lambda item: (-seconds[item.path], item.path))
    if part := os.environ.get("KDUEL_TEST_PART"):
        chosen = files_of_part(seconds, part)
        config.hook.pytest_deselected(items=[item for item in items if item.path not in chosen])
        items[:] = [item for item in items if item.path in chosen]


def _need(*programs: str) -> str:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    found = next(filter(None, (shutil.which(program, path=path) for program in programs)), None)
    if found is None:
        # In CI a skipped test would hide that scripts/setup-dev does not install what the test calls.
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"not installed: {' or '.join(programs)}")
    return found


@pytest.fixture(scope="session")
def need() -> Callable[..., str]:
    """need(PROGRAM, ...): the path of the first of these programs that is installed.

    Without any of them the test is skipped; where CI is set it fails.
    """
    return _need


@pytest.fixture
def unpack(tmp_path: Path) -> Callable[[str], Path]:
    """unpack(KIND): the directory of a kept run (store/fixtures/README.md), fresh for each test."""

    def run(kind: str) -> Path:
        with tarfile.open(Path(__file__).parent / f"store/fixtures/{kind}.tar.xz") as tar:
            # Python before 3.11.4 has no filters; these archives are our own.
            tar.extraction_filter = getattr(tarfile, "data_filter", None)
            tar.extractall(tmp_path / "old")
        return tmp_path / "old" / kind

    return run


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """The directory in which the plug-ins of support/outside.py are installed as a distribution."""
    here = Path(__file__).parent
    info = tmp_path / "site/outside-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    groups = {"benchmarks": "BENCHMARK", "kernels": "KERNELS", "machines": "MACHINE", "report": "REPORT"}
    (info / "entry_points.txt").write_text(
        "".join(f"[kduel.{group}]\noutside = outside:{name}\n" for group, name in groups.items())
    )
    (tmp_path / "site/outside.py").write_text((here / "support/outside.py").read_text())
    return tmp_path / "site"


@pytest.fixture
def environment(tmp_path: Path, outside: Path) -> dict[str, str]:
    """Environment variables of a user who has installed these plug-ins."""
    return os.environ | {
        "PYTHONPATH": f"{SOURCE}:{outside}",
        "KDUEL_CACHE": str(tmp_path / "cache"),
        "NO_COLOR": "1",
    }


@pytest.fixture
def shared_cache(environment: dict[str, str]) -> None:
    """`kduel` with real guests: Debian's kernels, the root and what was compiled are made once, and not for each test."""
    environment["KDUEL_CACHE"] = str(cache_root())


@pytest.fixture(scope="session")
def forked_kduel() -> Iterator[ForkedKduel]:
    """Starts `kduel` in a fraction of the time."""
    with ForkedKduel(os.environ | {"PYTHONPATH": str(SOURCE)}) as program:
        yield program


@pytest.fixture
def start_kduel(environment: dict[str, str], tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `kduel ARGUMENTS...` in a Python of its own, for tests of what happens while it starts."""
    place = tmp_path / "place"
    place.mkdir(exist_ok=True)

    def call(*arguments: object, cwd: Path = place) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "kduel", *map(str, arguments)],
            env=environment, cwd=cwd, capture_output=True, text=True, timeout=1800, check=False,
        )  # fmt: skip

    return call


@pytest.fixture
def kduel(
    forked_kduel: ForkedKduel,
    start_kduel: Callable[..., subprocess.CompletedProcess[str]],
    environment: dict[str, str],
    tmp_path: Path,
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `kduel ARGUMENTS...` as a user starts it, by default in an empty directory."""

    def call(*arguments: object, cwd: Path = tmp_path / "place") -> subprocess.CompletedProcess[str]:
        if forked_kduel.can_start(environment):
            return forked_kduel(arguments, cwd=cwd, environment=environment)
        return start_kduel(*arguments, cwd=cwd)

    return call


@pytest.fixture
def write_study(tmp_path: Path) -> Callable[..., Path]:
    """A study of two pretended kernels on the pretended machine."""

    def write(machine: str = "", blocks: str = "fixed = 3") -> Path:
        path = tmp_path / "letters.toml"
        path.write_text(STUDY.format(machine=machine, blocks=blocks))
        return path

    return write
