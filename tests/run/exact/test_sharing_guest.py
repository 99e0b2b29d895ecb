"""Shared lines in real guests: planted counters, the same numbers every time, four CPUs, and a QEMU that cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

import msgspec
import pytest
from counting import quick, trial_of
from planted import COUNTERS, CULPRIT, HELPER, Planted, counting, history

from kduel.core.cache import Cache
from kduel.core.errors import HostError
from kduel.core.progress import Progress
from kduel.explain.sharing.compare import SharingExplanation
from kduel.explain.sharing.touched import touched_text
from kduel.run.exact.measure import exact_machine
from kduel.run.exact.sharing import explain_sharing, name_lines, region_number, sharing_study
from kduel.run.exact.subject import Subject
from kduel.run.prepare import Ready, make_ready
from kduel.study.file import parse_study
from kduel.study.load import assemble

pytestmark = [pytest.mark.guest, pytest.mark.network]

KERNEL = "debian:6.12-cloud"
STUDY = """[study]
name = "sharing-test"
[machine]
kind = "icount"
cpus = 4
[settle]
mode = "fixed"
seconds = 1
[blocks]
fixed = 1
[[benchmark]]
use = "sharing"
conditions = 2
operation = ["null-call", "dup"]
workers = "threads"
primary = ["lines"]
[[benchmark]]
use = "sharing"
conditions = 2
operation = "create-delete"
objects = "directory"
primary = ["lines"]
[[contender]]
kernel = "debian:6.12-cloud"
cmdline = "noapictimer"
[[contender]]
kernel = "debian:6.12-cloud"
cmdline = "noapictimer"
name = "again"
"""


def ready_of(text: str) -> Ready:
    study = assemble(parse_study(text, "test"), text, "test")
    return make_ready(study, cache=Cache(), progress=Progress())


@pytest.fixture(scope="module")
def symbols(tmp_path_factory: pytest.TempPathFactory) -> str:
    """All symbols of the kernel, as a boot that names lines brings them home."""
    ready = make_ready(sharing_study([quick(KERNEL)] * 2, "null-call"), cache=Cache(), progress=Progress())
    into = tmp_path_factory.mktemp("symbols")
    trial = trial_of(ready, into, deadline=900)
    outcome = exact_machine(ready).boot_once(trial, variables=True)
    assert not outcome.void, outcome.message
    return (into / "kallsyms").read_text()


@pytest.fixture(scope="module")
def kernels(symbols: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    variables = {"shared": "warn_count", "per-cpu": "process_counts"}
    return counting(KERNEL, symbols, variables, tmp_path_factory.mktemp("kernels"))


def explained(kernels: dict[str, Path], *order: str) -> SharingExplanation:
    """The lines of a null call in some of the kernels."""
    ready = make_ready(
        sharing_study([quick(kernels[name]) for name in order], "null-call"), cache=Cache(), progress=Progress()
    )
    names = [arm.contender.name for arm in ready.arms]
    subject = Subject(ready=ready, names=(names[0], names[1]))
    return explain_sharing(subject, names, "null-call", cache=Cache(), progress=Progress())


def test_a_counter_is_a_line_where_all_cpus_have_one_and_false_sharing_where_each_has_a_part_of_it(
    kernels: dict[str, Path],
) -> None:
    found = explained(kernels, "plain", "per-cpu", "apart", "beside", "shared", "twice")
    assert [(arm.median, arm.mean) for arm in found.kernels] == [(0, 0)] * 3 + [(1, 1)] * 3
    # An increment is a load and a store; a second one on the same line makes it move no more often.
    weights = [(arm.accesses, arm.locked) for arm in found.kernels]
    assert weights == [(0, 0)] * 3 + [(2, 0), (2, 1), (4, 2)]
    (false,), (shared,) = (arm.lines for arm in found.kernels[3:5])
    assert shared.name == "warn_count" and shared.false == 0
    assert "__do_sys_getppid" in shared.meetings[0].function
    assert false.name.startswith(COUNTERS) and false.false == 1
    assert HELPER in false.meetings[0].function


def test_a_field_that_moves_to_another_line_is_a_line_less_and_a_line_more(kernels: dict[str, Path]) -> None:
    found = explained(kernels, "plain", "here", "there")
    plain, here, there = (
        {tuple(line.fields): line.times for line in arm.touched if line.thing == "task_struct"}
        for arm in found.kernels
    )
    ((left, times),), ((came, as_often),) = here.items() - plain.items(), there.items() - plain.items()
    assert left != came and times == as_often == 1 and "+" not in "".join(left + came)
    assert plain.items() <= here.items() and plain.items() <= there.items()
    text = touched_text(msgspec.structs.replace(found, kernels=found.kernels[1:]))
    assert f"- 1: {left[0]}" in text and f"+ 1: {came[0]}" in text and text.count("task_struct") == 1


def test_a_bisection_finds_the_commit_that_shares_a_line_and_names_it(
    kernels: dict[str, Path], tmp_path: Path
) -> None:
    repository = tmp_path / "linux"
    history(repository, Planted(kernels["plain"], kernels["shared"], kernels["shared"]))
    words = ["HEAD~8", "HEAD", "--tree", str(repository), "-b", "null-call", "--build-dir", str(tmp_path / "work")]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "kduel", "bisect", *words, "--sharing"),
            *("--build-command", "sh recipe", "--image", "kernel", "--plot", str(tmp_path / "lines.svg")),
        ],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert CULPRIT in done.stdout and "0 lines before it, 1 with it" in done.stdout
    assert "warn_count" in done.stdout and "warn_count" in (tmp_path / "lines.svg").read_text()


def test_a_trial_is_proved_by_its_twin_on_four_cpus(tmp_path: Path) -> None:
    """The kernels above are counted on two."""
    ready = ready_of(STUDY)
    outcome = ready.machine.boot(trial_of(ready, tmp_path, deadline=900))
    assert not outcome.void and "bit for bit" in outcome.facts["proof"], outcome.message
    null_call, dup, create = (ready.prepared.parse(tmp_path, index) for index in range(3))
    assert null_call["lines"] == 0 and dup["lines"] == 2  # of files_struct: its lock and its descriptors
    assert create["lines"] > 10  # of the directory


def test_a_qemu_that_does_not_export_what_it_takes_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    original = shutil.which("qemu-system-x86_64")
    assert original is not None
    binary = Path(original).read_bytes()
    assert b"\0cpu_exit\0" in binary
    place = Path(mkdtemp())  # where QEMU's own user may look, too
    request.addfinalizer(lambda: shutil.rmtree(place))
    place.chmod(0o755)
    silent = place / "qemu-system-x86_64"
    silent.write_bytes(binary.replace(b"\0cpu_exit\0", b"\0cpu_exiT\0"))
    silent.chmod(0o755)
    ready = make_ready(sharing_study([KERNEL, KERNEL], "null-call"), cache=Cache(), progress=Progress())
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    arm = ready.arms[0]
    script = ready.setup.script(arm.contender, range(1))
    with pytest.raises(HostError, match="does not export cpu_exit") as refused:
        name_lines(exact_machine(ready), arm, script, region_number(ready, 0), cache=Cache(tmp_path / "cache"))
    assert "one CPU" in refused.value.remedy
