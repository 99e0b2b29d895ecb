"""Boots that are made again: for the emulator's faults and for other work on the host, never for the contender's."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path

import pytest
from cut_runs import cut_run
from msgspec import structs
from outside import BENCHMARK

from kduel.core.experiment import Void
from kduel.core.host import HostStep
from kduel.core.progress import Progress
from kduel.run.repeat import EndedTrial, QuietHostWait, Repeats
from kduel.store.collect import collect
from kduel.store.documents import Disturbance, TrialRecord
from kduel.store.rundir import RunDir


def records(run: Path, folder: str = "trials") -> list[dict]:
    found = sorted((run / folder).glob("[!.]*/trial.json")) if (run / folder).is_dir() else []
    return [json.loads(path.read_text()) for path in found]


def results(kduel, run: Path) -> dict:
    return json.loads(kduel("report", "--format", "json", run).stdout)


HOST = "fixed = 3\n[host]\nquiet_seconds = 0\n"


@pytest.mark.slow
def test_a_fault_of_the_emulator_is_made_again_and_not_held_against_the_contender(kduel, write_study, tmp_path: Path):
    run = tmp_path / "run"
    done = kduel("run", write_study(machine="faults = {new = 2}", blocks=HOST), "--out", run)
    assert done.returncode == 0, done.stderr
    kept, again = records(run), records(run, "repeated")
    assert [one["status"] for one in kept] == ["ok"] * 6
    assert [one["repeats"] for one in kept if one["contender"] == "outside-new"] == [2, 2, 2]
    assert len(again) == 6 and {one["void"]["code"] for one in again} == {"emulator-fault"}
    assert Repeats(RunDir.open(run), None, 6).seconds == pytest.approx(sum(one["seconds"] for one in again))
    said = results(kduel, run)
    assert len(said["repeated"]) == 6 and len(said["trials"]) == 6
    assert "6 boots made again (emulator-fault): 6 of outside-new" in " ".join(kduel("report", run).stdout.split())
    # What is made again comes last in its block, whatever the plan drew.
    for block in (1, 2, 3):
        mine = sorted((one for one in kept if one["block"] == block), key=lambda one: one["started"])
        assert [one["contender"] for one in mine] == ["outside-old", "outside-new"]
    assert "no change" in (verified := kduel("verify", run)).stdout or verified.returncode == 0
    (next((run / "repeated").iterdir()) / "console.log").write_text("changed")
    assert kduel("verify", run).returncode != 0


def test_the_same_fault_in_every_boot_is_the_kernels(kduel, write_study, tmp_path: Path):
    run = tmp_path / "run"
    done = kduel("run", write_study(machine="faults = {new = 99}", blocks=HOST), "--out", run)
    assert done.returncode == 1 and "outside-new could not be measured" in done.stderr
    void = [one["void"] for one in records(run) if one["contender"] == "outside-new"]
    assert [one["code"] for one in void] == ["oops", "oops"] and "4 boots in a row" in void[0]["message"]


@pytest.mark.slow
def test_a_run_that_was_killed_while_a_trial_was_to_be_made_again_goes_on(kduel, write_study, tmp_path: Path):
    run = tmp_path / "run"
    kduel("run", write_study(machine="faults = {new = 1}", blocks=HOST), "--out", run)
    cut_run(run, [one["id"] for one in records(run) if one["block"] > 1 or one["contender"] == "outside-new"])
    assert kduel("resume", run).returncode == 0
    kept = records(run)
    assert [one["status"] for one in kept] == ["ok"] * 6
    first = next(one for one in kept if one["contender"] == "outside-new" and one["block"] == 1)
    assert first["repeats"] == 2 and (run / "repeated" / f"{first['id']}.2").is_dir()


@pytest.mark.slow
@pytest.mark.parametrize(
    "table",
    [
        "max_wait = 20.0\nquiet_seconds = 0\ncovariate = true",
        "max_wait = 20.0\nquiet_seconds = 0.5",
        "max_wait = 100\ncovariate = true",
    ],
)
def test_a_run_goes_on_by_what_its_study_declares_of_the_host(kduel, write_study, tmp_path: Path, table: str):
    run = tmp_path / "run"
    study = write_study(machine="max_wait = 10.0", blocks=f"fixed = 3\n[host]\n{table}\n")
    assert kduel("run", study, "--out", run).returncode == 0
    lock = (run / "lock.json").read_text()
    cut_run(run, [one["id"] for one in records(run) if one["block"] > 1])
    done = kduel("resume", run)
    assert done.returncode == 0, done.stderr
    assert len(records(run)) == 6 and (run / "lock.json").read_text() == lock


@pytest.mark.slow
def test_a_disturbed_trial_is_made_again_and_void_where_the_study_asks_for_it(kduel, write_study, tmp_path: Path):
    run = tmp_path / "run"
    machine, blocks = "max_wait = 10.0\ndisturbed = {old = 1, new = 2}", HOST + "max_wait = 20.0\nrepeats = 1\n"
    done = kduel("run", write_study(machine=machine, blocks=blocks), "--out", run)
    assert done.returncode == 1 and "not measured: outside-new" in done.stderr
    kept = records(run)
    assert {(one["contender"], one["status"]) for one in kept} == {("outside-old", "ok"), ("outside-new", "void")}
    assert {one["void"]["code"] for one in kept if one["void"]} == {"host-disturbed"}
    assert "waited for a CPU of the host 50 %" in next(one["void"]["message"] for one in kept if one["void"])
    assert len(records(run, "repeated")) == 6


@pytest.mark.slow
def test_a_host_that_is_never_quiet_ends_the_run_that_asked_for_quiet(kduel, write_study, tmp_path: Path):
    run = tmp_path / "run"
    machine, blocks = "max_wait = 10.0\ndisturbed = {old = 99, new = 99}", "max = 20\n[host]\nquiet_seconds = 0\n"
    done = kduel("run", write_study(machine=machine, blocks=blocks + "max_wait = 20.0\nrepeats = 0\n"), "--out", run)
    assert done.returncode == 1 and "the host disturbed the last 6 trials" in done.stderr
    assert "max_wait" in done.stderr and len(records(run)) == 6


@pytest.mark.slow
def test_by_a_machines_default_a_busy_host_costs_a_few_boots_and_loses_none(kduel, write_study, tmp_path: Path):
    run = tmp_path / "run"
    machine = "max_wait = 10.0\ndisturbed = {old = 99, new = 99}"
    assert kduel("run", write_study(machine=machine, blocks=HOST), "--out", run).returncode == 0
    assert [one["status"] for one in records(run)] == ["ok"] * 6
    assert len(records(run, "repeated")) == 2  # a fifth of six, rounded up


@pytest.mark.slow
def test_other_work_before_each_boot_is_a_covariate_where_the_study_declares_it(
    kduel, write_study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run = tmp_path / "run"
    study = write_study(machine="max_wait = 10.0", blocks="fixed = 2\n[host]\nquiet_seconds = 0\ncovariate = true\n")
    assert kduel("run", study, "--out", run).returncode == 0
    assert json.loads((run / "lock.json").read_text())["covariates"] == ["other work before the boot"]
    assert all(0 <= one["other_work_before"] <= 1.1 for one in records(run))
    monkeypatch.setattr("kduel.core.plugins.plugins", lambda _: {BENCHMARK.name: BENCHMARK})
    [table, _] = collect(run)
    assert all(None not in values for values in table.covariates["other work before the boot"].values())
    assert results(kduel, run)["study"]["covariates"] == ["other work before the boot"]


def test_a_machine_that_records_nothing_of_its_host_cannot_be_held_to_it(kduel, write_study, tmp_path: Path):
    for key in ("max_wait = 5", "covariate = true"):
        done = kduel("run", write_study(blocks=f"fixed = 1\n[host]\n{key}\n"), "--out", tmp_path / "run")
        assert done.returncode == 2 and "does not record the load of its host" in done.stderr


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("max_wait = 0.0", "host.max_wait is 0\nGive per cent above 0, at most 100"),
        ("max_wait = 101", "host.max_wait is 101\nGive per cent above 0, at most 100"),
        ('max_wait = "5 %"', "host.max_wait: this must be a number, and is text"),
        ("repeats = -1", "host.repeats is -1\nGive a number from 0 to 100"),
        ("repeats = 1.5", "host.repeats: this must be a whole number, and is a number"),
        ("quiet_seconds = 100000", "host.quiet_seconds is 100000\nGive seconds from 0 to 86400"),
        ('covariate = "yes"', "host.covariate: this must be true or false, and is text"),
        ("wait = 1", "host: there is no key `wait`. Did you mean max_wait?\nThe keys of [host]: max_wait"),
    ],
)
def test_numbers_of_host_that_cannot_be_meant_are_refused(kduel, write_study, tmp_path: Path, key: str, said: str):
    done = kduel("run", write_study(blocks=f"fixed = 1\n[host]\n{key}\n"), "--out", tmp_path / "run")
    assert done.returncode == 2 and said in done.stderr


def ended(code: str | None, share: float = 0.5) -> EndedTrial:
    """A trial that waited for a share of its time."""
    step = HostStep(seconds=1.0, vcpu_run_s=1 - share, vcpu_wait_s=share)
    void = Void(code, "so it ended") if code else None
    record = TrialRecord(
        id="1", block=1, position=0, contender="a", status="void" if code else "ok", void=void, host={"a": step}
    )
    return EndedTrial(Path(), record)


@pytest.mark.parametrize(
    ("code", "again"),
    [
        (None, True),
        *((code, True) for code in ("wrong-clock", "no-results", "deadline", "hang", "qemu-hung", "soft-lockup")),
        *((code, True) for code in ("peer-late", "peer-hung")),
        *((code, False) for code in ("panic", "oops", "peer-died", "hard-lockup", "out-of-memory")),
    ],
)
def test_a_busy_host_excuses_starvation_and_no_crash(tmp_path: Path, code: str | None, again: bool):
    repeats = Repeats(RunDir(tmp_path), Disturbance(max_wait_pct=25.0), planned=10)
    [kept], why = repeats.judge_boot([ended(code)])
    assert why == ("host-disturbed" if again else "")
    assert kept.record.void and kept.record.void.code == ("host-disturbed" if again else code)
    assert (f"Its own trouble was {code}: so it ended" in kept.record.void.message) == bool(again and code)
    assert repeats.judge_boot([ended(code, share=0.1)])[1] == ""


def test_a_guest_with_more_cpus_than_its_host_may_look_locked_up_once(tmp_path: Path):
    """It always waits for the host, so a good trial counts; one that waiting explains is made again."""
    repeats = Repeats(RunDir(tmp_path), Disturbance(max_wait_pct=100.0), planned=10)
    for code, share in ((None, 0.9), ("panic", 0.9), ("soft-lockup", 0.1)):
        one = ended(code, share)
        assert repeats.judge_boot([one]) == ([one], "")
    [kept], why = repeats.judge_boot([ended("soft-lockup", 0.9)])
    assert why == "host-disturbed" and kept.record.void
    assert "90 %" in kept.record.void.message and "more CPUs than KDuel may use here" in kept.record.void.message
    assert "Its own trouble was soft-lockup: so it ended" in kept.record.void.message
    repeats.count(kept.record, why)
    [kept], why = repeats.judge_boot([ended("soft-lockup", 0.9)])
    assert kept.record.void and (why, kept.record.void.code) == ("", "soft-lockup")
    assert "more CPUs than KDuel may use here" in kept.record.void.message


def test_a_fault_of_the_emulator_is_made_again_three_times(tmp_path: Path):
    repeats, one = Repeats(RunDir(tmp_path), None, planned=10), ended("emulator-fault")
    for _ in range(3):
        assert repeats.judge_boot([one])[1] == "emulator-fault"
        repeats.count(one.record, "emulator-fault")
    [kept], why = repeats.judge_boot([one])
    assert kept.record.void and (why, kept.record.void.code) == ("", "oops")


def test_a_second_lockup_of_a_contender_is_its_kernels(tmp_path: Path):
    def locked_up(trial: str, contender: str) -> EndedTrial:
        one = ended("emulator-fault")
        void = Void("emulator-fault", "QEMU did it. It is no fault of the kernel. The console: soft lockup")
        changes = {"id": trial, "contender": contender, "void": void, "facts": {"excused": "soft-lockup"}}
        return structs.replace(one, record=structs.replace(one.record, **changes))

    repeats = Repeats(RunDir(tmp_path), None, planned=10)
    for trial, contender in (("1", "old"), ("2", "new")):
        assert repeats.judge_boot([locked_up(trial, contender)])[1] == "emulator-fault"
        repeats.count(locked_up(trial, contender).record, "emulator-fault")
    [kept], why = repeats.judge_boot([locked_up("7", "new")])
    assert kept.record.void and (why, kept.record.void.code) == ("", "soft-lockup")
    assert "A second boot of this contender" in kept.record.void.message
    assert "no fault of the kernel" not in kept.record.void.message
    assert repeats.judge_boot([ended("emulator-fault")])[1] == "emulator-fault", "an oops in patched code is none"


def test_only_what_recurred_is_blamed_on_a_kernel(tmp_path: Path):
    """Of guests that took turns one locked up a second time; the other's first oops stays the emulator's."""
    first, second = (
        structs.replace(one, record=structs.replace(one.record, id=number, contender=name, facts={"excused": what}))
        for number, name, what in (("1", "old", "oops"), ("2", "new", "soft-lockup"))
        for one in [ended("emulator-fault")]
    )
    repeats = Repeats(RunDir(tmp_path), None, planned=10)
    repeats.locked_up["new"] = 1
    kept, why = repeats.judge_boot([first, second])
    assert why == "" and [one.record.void.code for one in kept if one.record.void] == [
        "emulator-fault",
        "soft-lockup",
    ]
    # A lockup after three oopses of the same boot: nothing was locked up before.
    repeats = Repeats(RunDir(tmp_path), None, planned=10)
    repeats.made["2", "emulator-fault"] = 3
    [kept_one], _ = repeats.judge_boot([second])
    assert kept_one.record.void and kept_one.record.void.message.startswith("4 boots in a row")


def test_by_default_a_fifth_of_the_plan_is_made_again_for_the_hosts_sake(tmp_path: Path):
    repeats = Repeats(RunDir(tmp_path), Disturbance(max_wait_pct=25.0), planned=10)
    for number in range(2):
        assert repeats.judge_boot([ended(None)])[1] == "host-disturbed"
        repeats.count(structs.replace(ended(None).record, id=f"other-{number}"), "host-disturbed")
    [kept], why = repeats.judge_boot([ended(None)])
    assert (kept.record.status, why) == ("ok", "")


class Clock:
    """A host whose load is a list, a number for each second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, load: list[float]) -> None:
        self.now, self.busy, self.load = 0.0, 0.0, deque(load)
        monkeypatch.setattr("kduel.run.repeat.time.monotonic", lambda: self.now)
        monkeypatch.setattr("kduel.run.repeat.pause", self.sleep)
        monkeypatch.setattr("kduel.run.repeat.cpu_times", lambda _: (self.busy, 0.0))
        monkeypatch.setattr("os.cpu_count", lambda: 2)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.busy += 2 * seconds * (self.load.popleft() if self.load else 0.0)


class Listener(Progress):
    def __init__(self) -> None:
        self.said: list[str] = []

    def info(self, text: str) -> None:
        self.said.append(text)


def trial(other: float | None) -> TrialRecord:
    step = HostStep(seconds=1.0, other_work=other)
    return TrialRecord(id="1", block=1, position=0, contender="a", status="ok", host={"a": step})


def test_the_runner_waits_for_quiet_bounded_and_shown(monkeypatch: pytest.MonkeyPatch):
    clock, listener = Clock(monkeypatch, [0.9, 0.8, 0.1]), Listener()
    quiet = QuietHostWait(Disturbance(max_wait_pct=25.0, quiet_seconds=10.0), listener)
    quiet.wait()
    assert clock.now == 3.0 and "90 % of the CPUs" in listener.said[0]
    quiet.note_trial(trial(0.1))
    quiet.wait()
    assert clock.now == pytest.approx(3.1), "a host that was and is quiet: a moment, and no wait"


def test_the_runner_waits_where_a_guest_with_priority_hid_other_work(monkeypatch: pytest.MonkeyPatch):
    """During the trial it got little of the CPUs; in the moment since, it takes them all."""
    clock, listener = Clock(monkeypatch, [0.0, 1.0, 1.0, 0.1]), Listener()
    quiet = QuietHostWait(Disturbance(max_wait_pct=25.0, quiet_seconds=10.0), listener)
    quiet.wait()
    assert (clock.now, listener.said) == (1.0, [])
    quiet.note_trial(trial(0.1))
    quiet.wait()
    assert clock.now == pytest.approx(3.1) and "100 % of the CPUs" in listener.said[0]


def test_waiting_in_vain_ends_and_gets_less_patient(monkeypatch: pytest.MonkeyPatch):
    clock, listener = Clock(monkeypatch, [1.0] * 1000), Listener()
    quiet = QuietHostWait(Disturbance(max_wait_pct=25.0, quiet_seconds=8.0), listener)
    for _ in range(40):
        quiet.note_trial(trial(0.9))
        quiet.wait()
    assert clock.now <= 2 * 8 + 4
    assert [line.partition("quiet host, ")[2] for line in listener.said] == [
        "8 s at most", "4 s at most", "2 s at most"
    ], "a line for each wait"  # fmt: skip


def test_a_host_that_has_been_quiet_is_waited_for_longer(monkeypatch: pytest.MonkeyPatch):
    """Bursts of 45 s: the first one is not waited for to its end, and those after a quiet moment are."""
    clock = Clock(monkeypatch, [1.0] * 11 + [0.0] + [1.0] * 46 + [0.0])
    rule = Disturbance(max_wait_pct=25.0, quiet_seconds=10.0, between_bursts_seconds=60.0)
    quiet, ends = QuietHostWait(rule, Listener()), []
    for _ in range(3):
        quiet.note_trial(trial(0.9))
        quiet.wait()
        ends.append(clock.now)
    assert ends == [pytest.approx(10, abs=1), pytest.approx(12, abs=1), pytest.approx(59, abs=1)]


def test_waits_in_vain_are_forgotten_when_the_host_becomes_quiet(monkeypatch: pytest.MonkeyPatch):
    """A burst so long that patience ends, a quiet trial, and another burst, which is waited for."""
    clock = Clock(monkeypatch, [1.0] * 100)
    quiet = QuietHostWait(Disturbance(max_wait_pct=25.0, quiet_seconds=8.0), Listener())
    for _ in range(6):
        quiet.note_trial(trial(0.9))
        quiet.wait()
    clock.load.clear()
    began = clock.now
    quiet.note_trial(trial(0.0))
    quiet.wait()
    assert clock.now == pytest.approx(began + 1.1), "a moment, and a look"
    clock.load.extend([1.0] * 5)
    quiet.note_trial(trial(0.9))
    quiet.wait()
    assert clock.now == pytest.approx(began + 1.1 + 6)


@pytest.mark.slow
def test_only_the_default_waits_longer_between_bursts(kduel, write_study, tmp_path: Path):
    for name, table in (("default", ""), ("declared", "[host]\nquiet_seconds = 7\n")):
        run = tmp_path / name
        study = write_study(machine="max_wait = 99.0", blocks=f"fixed = 2\n{table}")
        done = kduel("run", study, "--out", run)
        assert done.returncode == 0, done.stderr
        rule = json.loads((run / "lock.json").read_text())["disturbance"]
        assert (rule["quiet_seconds"], rule["between_bursts_seconds"]) == ((10, 60) if name == "default" else (7, 0))


def test_without_a_rule_nobody_waits(monkeypatch: pytest.MonkeyPatch):
    clock = Clock(monkeypatch, [1.0] * 10)
    QuietHostWait(None, Progress()).wait()
    assert clock.now == 0.0
