"""A received run that holds more than regular files: nothing outside of it is read or shown, and verify names what was added."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from made_runs import make_run

from kduel.cli import kduel as kduel_command
from kduel.core.errors import InputError, KduelError
from kduel.core.regular_files import open_regular, special_files
from kduel.judge.evaluate import judge_run
from kduel.store import merged
from kduel.store.imported.support.store import Source, bring_in
from kduel.store.integrity import Integrity
from kduel.store.rundir import RESULTS, RunDir

CSV = "contender,trial,benchmark,metric,unit,better,value\n"
SECRET = "hunter2hunter2"


@pytest.fixture
def run(unpack: Callable[[str], Path]) -> Path:
    """A run that is as it was left."""
    path = unpack("qemu")
    (path / RESULTS).write_bytes(msgspec.json.encode(judge_run(path)))
    return path


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the reader's own."""
    path = tmp_path / "secret"
    path.write_text(f'{{"token": "{SECRET}", "uname": "{SECRET}"}}')
    return path


def in_trial(run: Path, name: str) -> Path:
    """The path of a file in the run's first trial."""
    return next(iter(sorted((run / "trials").glob(f"*/{name}"))))


PLACES = ["environment.json", "*/stdout", "*/stderr", "*/exit.json", "console.log", "trial.json", "manifest.sha256"]


@pytest.fixture
def kduel() -> Callable[..., Result]:
    """`kduel ARGUMENTS...` in this process."""
    return lambda *words: CliRunner().invoke(kduel_command, [*map(str, words)])


@pytest.mark.slow
@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_a_file_of_a_trial_that_leads_elsewhere_is_refused(kduel, run: Path, secret: Path, name: str, kind: str):
    path = in_trial(run, name)
    path.unlink()
    path.symlink_to(secret) if kind == "link" else os.mkfifo(path)
    for words in (
        ["report", run, "-f", "json"],
        ["status", run],
        ["report", run, "-f", "html"],
        ["query", "--update", run.parent],
    ):
        done = kduel(*words)
        assert SECRET not in done.output and isinstance(done.exception, SystemExit | KduelError | None)
        assert isinstance(done.exception, InputError) or words[1] == "--update", done.output
    assert SECRET not in "".join(p.read_text(errors="replace") for p in (run / "report").rglob("*") if p.is_file())
    done = kduel("verify", run)
    assert done.exit_code == 1 and f"{path.relative_to(run)} was added: it is a" in done.stdout
    assert SECRET not in done.output


@pytest.mark.slow
@pytest.mark.parametrize("name", ["study.toml", "lock.json", "plan.jsonl", "trials", "report", "explain", "exact"])
def test_a_document_or_directory_that_is_a_link_is_refused(kduel, run: Path, tmp_path: Path, name: str):
    elsewhere = tmp_path / "elsewhere"
    if (run / name).exists():
        (run / name).rename(elsewhere)
    else:
        elsewhere.mkdir()
    (run / name).symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    for form in ("text", "html"):
        assert isinstance(kduel("report", run, "-f", form).exception, InputError)
    done = kduel("verify", run)
    assert done.exit_code == 1 and f"{name} was added: it is a symbolic link" in done.stdout
    assert sorted(elsewhere.rglob("*")) == before, "nothing is written through it"


def test_what_was_added_is_named(kduel, run: Path):
    assert kduel("verify", run).exit_code == 0
    trial = in_trial(run, "trial.json").parent
    (trial / "new-directory").mkdir()
    done = kduel("verify", run)
    assert done.exit_code == 1 and f"trials/{trial.name}: new-directory was added" in done.stdout
    (trial / "new-directory").rmdir()
    (trial / "fifo").parent.mkdir(exist_ok=True)
    os.mkfifo(trial / "fifo")
    done = kduel("verify", run)
    assert done.exit_code == 1 and f"trials/{trial.name}/fifo was added: it is a FIFO" in done.stdout
    (trial / "fifo").unlink()
    (run / "trials/another").write_text("x")
    assert kduel("verify", run).exit_code == 1
    (run / "trials/another").unlink()
    (run / RESULTS).unlink()
    assert kduel("verify", run).exit_code == 1


@pytest.fixture
def kinds(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[Path, list[str]]]:
    """Runs that verify finds as they were left, and directories of each in which it is to miss nothing."""
    parts = [make_run(tmp_path / name, place=name, blocks=4) for name in ("one", "two")]
    for part in parts:
        (part / RESULTS).write_bytes(msgspec.json.encode(judge_run(part)))
    merged.merge(parts, tmp_path / "merged")
    (tmp_path / "theirs.csv").write_text(
        CSV + "".join(f"{arm},{n},job,time,s,lower,{n}\n" for arm in "ab" for n in (1, 2))
    )
    bring_in([Source(tmp_path / "theirs.csv")], tmp_path / "import")
    shutil.copytree(run, tmp_path / "whole")
    lock = RunDir.open(run).lock()
    monkeypatch.setattr("kduel.store.integrity.SUITE", lock.study.name)
    monkeypatch.setattr("kduel.store.integrity.EXACT_SEED", lock.seed)
    for part in ("exact", "explain/time.new"):
        shutil.copytree(run, tmp_path / "whole" / part)
    trial = next(iter((run / "trials").iterdir())).name
    return {
        "whole": (tmp_path / "whole", [".", "exact", "explain/time.new", f"exact/trials/{trial}", f"explain/time.new/trials/{trial}"]),
        "merged": (tmp_path / "merged", [".", "runs", "runs/one", "runs/two/trials/0001-b01-old"]),
        "import": (tmp_path / "import", [".", "imported", "imported/01"]),
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["whole", "merged", "import"])
def test_what_was_added_anywhere_is_named_in_every_kind_of_run(kduel, kinds, kind: str):
    path, folders = kinds[kind]
    (path / RESULTS).write_bytes(msgspec.json.encode(judge_run(path)))
    (path / "report").mkdir(exist_ok=True)
    done = kduel("verify", path)
    assert done.exit_code == 0, done.output
    for folder in folders:
        for name in ("new-file", "new-directory"):
            added = path / folder / name
            added.mkdir() if name == "new-directory" else added.write_text("x")
            done = kduel("verify", path)
            assert done.exit_code == 1 and f"{name} was added" in done.stdout, (folder, name, done.stdout)
            added.rmdir() if name == "new-directory" else added.unlink()


def test_a_file_of_a_part_that_cannot_be_read_is_not_called_unchanged(kinds, monkeypatch: pytest.MonkeyPatch):
    hidden = Integrity(checked=1, changes=[], unreadable=["trials/x/stdout was not compared"])
    monkeypatch.setattr(merged, "verify", lambda _: hidden)
    assert merged.examine(kinds["merged"][0]).unreadable == [
        f"runs/{name}: trials/x/stdout was not compared" for name in ("one", "two")
    ]


def test_the_runs_own_directory_may_be_reached_by_a_link(kduel, run: Path, tmp_path: Path):
    (tmp_path / "linked").symlink_to(run)
    assert kduel("report", tmp_path / "linked").exit_code == 0


def test_a_trial_is_kept_without_what_its_script_left_besides_files(run: Path, tmp_path: Path):
    opened = RunDir.open(run)
    record = opened.records()[0]
    staged = opened.stage()
    shutil.copytree(opened.directory(record.id), staged, dirs_exist_ok=True)
    shutil.rmtree(opened.directory(record.id))
    (staged / "link").symlink_to("/etc/passwd")
    (staged / "a/b/c").mkdir(parents=True)
    os.mkfifo(staged / "a/fifo")
    (staged / "d").mkdir()
    (staged / "d/file").write_text("x")
    opened.keep(staged, record)
    kept = opened.directory(record.id)
    assert not list(special_files(kept)) and not (kept / "a").exists() and (kept / "d/file").read_text() == "x"


def test_only_regular_files_are_opened(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "directory").mkdir()
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
        for name in ("link", "fifo", "directory", "socket"):
            with pytest.raises(OSError):
                open_regular(tmp_path / name)
        assert {path.name for path, _ in special_files(tmp_path)} == {"link", "fifo", "socket"}
    assert open_regular(tmp_path / "file").read() == b"x"
