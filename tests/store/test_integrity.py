"""What was changed in a run after its trials had ended is found, named, and told by every report."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from kduel.core.errors import InputError
from kduel.judge.evaluate import judge_run
from kduel.store.documents import FleetRecord, Lock, TrialRecord, study_of
from kduel.store.integrity import checked_plan, examine, follows, measured_late, missing, trials_of
from kduel.store.manifest import NAME, changes, run_digests, write_manifest
from kduel.store.rundir import RESULTS, RunDir
from kduel.study.plan import make_plan


@pytest.fixture
def run(unpack: Callable[[str], Path]) -> RunDir:
    return RunDir.open(unpack("icount"))


def found(run: RunDir) -> list[str]:
    lock = run.lock()
    return examine(run, lock, trials_of(run, lock)).changes


def first(run: RunDir) -> Path:
    return min(run.trials.iterdir())


def test_an_untouched_run_is_as_it_was_left(run: RunDir):
    lock = run.lock()
    integrity = examine(run, lock, trials_of(run, lock))
    assert (integrity.checked, integrity.changes) == (2, [])


def test_a_boot_that_was_made_again_is_checked(run: RunDir):
    lock, trial = run.lock(), first(run)
    copy = run.repeated / f"{trial.name}.1"
    shutil.copytree(trial, copy)
    integrity = examine(run, lock, trials_of(run, lock))
    assert (integrity.checked, integrity.changes) == (3, [])


def test_steps_are_left_out_on_an_exact_machine_alone_and_not_in_its_first_block(run: RunDir):
    """All that later blocks leave out rests on what the first one counted."""
    lock = run.lock()
    planned = {trial.id: trial for trial in checked_plan(run, lock)}
    record = run.records()[0]
    assert record.block == 1 and len(record.steps) > 1 and follows(record, planned[record.id], exact=True)
    for steps in ([], record.steps[:1], record.steps[::-1]):
        assert not follows(msgspec.structs.replace(record, steps=steps), planned[record.id], exact=True)
    later, plan = (msgspec.structs.replace(one, block=2) for one in (record, planned[record.id]))
    for steps, fits in (([], True), (record.steps[1:], True), (record.steps[::-1], False)):
        assert follows(msgspec.structs.replace(later, steps=steps), plan, exact=True) == fits
    assert not follows(msgspec.structs.replace(later, steps=[]), plan, exact=False)


@pytest.mark.parametrize("change", ["changed", "missing", "added"])
def test_each_raw_file_that_differs_is_named(run: RunDir, change: str):
    trial = first(run)
    for path in [*(p for p in trial.rglob("*") if p.is_file() and p.name not in (NAME, "trial.json"))]:
        name = path.relative_to(trial)
        data = path.read_bytes()
        if change == "changed":
            path.write_bytes(data + b"x")
        elif change == "missing":
            path.unlink()
        else:
            path = path.with_name(path.name + ".more")
            path.write_bytes(data)
            name = path.relative_to(trial)
        assert found(run) == [f"trials/{trial.name}: {name} {'is' if change == 'missing' else 'was'} {change}"]
        if change == "added":
            path.unlink()
        else:
            path.write_bytes(data)
    assert found(run) == []


def test_sha256sum_checks_a_manifest(run: RunDir):
    """Whatever names a guest gave its files."""
    trial = first(run)
    for name in ("with space", "new\nline", "back\\slash", b"\xff not utf-8"):
        (trial / os.fsdecode(name)).write_text("x")
    write_manifest(trial)
    done = subprocess.run(["sha256sum", "--check", "--strict", NAME], cwd=trial, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert changes(trial, run_digests(run.path)) == []
    (trial / "new\nline").write_text("y")
    assert changes(trial, run_digests(run.path)) == [("new\nline", "changed")]


def test_a_trial_vouches_for_the_lock_and_the_study_it_was_run_by(run: RunDir):
    text = (run.path / "lock.json").read_text()
    (run.path / "lock.json").write_text(text.replace('"delta": 1.0', '"delta": 9.0'))
    (run.path / "study.toml").unlink()
    assert sorted(found(run)) == [
        "lock.json was changed after 2 of 2 trials had ended",
        "study.toml is missing after 2 of 2 trials had ended",
    ]


def test_a_file_that_is_gone_is_missing_now(run: RunDir):
    """It "was missing": as if it had never been there."""
    trial = first(run)
    (trial / "console.log").unlink()
    (trial / "guest.sh").write_text("other")
    (line,) = found(run)
    assert line == f"trials/{trial.name}: console.log is missing, guest.sh was changed"


def test_a_trial_without_its_manifest_is_told(run: RunDir):
    (first(run) / NAME).unlink()
    (problem,) = found(run)
    assert problem.startswith("cannot read ") and NAME in problem


@pytest.mark.parametrize("damage", [b"", b"x", b"0" * 64 + b" name\n", b"g" * 63 + b"  name\n", b"\0\xff\n"])
def test_a_damaged_manifest_is_named(run: RunDir, damage: bytes):
    (first(run) / NAME).write_bytes(damage)
    problems = found(run)
    assert problems and all(NAME in problem or "was added" in problem for problem in problems)


@pytest.mark.slow
def test_reports_tell_what_was_changed(output, run: RunDir):
    shutil.copy(first(run) / "console.log", first(run) / "console.bak")
    warnings = json.loads(output("report", run.path, "--format", "json"))["warnings"]
    (told,) = [one["message"] for one in warnings if one["code"] == "changed-afterwards"]
    assert told == f"The run was changed afterwards: trials/{first(run).name}: console.bak was added."
    for form in ("text", "markdown", "mail", "latex", "html"):
        assert "console.bak was added" in " ".join(output("report", run.path, "-f", form, "-o", "-").split()), form
    for command in ("diff", "query --history"):
        assert "console.bak was added" in " ".join(output(*command.split(), run.path).split()), command


def test_the_command_names_changes_and_ends_with_1(kduel, run: RunDir, unpack: Callable[[str], Path]):
    (run.path / RESULTS).write_bytes(msgspec.json.encode(judge_run(run.path)))
    done = kduel("verify", run.path)
    assert (done.returncode, done.stdout) == (0, "2 trials checked, nothing changed afterwards\n")
    whole = (run.path / RESULTS).read_bytes()
    (run.path / RESULTS).write_text("{}")
    assert "from a copy" not in kduel("verify", run.path).stdout, "it can be written again"
    (run.path / RESULTS).write_bytes(whole)
    (first(run) / "trial.json").write_text((first(run) / "trial.json").read_text().replace("}", " }", 1))
    done = kduel("verify", run.path)
    assert done.returncode == 1
    *lines, remedy = done.stdout.splitlines()
    assert lines == ["2 trials checked, 1 change found:", f"  trials/{first(run).name}: trial.json was changed"]
    assert "from a copy" in remedy
    found = json.loads(kduel("verify", run.path, "--format", "json").stdout)
    assert found["checked"] == 2 and len(found["changes"]) == 1


def test_imported_runs_are_verified(kduel, unpack: Callable[[str], Path]):
    imported = unpack("imported")
    assert kduel("verify", imported).stdout == "1 imported file checked, nothing changed afterwards\n"
    (original,) = (path for path in (imported / "imported").rglob("*") if path.is_file())
    original.write_text(original.read_text() + " ")
    done = kduel("verify", imported)
    assert done.returncode == 1 and "was changed after it had been imported" in done.stdout


# The plan follows from the seed.


@pytest.mark.parametrize("change", ["doubled", "shortened", "another order", "another seed", "empty"])
def test_a_plan_that_the_seed_does_not_give_is_refused(kduel, unpack: Callable[[str], Path], change: str):
    path = unpack("process")
    run = RunDir.open(path)
    lines = (path / "plan.jsonl").read_text().splitlines(keepends=True)
    changed = {
        "doubled": lines * 2,
        "shortened": lines[:-2],
        "another order": lines[::-1],
        "another seed": lines,
        "empty": [],
    }[change]
    (path / "plan.jsonl").write_text("".join(changed))
    lock = run.lock()
    if change == "another seed":
        lock = msgspec.structs.replace(lock, seed=8)
    with pytest.raises(InputError) as caught:
        checked_plan(run, lock)
    assert "plan.jsonl" in caught.value.message and f"seed {lock.seed}" in caught.value.message
    assert examine(run, lock, []).changes == [caught.value.message]
    if change == "another seed":
        # The same contender may come first: what differs then is the seed of the trial.
        expected = make_plan(study_of(lock, ""), 8, lock.edition)
        alike = msgspec.structs.replace(expected[0], seed=1)
        (path / "plan.jsonl").write_bytes(
            b"".join(msgspec.json.encode(trial) + b"\n" for trial in [alike, *expected[1:]])
        )
        with pytest.raises(InputError) as caught:
            checked_plan(run, lock)
        assert (
            f"line 1: the trial {alike.id!r} has seed {alike.seed}, where seed 8 gives {expected[0].seed}"
            in caught.value.message
        )
    if change == "doubled":
        done = kduel("resume", path)
        assert done.returncode == 2 and "has 12 lines, where the study and seed 7 give 6" in done.stderr


@pytest.mark.parametrize(("key", "value"), [("alpha", 0.7), ("delta", 500.0)])
def test_a_number_of_a_lock_that_nobody_can_have_given_is_one_to_be_restored(
    unpack: Callable[[str], Path], key: str, value: float
):
    path = unpack("process") / "lock.json"
    document = json.loads(path.read_text())
    document["study"][key] = value
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=rf"lock\.json: study\.{key} is {value:g}") as caught:
        RunDir.open(path.parent).lock()
    assert "restore it" in caught.value.remedy and "Give" not in caught.value.remedy


def test_a_line_of_the_plan_with_an_unknown_key_or_without_one_is_named(unpack: Callable[[str], Path]):
    run = RunDir.open(unpack("process"))
    path = run.path / "plan.jsonl"
    first_line, rest = path.read_text().split("\n", 1)
    for wrong in (first_line.replace("{", '{"strange":1,', 1), first_line.replace('"block":1,', "")):
        path.write_text(f"{wrong}\n{rest}")
        with pytest.raises(InputError, match=r"plan\.jsonl, line 1: .*(strange|block)"):
            run.plan()


def test_a_copied_trial_is_refused_by_every_command(unpack: Callable[[str], Path]):
    run = RunDir.open(unpack("process"))
    lock = run.lock()
    original = first(run)
    shutil.copytree(original, run.trials / "0004-b02-outside-new")
    with pytest.raises(InputError, match="holds the trial 0001-b01-outside-new, not one of its own name"):
        trials_of(run, lock)
    # With its name changed, too: it is another block's trial in that place.
    told = run.trials / "0004-b02-outside-new" / "trial.json"
    told.write_text(told.read_text().replace("0001-b01-outside-new", "0004-b02-outside-new"))
    with pytest.raises(InputError, match="is not of this run's plan"):
        trials_of(run, lock)


# Versions.


def test_a_trial_that_began_after_later_ones_was_measured_again(unpack: Callable[[str], Path]):
    """An earlier KDuel filled the place of a trial that was removed."""
    run = RunDir.open(unpack("qemu"))
    lock, records = run.lock(), run.records()
    first, second, third, *_ = records
    assert (first.block, second.block, third.block) == (1, 1, 2)

    def late(*changed: TrialRecord) -> list[str]:
        by_id = {record.id: record for record in (*records, *changed)}
        return [told.partition(" began after ")[0] for told in measured_late(lock, list(by_id.values()))]

    between = second.started[:-6] + "9" + second.started[-6:]  # A later fraction of the same second.
    assert second.started < between < third.started
    again = msgspec.structs.replace
    assert late() == []
    assert late(again(first, started=between)) == [f"trials/{first.id}"]
    assert late(again(first, started=between, repeats=1)) == [], "made again at the end of its block"
    assert late(again(first, started="2999", repeats=1), again(second, started="2999")) == [
        f"trials/{first.id}, trials/{second.id}"
    ]
    lock.fleet = FleetRecord(kind="slurm", members=[])
    assert late(again(first, started="2999")) == [], "a block that one machine lost, another makes later"
    lock.fleet, lock.machine.exact = None, True
    assert late(again(first, started="2999")) == []


def test_in_a_fleet_only_later_blocks_tell_that_a_trial_was_removed(unpack: Callable[[str], Path]):
    """Its controller does not know which trials wait to be made again."""
    run = RunDir.open(unpack("qemu"))
    lock, records = run.lock(), run.records()
    fleet = msgspec.structs.replace(lock, fleet=FleetRecord(kind="local", members=[]))
    assert missing(lock, records[1:2]) and not missing(fleet, records[1:2])
    assert missing(fleet, records[1:3]) == [f"trials/{records[0].id} is missing, though later trials are there"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lock.json", "trial.json", "import.json"])
def test_a_later_version_is_refused_and_an_unknown_key_named(kduel, unpack: Callable[[str], Path], name: str):
    run = unpack("imported" if name == "import.json" else "icount")
    path = next(run.glob("trials/*")) / name if name == "trial.json" else run / name
    found = json.loads(path.read_text())
    path.write_text(json.dumps(found | {"schema": 99, "kduel": "7.5"}))
    done = kduel("report", run)
    assert done.returncode == 2
    assert f"{path} has schema 99 and was written by KDuel 7.5" in done.stderr and "Traceback" not in done.stderr
    path.write_text(json.dumps(found | {"schema": "new"}))
    assert "schema is 'new', not " in kduel("report", run).stderr
    path.write_text(json.dumps(found | {"strange": 1}))
    done = kduel("report", run)
    assert done.returncode == 2 and str(path) in done.stderr and "`strange`" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "key",
    [field.name for field in msgspec.structs.fields(Lock) if field.required],
)
def test_a_lock_that_lacks_a_key_says_which(unpack: Callable[[str], Path], key: str):
    run = unpack("qemu")
    lock = json.loads((run / "lock.json").read_text())
    del lock[key]
    (run / "lock.json").write_text(json.dumps(lock))
    with pytest.raises(InputError, match=rf"lock\.json: .*{key}"):
        RunDir.open(run).lock()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["plan.jsonl", "study.toml", "lock.json", "trial.json", "manifest.sha256", "console.log"]
)
@pytest.mark.parametrize("other", ["fifo", "device"])
def test_what_is_no_plain_file_is_refused_and_not_waited_for(output, run: RunDir, name: str, other: str):
    path = run.path / name if (run.path / name).exists() else first(run) / name
    path.unlink()
    if other == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    # AssertionError: the exit status is not 0.
    with pytest.raises((InputError, AssertionError)):
        output("verify", run.path)
    for command in ("report", "report --boot"):
        with contextlib.suppress(InputError, AssertionError):
            output(*command.split(), run.path)


def test_a_trial_that_was_removed_is_missed(unpack: Callable[[str], Path]):
    run = RunDir.open(unpack("qemu"))
    assert found(run) == []
    gone = first(run)
    shutil.rmtree(gone)
    assert found(run) == [f"trials/{gone.name} is missing, though later trials are there"]


def test_a_trial_that_waits_to_be_made_again_was_not_removed(unpack: Callable[[str], Path]):
    """The run was interrupted after a boot was put aside, and before it was made again at the end of its block."""
    run = RunDir.open(unpack("qemu"))
    last = max(record.block for record in run.records())
    for block in {1, last}:
        record = min((one for one in run.records() if one.block == block), key=lambda one: one.position)
        staged = run.directory(record.id).rename(run.trials / ".staged")
        run.put_aside(staged, record)
        missed = [change for change in found(run) if "is missing" in change]
        gone = [f"trials/{record.id} is missing, though later trials are there"]
        assert missed == ([] if block == last else gone)
        (run.repeated / f"{record.id}.1").rename(run.directory(record.id))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lock.json", "trial.json", "merge.json", "import.json", "plan.jsonl"])
@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"schema": "x"}', b"\xff\xfe"])
def test_damage_is_an_answer_of_verify_and_names_the_file(
    kduel, unpack: Callable[[str], Path], run: RunDir, tmp_path: Path, name: str, damage: bytes
):
    """Status 1: 2 would be a wrong question."""
    if name == "merge.json":
        path = tmp_path / "merged"
        (path / "runs").mkdir(parents=True)
    else:
        path = unpack("imported") if name == "import.json" else run.path
    (first(run) / name if name == "trial.json" else path / name).write_bytes(damage)
    done = kduel("verify", path)
    assert done.returncode == 1 and name in done.stdout, (done.stdout, done.stderr)
    found = json.loads(kduel("verify", path, "--format", "json").stdout)
    assert any(name in change for change in found["changes"]), found
    if name == "trial.json":
        assert found["checked"] == 1 and not any("is missing" in change for change in found["changes"]), found
