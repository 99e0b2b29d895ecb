"""A run's directory loses nothing and shows nothing half-written."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import wait_for

from kduel.core.editions import EDITION
from kduel.core.errors import HostError, InputError
from kduel.core.experiment import Contender, MachineRecord, Settle, Step
from kduel.store import run_lock
from kduel.store.documents import KernelRecord, Lock, TrialRecord
from kduel.store.rundir import RunDir
from kduel.store.whole_files import as_disk_error, write_whole
from kduel.study.file import Blocks, StudyHeader
from kduel.study.plan import PlannedTrial


def lock() -> Lock:
    return Lock(
        kduel="0",
        seed=1,
        origin="s",
        edition=EDITION,
        study=StudyHeader(name="s"),
        blocks=Blocks(),
        settle=Settle(),
        machine=MachineRecord(kind="qemu"),
        contenders=[Contender(kernel="a", name="a")],
        kernels=[KernelRecord(spec="a")],
        steps=[Step(label="x", benchmark="kbench")],
    )


def planned(number: int) -> PlannedTrial:
    return PlannedTrial(id=f"t{number}", block=1, position=number, contender="a", boot=number, steps=[0])


def record(number: int) -> TrialRecord:
    return TrialRecord(id=f"t{number}", block=1, position=number, contender="a", status="ok")


def test_a_trial_is_invisible_until_it_is_kept(tmp_path: Path):
    run = RunDir.create(tmp_path / "run", "text", lock(), [planned(0)])
    staged = run.stage()
    (staged / "console.log").write_text("x")
    assert run.records() == []
    run.keep(staged, record(0))
    assert [r.id for r in run.records()] == ["t0"]
    assert (run.directory("t0") / "console.log").read_text() == "x"
    assert RunDir.open(run.path).lock().seed == 1
    assert run.plan() == [planned(0)]


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_file_that_cannot_be_synced_keeps_its_trial_invisible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
):
    run = RunDir.create(tmp_path / "run", "text", lock(), [planned(0)])
    staged = run.stage()
    for number in range(40):
        (staged / f"file-{number}").write_text("x")
    synced, real = [], os.fsync

    def fails_once(handle: int) -> None:
        name = Path(f"/proc/self/fd/{handle}").readlink().name
        synced.append(name)
        if name == "file-23":
            raise OSError(code, os.strerror(code))
        real(handle)

    monkeypatch.setattr(os, "fsync", fails_once)
    with pytest.raises(HostError, match=os.strerror(code)):
        run.keep(staged, record(0))
    assert "file-23" in synced and run.records() == []
    monkeypatch.setattr(os, "fsync", real)
    run.keep(staged, record(0))
    assert [kept.id for kept in run.records()] == ["t0"]


def test_every_file_and_directory_is_synced_before_the_trial_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run = RunDir.create(tmp_path / "run", "text", lock(), [planned(0)])
    staged = run.stage()
    (staged / "01-x/deep").mkdir(parents=True)
    names = {"a", "01-x/b", "01-x/deep/c"}
    for name in names:
        (staged / name).write_text("x")
    synced: set[str] = set()

    def noted(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        if path != run.trials:
            assert run.records() == []
        synced.add(str(path.relative_to(staged)) if path.is_relative_to(staged) else "the trials")

    monkeypatch.setattr(os, "fsync", noted)
    run.keep(staged, record(0))
    assert synced == {*names, ".", "01-x", "01-x/deep", "trial.json", "manifest.sha256", "the trials"}


def test_records_come_in_the_order_of_time(tmp_path: Path):
    run = RunDir.create(tmp_path / "run", "", lock(), [])
    for number in (10, 2, 1):
        run.keep(run.stage(), record(number))
    assert [r.position for r in run.records()] == [1, 2, 10]


def test_leftovers_of_a_killed_runner_are_swept(tmp_path: Path):
    run = RunDir.create(tmp_path / "run", "", lock(), [])
    (run.stage() / "half").write_text("x")
    assert run.records() == []
    with run.at_work():
        assert list(run.trials.iterdir()) == []


def test_something_in_the_way_is_left_alone(tmp_path: Path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="something else"):
        RunDir.create(tmp_path / "run", "", lock(), [])
    assert (tmp_path / "run" / "thesis.txt").read_text() == "mine"
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="is no directory"):
        RunDir.create(tmp_path / "file", "", lock(), [])


@pytest.mark.parametrize("name", ["lock.json", "plan.jsonl", "trials/t0/trial.json"])
@pytest.mark.parametrize("content", [b"{", b"", b"[]", b"\xff", None])
def test_a_damaged_file_is_named(tmp_path: Path, name: str, content: bytes | None):
    run = RunDir.create(tmp_path / "run", "", lock(), [planned(0)])
    run.keep(run.stage(), record(0))
    path = run.path / name
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    if name == "plan.jsonl" and content == b"":
        assert run.plan() == []
        return
    with pytest.raises(InputError) as caught:
        RunDir.open(run.path).lock()
        run.plan()
        run.records()
    assert path.name in str(caught.value)


def test_no_run_is_said_to_be_none(tmp_path: Path):
    with pytest.raises(InputError, match="not a run"):
        RunDir.open(tmp_path)


def test_a_second_runner_is_turned_away(tmp_path: Path):
    run = RunDir.create(tmp_path / "run", "", lock(), [])
    program = (
        "import sys, pathlib; from kduel.store.rundir import RunDir\n"
        "with RunDir(pathlib.Path(sys.argv[1])).hold():\n    print('held', flush=True); sys.stdin.read()"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    with subprocess.Popen(
        [sys.executable, "-c", program, str(run.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as other:
        assert other.stdout
        assert other.stdout.readline() == "held\n"
        with pytest.raises(InputError, match="another kduel"), run.hold():
            pass
        other.kill()

    def is_free() -> bool:
        with contextlib.suppress(InputError), run.hold():
            return True
        return False

    wait_for(is_free, "end of the lock with its holder")


def test_a_file_is_old_or_new_and_nothing_stays_beside_it(tmp_path: Path):
    path = tmp_path / "results.json"
    write_whole(path, b"old")
    with pytest.raises(TypeError):
        write_whole(path, "not bytes")  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_has_its_name_only_once_its_data_are_on_the_disk_and_the_name_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Without the first sync a power cut leaves an empty file, without the second the old one."""
    path, seen = tmp_path / "results.json", []
    fsync = os.fsync

    def note(handle: int) -> None:
        what = Path(f"/proc/self/fd/{handle}").readlink()
        seen.append(("directory" if what == tmp_path else what.read_bytes(), path.exists()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", note)
    write_whole(path, b"new")
    assert seen == [(b"new", False), ("directory", True)]


def test_a_full_disk_is_told_and_loses_nothing():
    # /dev/full is the kernel's own full disk.
    with pytest.raises(OSError, match="No space"):
        Path("/dev/full").write_bytes(b"x" * 10)
    with pytest.raises(HostError, match="No space") as caught, as_disk_error(Path("run")):
        Path("/dev/full").write_bytes(b"x" * 10)
    assert "kduel resume" in caught.value.remedy


def test_a_program_without_a_name_is_told_apart_from_the_disk(tmp_path: Path) -> None:
    with (
        pytest.raises(HostError, match="a program without a name cannot be run: ") as caught,
        as_disk_error(tmp_path),
    ):
        subprocess.run([""], check=False)
    assert "Name a program" in caught.value.remedy and "space" not in caught.value.remedy


def test_who_is_at_work_in_a_run_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a power cut it is known which host's command was there."""
    synced: list[int] = []
    fsync = os.fsync

    def note(handle: int) -> None:
        synced.append(os.fstat(handle).st_size)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", note)
    with run_lock.hold(tmp_path, 0):
        assert synced == [(tmp_path / run_lock.NAME).stat().st_size] and synced[0] > 0
