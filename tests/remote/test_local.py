"""The machine `local`, by the command line. What it changes it changes in namespaces of its own: the host's name stands for
any sysctl, /var/lib and /boot are empty, and a "reboot" is another boot id and the end of all that KDuel started there.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kduel.core.errors import InputError
from kduel.machines.remote import grub, local_unit

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the machine local needs root")
SOURCE = Path(__file__).parents[2] / "src"
RELEASE = platform.release()
GRUB = f"""if [ "${{next_entry}}" ] ; then
  set default="${{next_entry}}"
  set next_entry=
  save_env next_entry
fi
if [ -f $prefix/custom.cfg ]; then
  source $prefix/custom.cfg
fi
menuentry 'Debian' --id 'the-entry' {{
  linux /boot/vmlinuz-{RELEASE} root=/dev/sda1
}}
"""
PREPARE = r"""
set -e
mount -t tmpfs none /var/lib
mount -t tmpfs none /boot
mkdir /boot/grub
cp "$T/grub.cfg" /boot/grub/
echo image >"/boot/vmlinuz-$(uname -r)"
[ -e "$T/boot_id" ] || echo 00000000-0000-0000-0000-000000000000 >"$T/boot_id"
mount --bind "$T/units" /etc/systemd/system
mount --bind "$T/cmdline" /proc/cmdline
mount --bind "$T/boot_id" /proc/sys/kernel/random/boot_id
[ ! -e "$T/var" ] || cp -a "$T/var/." /var/lib/
mkdir -p /run/kduel-sched /tmp/kduel-sched
mount --bind "$T/sched" /run/kduel-sched
mount --bind "$T/planted" /tmp/kduel-sched
cat "$T/domainname" >/proc/sys/kernel/domainname
sh -c 'echo $$ >"$T/pid"; exec "$@"' sh "$@" && s=0 || s=$?
cat /proc/sys/kernel/domainname >"$T/domainname"
rm -rf "$T/var"
cp -a /var/lib "$T/var"
exit $s
"""
STUBS = {
    "grub-reboot": 'echo "$1" >>"$T/chosen"',
    "systemctl": """[ "$1" = reboot ] || exit 0
date +%s%N >"$T/boot_id"
entry=$(tail -n 1 "$T/chosen")
sed -n "/^menuentry '$entry'/,/^}/s/^ *linux *//p" /boot/grub/custom.cfg 2>/dev/null >"$T/cmdline.new"
[ -s "$T/cmdline.new" ] || echo root=/dev/sda1 >"$T/cmdline.new"
cat "$T/cmdline.new" >"$T/cmdline"
kill -TERM "$(cat "$T/pid")"
""",
}
"""What a reboot is, as far as KDuel can see: another boot id, the command line of the chosen entry, and its own end."""


class Fixture:
    """A directory for the namespaces' contents, and KDuel run inside of them."""

    def __init__(self, place: Path) -> None:
        self.place = place
        (place / "bin").mkdir()
        (place / "work").mkdir()
        (place / "units").mkdir()
        (place / "sched").mkdir()
        (place / "planted").mkdir()
        (place / "domainname").write_text("before\n")
        (place / "cmdline").write_text("root=/dev/sda1\n")
        (place / "grub.cfg").write_text(GRUB)
        for name, text in STUBS.items():
            path = place / "bin" / name
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)
        self.run = place / "run"

    def study(self, command: str = "cat /proc/sys/kernel/domainname", boot: str = "no", unit: str = "load") -> Path:
        contenders = "".join(
            f'[[contender]]\nkernel = "installed:{RELEASE}"\nname = "{name}"\nsysctl = {{"kernel.domainname" = "{name}"}}\n'
            for name in ("one", "two2")
        )
        path = self.place / "study.toml"
        path.write_text(
            f'[study]\nname = "local"\n{contenders}[machine]\nkind = "local"\nboot = "{boot}"\nboot_deadline = 20\n'
            f'free_mib = 1\ndirectory = "{self.place}/work"\n[settle]\nmode = "fixed"\nseconds = 0\n'
            f'[blocks]\nfixed = 1\nunit = "{unit}"\n[[benchmark]]\nuse = "command"\nlabel = "name"\n'
            f'command = "({command}) | wc -c"\nmetrics = [{{name="length", unit="B", better="none", regex="(\\\\d+)"}}]\n'
            'primary = ["length"]\n'
        )
        return path

    def kduel(self, *words: str, wait: bool = True) -> subprocess.Popen[str]:
        environment = os.environ | {
            "PYTHONPATH": str(SOURCE),
            "NO_COLOR": "1",
            "T": str(self.place),
            "PATH": f"{self.place}/bin:{os.environ['PATH']}",
        }
        process = subprocess.Popen(
            ["unshare", "--uts", "--mount", "sh", "-c", PREPARE, "sh", sys.executable, "-m", "kduel", *words],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        if wait:
            self.said = process.communicate(timeout=120)[0]
        return process

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted(self.run.glob("trials/*/trial.json"))]

    def stdout(self) -> dict[str, str]:
        return {
            str(record["contender"]): (self.run / "trials" / str(record["id"]) / "01-name" / "stdout").read_text()
            for record in self.records()
        }


@pytest.fixture
def fixture(tmp_path: Path) -> Fixture:
    return Fixture(tmp_path)


def test_sysctls_are_compared_without_a_reboot_and_put_back(fixture: Fixture) -> None:
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


def test_a_rule_for_disturbed_trials_cannot_be_declared(fixture: Fixture) -> None:
    study = fixture.study()
    study.write_text(study.read_text() + "[host]\nmax_wait = 10.0\n")
    assert fixture.kduel("run", str(study), "--out", str(fixture.run)).returncode == 2
    assert "does not record the load of its host, so [host] cannot be applied" in " ".join(fixture.said.split())


def test_what_a_local_user_left_in_tmp_is_not_run_as_root(fixture: Fixture) -> None:
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


def test_the_unit_must_be_declared(fixture: Fixture) -> None:
    process = fixture.kduel("run", str(fixture.study(unit="boot")), "--out", str(fixture.run))
    assert process.returncode == 2
    assert 'unit = "load"' in fixture.said and not fixture.run.exists()


def test_a_kernel_that_does_not_run_needs_a_reboot(fixture: Fixture) -> None:
    path = fixture.study()
    path.write_text(path.read_text().replace(f"installed:{RELEASE}", "installed:1.2.3", 1))
    process = fixture.kduel("run", str(path), "--out", str(fixture.run))
    assert process.returncode == 2
    assert "one has the kernel 1.2.3" in fixture.said and 'boot = "grub-reboot"' in fixture.said


def test_after_a_crash_the_next_trial_puts_back_first(fixture: Fixture) -> None:
    """The trial's whole session and KDuel itself are killed while a sysctl is set."""
    process = fixture.kduel(
        "run", str(fixture.study("touch $T/running; sleep 60")), "--out", str(fixture.run), wait=False
    )
    end = time.monotonic() + 60
    while not (fixture.place / "running").exists():
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.1)
    (session,) = (fixture.place / "work").glob("kduel-*/session")
    members = subprocess.run(
        ["ps", "-o", "pid=", "-s", session.read_text().strip()], capture_output=True, text=True, check=True
    )
    for member in members.stdout.split():
        os.kill(int(member), signal.SIGKILL)
    os.kill(int((fixture.place / "pid").read_text()), signal.SIGKILL)
    process.communicate(timeout=60)
    assert (fixture.place / "domainname").read_text() in ("one\n", "two2\n"), "the crash must leave something"
    assert (fixture.place / "var" / "kduel-restore.sh").exists()
    fixture.run = fixture.place / "again"
    process = fixture.kduel("run", str(fixture.study()), "--out", str(fixture.run))
    assert process.returncode == 0, fixture.said
    assert fixture.stdout() == {"one": "4\n", "two2": "5\n"}
    assert (fixture.place / "domainname").read_text() == "before\n"
    assert not (fixture.place / "var" / "kduel-restore.sh").exists()
    assert list((fixture.place / "work").iterdir()) == [], "the dead trial's directory is gone too"


def test_across_reboots(fixture: Fixture) -> None:
    study = fixture.study(boot="grub-reboot", unit="boot")
    process = fixture.kduel("run", str(study), "--out", str(fixture.run))
    assert process.returncode == 3
    assert f"kduel local install {fixture.run}" in " ".join(fixture.said.split())
    assert not (fixture.place / "chosen").exists(), "it must not reboot without what goes on afterwards"


def test_it_goes_on_after_each_reboot(fixture: Fixture) -> None:
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


def test_a_reboot_in_mid_trial_voids_it(fixture: Fixture) -> None:
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


def test_a_machine_that_does_not_go_down_is_given_up(fixture: Fixture) -> None:
    fixture.kduel("local", "install", str(fixture.run))
    (fixture.place / "bin" / "systemctl").write_text("#!/bin/sh\nexit 0\n")
    study = fixture.study(boot="grub-reboot", unit="boot")
    study.write_text(study.read_text().replace("boot_deadline = 20", "boot_deadline = 3"))
    process = fixture.kduel("run", str(study), "--out", str(fixture.run))
    assert process.returncode == 1, fixture.said
    assert fixture.records()[0]["void"]["code"] == "boot-refused"
    assert fixture.records()[0]["void"]["message"].startswith("the machine did not go down within 3 s")


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    root, run = tmp_path / "root", tmp_path / "a run" / "100% mine"
    (root / "etc/systemd/system").mkdir(parents=True)
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
