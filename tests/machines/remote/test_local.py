"""The machine `local`, by the command line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from local_machine import RELEASE, LocalMachine

from kduel.core.cache import Cache
from kduel.core.errors import HostError, InputError
from kduel.core.progress import Progress
from kduel.machines import Needs, machine_kind
from kduel.machines.remote import grub, local_unit

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the machine local needs root")


@pytest.mark.slow
def test_sysctls_are_compared_without_a_reboot_and_put_back(fixture: LocalMachine) -> None:
    process = fixture.kduel("run", str(fixture.study()), "--out", str(fixture.run))
    assert process.returncode == 0, fixture.said
    assert {record["status"] for record in fixture.records()} == {"ok"}
    assert fixture.stdout() == {"one": "4\n", "two2": "5\n"}
    assert (fixture.place / "domainname").read_text() == "before\n"
    assert not (fixture.place / "var" / "kduel-restore.sh").exists()
    assert list((fixture.place / "work").iterdir()) == []
    assert "in one boot of this machine" in " ".join(fixture.said.split())
    captured = json.loads(next(fixture.run.glob("trials/*/environment.json")).read_text())
    assert float(captured["temperatures"]["load"]) >= 0
    for record in fixture.records():
        [(label, step)] = record["host"].items()
        assert label == "name" and step["seconds"] >= 0 and step["interrupts"] >= 0
        assert step["vcpu_run_s"] is None and step["other_work"] is None


def test_a_machine_without_a_program_that_looks_at_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in ("cat", "cut", "sh", "uname"):
        (tmp_path / program).symlink_to(str(shutil.which(program)))
    monkeypatch.setenv("PATH", str(tmp_path))
    kind = machine_kind("local")
    with pytest.raises(HostError, match="cannot be examined") as refused:
        kind.prepare(kind.read_settings({}), [], Needs(), cache=Cache(tmp_path / "cache"), progress=Progress())
    assert "date" in str(refused.value.remedy)


@pytest.mark.slow
def test_a_rule_for_disturbed_trials_cannot_be_declared(fixture: LocalMachine) -> None:
    study = fixture.study()
    study.write_text(study.read_text() + "[host]\nmax_wait = 10.0\n")
    assert fixture.kduel("run", str(study), "--out", str(fixture.run)).returncode == 2
    assert "does not record the load of its host, so [host] cannot be applied" in " ".join(fixture.said.split())


@pytest.mark.slow
def test_what_a_local_user_left_in_tmp_is_not_run_as_root(fixture: LocalMachine) -> None:
    planted = fixture.place / "planted" / "gates.sh"
    planted.write_text(f"id -u >{fixture.place}/owned\nsched_stop() {{ :; }}\n")
    orphan = fixture.place / "work" / "kduel-orphan"
    orphan.mkdir()
    (orphan / "session").write_text(f"{os.getsid(0)}\n")
    os.chown(orphan, 1234, 1234)
    process = fixture.kduel("run", str(fixture.study()), "--out", str(fixture.run))
    assert process.returncode == 0, fixture.said
    assert not (fixture.place / "owned").exists(), "the planted file ran as root"
    assert planted.read_text().startswith("id -u"), "and nothing of KDuel's was written through it"
    assert orphan.exists(), "what is not root's is not taken for a trial's"


@pytest.mark.slow
def test_a_sysctl_of_the_command_line_is_compared_without_a_reboot(fixture: LocalMachine) -> None:
    kernel = f"installed:{RELEASE}"
    words = [kernel, f"{kernel},sysctl=kernel.domainname=two2", "--command", "wc -c </proc/sys/kernel/domainname"]
    process = fixture.kduel(
        *("run", *words, "--blocks", "1", "--machine", f"local:directory={fixture.place}/work,free_mib=1"),
        *("--out", str(fixture.run)),
    )
    assert process.returncode == 0, fixture.said
    assert {record["status"] for record in fixture.records()} == {"ok"}
    assert json.loads((fixture.run / "results.json").read_text())["study"]["unit"] == "load"


@pytest.mark.slow
def test_the_unit_must_be_declared(fixture: LocalMachine) -> None:
    process = fixture.kduel("run", str(fixture.study(unit="boot")), "--out", str(fixture.run))
    assert process.returncode == 2
    assert 'unit = "load"' in fixture.said and not fixture.run.exists()


@pytest.mark.slow
def test_a_kernel_that_does_not_run_needs_a_reboot(fixture: LocalMachine) -> None:
    path = fixture.study()
    path.write_text(path.read_text().replace(f"installed:{RELEASE}", "installed:1.2.3", 1))
    process = fixture.kduel("run", str(path), "--out", str(fixture.run))
    assert process.returncode == 2
    assert "one has the kernel 1.2.3" in fixture.said and 'boot = "grub-reboot"' in fixture.said


@pytest.mark.slow
@pytest.mark.skipif(Path("/sys/kernel/sched_ext").exists(), reason="this kernel has sched_ext")
def test_a_kernel_without_sched_ext_is_told_before_any_trial(fixture: LocalMachine) -> None:
    path = fixture.study()
    path.write_text(path.read_text().replace('name = "two2"\n', 'name = "two2"\nscheduler = "true"\n'))
    process = fixture.kduel("run", str(path), "--out", str(fixture.run))
    assert process.returncode == 3
    assert "which two2 needs" in fixture.said and not (fixture.run / "trials").exists()


def run_into_a_step(fixture: LocalMachine) -> subprocess.Popen[str]:
    """KDuel, whose trial has set a sysctl and carries out a step."""
    process = fixture.kduel(
        "run", str(fixture.study("touch $T/running; sleep 60")), "--out", str(fixture.run), wait=False
    )
    end = time.monotonic() + 600
    while not (fixture.place / "running").exists():
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.1)
    return process


@pytest.mark.slow
def test_an_interruption_ends_the_step_and_puts_back(fixture: LocalMachine) -> None:
    process = run_into_a_step(fixture)
    os.kill(int((fixture.place / "pid").read_text()), signal.SIGINT)
    # Its output ends with the last process that has it, so only where the step has ended, too.
    process.communicate(timeout=600)
    assert process.returncode == 130
    assert (fixture.place / "domainname").read_text() == "before\n"
    assert not (fixture.place / "var" / "kduel-restore.sh").exists()
    assert list((fixture.place / "work").iterdir()) == []


@pytest.mark.slow
def test_after_a_crash_the_next_trial_puts_back_first(fixture: LocalMachine) -> None:
    """The trial's whole session and KDuel itself are killed while a sysctl is set."""
    process = run_into_a_step(fixture)
    (session,) = (fixture.place / "work").glob("kduel-*/session")
    members = subprocess.run(
        ["ps", "-o", "pid=", "-s", session.read_text().strip()], capture_output=True, text=True, check=True
    )
    for member in members.stdout.split():
        with suppress(ProcessLookupError):  # a helper of the shell that ended since the list was made
            os.kill(int(member), signal.SIGKILL)
    os.kill(int((fixture.place / "pid").read_text()), signal.SIGKILL)
    process.communicate(timeout=600)
    assert (fixture.place / "domainname").read_text() in ("one\n", "two2\n"), "the crash must leave something"
    assert (fixture.place / "var" / "kduel-restore.sh").exists()
    fixture.run = fixture.place / "again"
    process = fixture.kduel("run", str(fixture.study()), "--out", str(fixture.run))
    assert process.returncode == 0, fixture.said
    assert fixture.stdout() == {"one": "4\n", "two2": "5\n"}
    assert (fixture.place / "domainname").read_text() == "before\n"
    assert not (fixture.place / "var" / "kduel-restore.sh").exists()
    assert list((fixture.place / "work").iterdir()) == [], "the dead trial's directory is gone too"


@pytest.mark.slow
def test_across_reboots(fixture: LocalMachine) -> None:
    study = fixture.study(boot="grub-reboot", unit="boot")
    process = fixture.kduel("run", str(study), "--out", str(fixture.run))
    assert process.returncode == 3
    assert f"kduel local install {fixture.run}" in " ".join(fixture.said.split())
    assert not (fixture.place / "chosen").exists(), "it must not reboot without what goes on afterwards"


@pytest.mark.slow
def test_it_goes_on_after_each_reboot(fixture: LocalMachine) -> None:
    """As if the unit were installed: each start of KDuel measures the trial that the last one rebooted for, and reboots."""
    fixture.kduel("local", "install", str(fixture.run))
    study = fixture.study("cat /proc/sys/kernel/domainname; grep -o own=word /proc/cmdline", "grub-reboot", "boot")
    study.write_text(study.read_text().replace('name = "two2"\n', 'name = "two2"\ncmdline = "own=word"\n'))
    command = ["run", str(study), "--out", str(fixture.run)]
    statuses = []
    for _ in range(6):
        process = fixture.kduel(*command)
        statuses.append(process.returncode)
        if process.returncode == 0:
            break
        command = ["resume", str(fixture.run)]
    assert statuses == [130, 130, 0], fixture.said
    assert [record["status"] for record in fixture.records()] == ["ok", "ok"], fixture.said
    assert fixture.stdout() == {"one": "4\n", "two2": "14\n"}
    assert sorted((fixture.place / "chosen").read_text().split()) == ["kduel-2", "the-entry"]
    assert not (fixture.place / "var" / "kduel-local.json").exists()
    fixture.kduel("local", "status")
    assert f"after a reboot {fixture.run} continues" in fixture.said
    fixture.kduel("local", "remove")
    assert "removed /etc/systemd/system/kduel-resume.service" in fixture.said
    assert list((fixture.place / "units").iterdir()) == []


@pytest.mark.slow
def test_a_reboot_in_mid_trial_voids_it(fixture: LocalMachine) -> None:
    fixture.kduel("local", "install", str(fixture.run))
    study = fixture.study(
        "[ -e $T/once ] || { : >$T/once; systemctl reboot; sleep 60; }; echo", "grub-reboot", "boot"
    )
    fixture.kduel("run", str(study), "--out", str(fixture.run))
    fixture.kduel("resume", str(fixture.run))
    fixture.kduel("resume", str(fixture.run))
    (first,) = fixture.records()
    assert first["status"] == "void" and first["void"]["code"] == "rebooted", first
    assert "boot_id" in first["facts"], "the boot that it died in"
    assert not list((fixture.place / "work").glob(f"kduel-{first['id']}")), "nothing of the dead trial is left"


@pytest.mark.slow
def test_a_machine_that_does_not_go_down_is_given_up(fixture: LocalMachine) -> None:
    fixture.kduel("local", "install", str(fixture.run))
    (fixture.place / "bin" / "systemctl").write_text("#!/bin/sh\nexit 0\n")
    study = fixture.study(boot="grub-reboot", unit="boot")
    study.write_text(study.read_text().replace("boot_deadline = 300", "boot_deadline = 3"))
    process = fixture.kduel("run", str(study), "--out", str(fixture.run))
    assert process.returncode == 1, fixture.said
    assert fixture.records()[0]["void"]["code"] == "boot-refused"
    assert fixture.records()[0]["void"]["message"].startswith("the machine did not go down within 3 s")


def test_the_unit_is_for_a_run_alone(fixture: LocalMachine) -> None:
    fixture.kduel("local", "install", str(fixture.place))
    assert "is there already and holds something else" in " ".join(fixture.said.split())
    assert not any((fixture.place / "units").iterdir())


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    root, run = tmp_path / "root", tmp_path / "a run" / "100% mine"
    (root / "etc/systemd/system").mkdir(parents=True)
    with pytest.raises(UnicodeEncodeError):
        local_unit.install(tmp_path / "a\udcff", root)
    assert not any((root / "etc/systemd/system").iterdir())
    path = local_unit.install(run, root)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f'"{run}"'.replace("%", "%%") in path.read_text()
    assert local_unit.installed_for(root) == run
    wants = root / "etc/systemd/system/multi-user.target.wants" / local_unit.NAME
    assert wants.is_symlink()
    with pytest.raises(InputError, match="installed already"):
        local_unit.install(tmp_path / "other", root)
    (root / "var/lib").mkdir(parents=True)
    (root / "var/lib/kduel-restore.sh").write_text("echo powersave >/dev/no/governor\n")
    with pytest.raises(HostError, match="did not restore everything"):
        local_unit.remove(root)
    (root / "var/lib/kduel-restore.sh").write_text(f"echo powersave >'{tmp_path}/governor'\n")
    (root / local_unit.STATE).write_text("{}")
    (root / "boot/grub").mkdir(parents=True)
    (root / "boot/grub/custom.cfg").write_text(f"mine\n{grub.BEGIN}\nours\n{grub.END}\n")
    said = "\n".join(local_unit.remove(root))
    assert "restored the settings" in said and "unfinished trial" in said
    assert (tmp_path / "governor").read_text() == "powersave\n"
    assert (root / "boot/grub/custom.cfg").read_text() == "mine\n"
    assert not path.exists() and not wants.is_symlink() and not any((root / "var/lib").iterdir())
    assert local_unit.remove(root) == []
