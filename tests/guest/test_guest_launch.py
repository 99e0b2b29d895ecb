"""Running a machine once, with real QEMU and kernels of a few bytes."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest
import tiny_kernels as tiny
from processes import command_lines
from waiting import wait_for

from kduel.core.cache import Cache
from kduel.core.errors import HostError
from kduel.guest import confine, launch, monitor, priority, probe
from kduel.guest.console import read_console
from kduel.guest.diagnosis import diagnose
from kduel.guest.emulator import qemu_version
from kduel.guest.launch import Launch, Run, run
from kduel.guest.monitor import read_registers
from kduel.guest.processor import known_features
from kduel.guest.vm import VirtualMachine
from kduel.machines.host import doctor

pytestmark = pytest.mark.guest


def machine(directory: Path, code: bytes, **changes: object) -> VirtualMachine:
    initrd = directory / "initrd"
    initrd.write_bytes(b"x")
    given = {
        "accelerator": "tcg",
        "cpus": 1,
        "memory_mib": 64,
        "kernel": tiny.kernel(directory / "kernel", code),
        "initrd": initrd,
        "cmdline": f"test={directory}",
    }
    return VirtualMachine(**{**given, **changes})


def boot(directory: Path, code: bytes, deadline: float = 60.0, **changes: object) -> Run:
    return run(
        machine(directory, code, **changes),
        directory / "console.log",
        Launch(boot_deadline=deadline, deadline=deadline),
    )


def named(directory: Path, done: Run) -> str:
    return diagnose(
        read_console(directory / "console.log"),
        ended=done.ended,
        ready=False,
        seconds=done.timings["off"],
        stderr=done.stderr,
        stuck=done.stuck,
    ).void


def test_what_a_kernel_says_is_kept_with_its_time(tmp_path):
    done = boot(tmp_path, tiny.say(b"hello\r\nworld") + tiny.POWER_OFF)
    assert read_console(tmp_path / "console.log") == ["hello", "world"]
    assert done.ended == "off" and done.exit_status == 0
    assert 0 < done.timings["launched"] <= done.timings["kernel"] <= done.timings["off"]
    assert named(tmp_path, done) == "silent-exit"


def test_a_long_console_comes_whole(tmp_path):
    line = b"0123456789abcdef" * 4 + b"\n"
    done = boot(tmp_path, tiny.say(line * 20) + tiny.POWER_OFF)
    assert done.ended == "off"
    assert read_console(tmp_path / "console.log") == [line.decode().strip()] * 20 + [""]


def test_a_triple_fault_is_an_end_not_another_boot(tmp_path):
    done = boot(tmp_path, tiny.say(b"once\n") + tiny.TRIPLE_FAULT)
    assert done.ended == "off"
    assert read_console(tmp_path / "console.log") == ["once", ""]


def test_a_silent_kernel_is_ended_at_its_deadline_and_named(tmp_path):
    began = time.monotonic()
    done = run(
        machine(tmp_path, tiny.SPIN), tmp_path / "console.log", Launch(boot_deadline=4, deadline=4, own_time=True)
    )
    assert done.ended == "deadline"
    assert 4 <= time.monotonic() - began < 300
    assert done.stuck and "CPU 0" in done.stuck[0] and "100001" in done.stuck[0]
    assert named(tmp_path, done) == "no-console"


@pytest.mark.parametrize(("own_time", "least"), [(True, 5), (False, 1)])
def test_time_in_which_the_host_gives_no_cpu_is_not_the_guests_where_that_is_asked(
    tmp_path, monkeypatch, own_time, least
):
    monkeypatch.setattr(launch.Scheduling, "kept_waiting", lambda _, passed: min(passed, 4.0))
    began = time.monotonic()
    done = run(
        machine(tmp_path, tiny.say(b"starting\n") + tiny.SPIN), tmp_path / "console.log",
        Launch(boot_deadline=1, deadline=90, own_time=own_time),
    )  # fmt: skip
    assert done.ended == "boot-deadline"
    assert least <= time.monotonic() - began
    assert done.waited == (4.0 if own_time else 0.0)


def test_a_guest_that_ended_while_we_were_stopped_was_not_cut_off(tmp_path, monkeypatch):
    released = launch._release

    def slowly(process, *rest, **others):
        vcpus = released(process, *rest, **others)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        return vcpus

    monkeypatch.setattr(launch, "_release", slowly)
    done = run(
        machine(tmp_path, tiny.say(b"up\n") + tiny.POWER_OFF),
        tmp_path / "console.log",
        Launch(boot_deadline=0, deadline=0),
    )
    assert done.ended == "off" and read_console(tmp_path / "console.log") == ["up", ""]


def test_a_kernel_that_sleeps_for_ever_is_seen_to_be_frozen(tmp_path):
    done = boot(tmp_path, tiny.say(b"starting\n") + tiny.SLEEP_FOR_EVER, deadline=10)
    assert done.stuck
    assert named(tmp_path, done) == "hang"


@pytest.mark.parametrize(("end", "early"), [(tiny.SLEEP_FOR_EVER, True), (tiny.SPIN, False)])
def test_a_guest_with_virtual_time_that_nothing_can_wake_is_not_waited_for(tmp_path, monkeypatch, end, early):
    monkeypatch.setattr("kduel.guest.watch.SILENT_SECONDS", 0.5)
    began = time.monotonic()
    done = run(
        machine(tmp_path, tiny.say(b"starting\n") + end), tmp_path / "console.log",
        Launch(boot_deadline=500 if early else 5, deadline=600, own_time=True),
    )  # fmt: skip
    assert done.ended == "boot-deadline" and done.stuck
    assert not early or time.monotonic() - began < 300
    assert named(tmp_path, done) == "hang"


def test_a_flood_on_the_console_does_not_grow_without_bound(tmp_path, monkeypatch):
    from kduel.guest import console

    monkeypatch.setattr(launch, "ConsoleLog", lambda path, started: console.ConsoleLog(path, started, limit=5000))
    done = boot(tmp_path, tiny.flood(), deadline=3)
    assert done.ended == "deadline"
    assert (tmp_path / "console.log").stat().st_size < 6000


def test_qemu_that_cannot_have_its_memory_is_the_hosts_trouble(tmp_path):
    with pytest.raises(HostError, match="QEMU does not start") as caught:
        boot(tmp_path, tiny.SPIN, memory_mib=1 << 30)
    assert "memory" in caught.value.message.lower()
    assert "Command: qemu-system-x86_64" in caught.value.remedy


def test_qemu_that_is_not_installed_is_the_hosts_trouble(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match="qemu-system-x86_64 is not installed"):
        boot(tmp_path, tiny.SPIN)


def test_vcpus_are_pinned(tmp_path):
    cpus = sorted(os.sched_getaffinity(0))[:1]
    done = run(
        machine(tmp_path, tiny.POWER_OFF), tmp_path / "console.log", Launch(boot_deadline=60, deadline=60, pin=cpus)
    )
    assert done.pinned == cpus


def test_a_qemu_that_does_not_answer_in_time_is_a_busy_hosts(tmp_path, monkeypatch):
    started = launch._start

    def stopped(*given):
        process = started(*given)
        process.send_signal(signal.SIGSTOP)
        return process

    monkeypatch.setattr(launch, "_start", stopped)
    monkeypatch.setattr(launch, "START_SECONDS", 0.5)
    with pytest.raises(HostError, match=r"no answer within 0\.5 s") as caught:
        run(
            machine(tmp_path, tiny.SPIN),
            tmp_path / "console.log",
            Launch(boot_deadline=60, deadline=60, own_time=True),
        )
    assert "too busy" in caught.value.remedy and "settings" not in caught.value.remedy
    assert guests(tmp_path) == []


KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, {here!r})
import tiny_kernels as tiny
from test_guest_launch import boot
boot(Path({directory!r}), tiny.say(b"up") + tiny.SPIN, deadline=300)
"""


@pytest.mark.essential
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_guest_dies_with_us_however_we_die(how, tmp_path):
    program = KILLED.format(here=str(Path(__file__).parent), directory=str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, stderr=-1
    ) as parent:
        log = tmp_path / "console.log"
        wait_for(lambda: log.exists() and "up" in log.read_text(), "guest")
        assert guests(tmp_path)
        parent.send_signal(how)
        parent.wait(600)
        wait_for(lambda: not guests(tmp_path), "end of the guest")


def guests(directory: Path) -> list[int]:
    """Processes of QEMU that boot a kernel for the directory."""
    split = {pid: line.split(b"\0") for pid, line in command_lines().items()}
    mine = f"test={directory}".encode()
    return [pid for pid, words in split.items() if words[0].endswith(b"qemu-system-x86_64") and mine in words]


def test_no_file_handle_and_no_process_is_left(tmp_path):
    boot(tmp_path, tiny.POWER_OFF)
    before = len(list(Path("/proc/self/fd").iterdir()))
    boot(tmp_path, tiny.POWER_OFF)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert not guests(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's QEMU becomes somebody else")
def test_roots_qemu_is_nobodys_and_confined(tmp_path):
    """Its user owns nothing, it can gain no rights, system calls are filtered; a private directory is no hindrance."""
    tmp_path.chmod(0o700)
    os.umask(0o077)
    found: dict[str, str] = {}
    log = tmp_path / "console.log"

    def look() -> None:
        wait_for(lambda: guests(tmp_path), "guest")
        process = guests(tmp_path)[0]

        def filtered() -> bool:
            lines = Path(f"/proc/{process}/status").read_text().splitlines()
            found.update(line.split(":\t", 1) for line in lines if ":\t" in line)
            return found["Seccomp"] == "2"

        try:
            # QEMU installs its filter some time after its start.
            wait_for(filtered, "filter")
            wait_for(lambda: log.exists() and "up" in log.read_text(), "guest")
        finally:
            os.kill(process, signal.SIGKILL)

    looker = threading.Thread(target=look)
    looker.start()
    try:
        done = boot(tmp_path, tiny.say(b"up\n") + tiny.SLEEP_FOR_EVER, deadline=900)
    finally:
        looker.join()
        os.umask(0o022)
    assert done.ended == "killed" and read_console(tmp_path / "console.log")[0] == "up"
    users = {int(word) for word in found["Uid"].split() + found["Gid"].split()}
    assert users and users <= set(confine.USERS) and found["Groups"].strip() == ""
    assert found["NoNewPrivs"] == "1" and found["Seccomp"] == "2"
    assert int(found["CapEff"], 16) == int(found["CapPrm"], 16) == 0


def test_a_qemu_that_the_host_killed_is_not_a_guest_that_went_away(tmp_path):
    killer = threading.Thread(
        target=lambda: (wait_for(lambda: "up" in log(), "guest"), os.kill(int(guests(tmp_path)[0]), signal.SIGKILL))
    )

    def log() -> str:
        path = tmp_path / "console.log"
        return path.read_text() if path.exists() else ""

    killer.start()
    done = boot(tmp_path, tiny.say(b"up\n") + tiny.SPIN)
    killer.join()
    assert done.ended == "killed" and done.exit_status == -signal.SIGKILL and done.killed_by == "SIGKILL"
    assert named(tmp_path, done) == "qemu-killed"


@pytest.mark.parametrize("said", ["KVM internal error. Suberror: 1", "error: kvm run failed Bad address"])
def test_a_guest_that_kvm_cannot_run_any_more_is_not_waited_for(tmp_path, monkeypatch, said):
    """QEMU stops such a guest, and does not end."""
    prefix = confine.prefix
    speak = ["sh", "-c", f'echo "qemu: warning: no invtsc" >&2; echo "{said}" >&2; exec "$@"', "sh"]
    monkeypatch.setattr(confine, "prefix", lambda *given: [*prefix(*given), *speak])
    done = boot(tmp_path, tiny.say(b"up\n") + tiny.SPIN, deadline=600)
    assert done.ended == "failed" and done.timings["off"] < 300
    assert named(tmp_path, done) == "qemu-failed" and said in done.stderr
    image = tiny.kernel(tmp_path / "kernel", tiny.SPIN)
    assert f"(QEMU ended: {said})" in probe._try(image, Path("/bin/true"), "tcg", 600).reason


def test_a_qemu_that_was_stopped_is_not_a_guest_that_hangs(tmp_path, monkeypatch):
    monkeypatch.setattr(monitor.Monitor.__init__, "__defaults__", (2.0,))
    log = tmp_path / "console.log"
    stopper = threading.Thread(
        target=lambda: (
            wait_for(lambda: log.exists() and "up" in log.read_text(), "guest"),
            os.kill(int(guests(tmp_path)[0]), signal.SIGSTOP),
        )
    )
    stopper.start()
    done = boot(tmp_path, tiny.say(b"up\n") + tiny.SPIN, deadline=20)
    stopper.join()
    assert done.ended == "hung" and named(tmp_path, done) == "qemu-hung"
    assert not guests(tmp_path)


def test_a_file_that_vanished_in_mid_run_is_named(tmp_path):
    given = machine(tmp_path, tiny.POWER_OFF)
    given.kernel.unlink()
    with pytest.raises(HostError, match=str(given.kernel)) as caught:
        run(given, tmp_path / "console.log", Launch(boot_deadline=60, deadline=60))
    assert "cache" in caught.value.remedy


CPUS = """CPU#0
RAX=0
RIP=ffffffff81c00000 RFL=00000246 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT={0}

CPU#1
RIP=ffffffff81c00aaa RFL=00000{1}46 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT={2}
"""


def test_registers_say_whether_a_cpu_can_be_reached():
    def off(text: str) -> dict[int, bool]:
        return {cpu: seen[0] for cpu, seen in read_registers(text).items()}

    assert off(CPUS.format(1, 2, 1)) == {0: False, 1: False}
    assert off(CPUS.format(1, 0, 0)) == {0: False, 1: True}
    assert off(CPUS.format(1, 0, 1)) == {0: False}, "an offline CPU is no trouble while another one works"
    assert read_registers("unknown command") == {}


def test_a_kernel_that_boots_nowhere_proves_nothing_of_kvm(tmp_path, monkeypatch):
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        pytest.skip("there is no /dev/kvm to be tried")
    monkeypatch.setattr(confine, "kvm_group", lambda: None)
    image = tiny.kernel(tmp_path / "kernel", tiny.POWER_OFF)
    assert not probe.kvm(image, Path("/bin/busybox"), cache=Cache(tmp_path / "cache")).works
    assert not list((tmp_path / "cache/probe").iterdir())


def test_the_probe_tells_what_its_guest_said_last(tmp_path: Path) -> None:
    image = tiny.kernel(tmp_path / "kernel", tiny.say(b"one\nKernel panic\n") + tiny.POWER_OFF)
    reason = probe._try(image, Path("/bin/true"), "tcg", 60).reason
    assert "QEMU ended" in reason and reason.endswith("its console ended with 'Kernel panic'")
    image = tiny.kernel(tmp_path / "silent", tiny.POWER_OFF)
    assert probe._try(image, Path("/bin/true"), "tcg", 60).reason.endswith("its console stayed empty")


@pytest.mark.parametrize("emulated", ["boots", "begins to boot"])
def test_a_kvm_that_failed_on_a_busy_host_is_tried_longer_and_again_later(tmp_path, monkeypatch, emulated):
    tried: list[tuple[str, float]] = []
    now = [1000.0]

    def boots(kernel: Path, busybox: Path, accelerator: str, seconds: float) -> probe.Verdict:
        tried.append((accelerator, seconds))
        now[0] += 15 if accelerator == "tcg" else seconds
        if accelerator == "tcg":
            return probe.Verdict(emulated == "boots", "slow", booting=True)
        return probe.Verdict(seconds > 2 * probe.KVM_SECONDS, "slow")

    device = tmp_path / "kvm"
    device.touch()
    monkeypatch.setattr(probe, "_try", boots)
    monkeypatch.setattr(probe, "KVM", device)
    monkeypatch.setattr(confine, "kvm_group", lambda: None)
    monkeypatch.setattr(probe.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(probe.time, "time", lambda: now[0])
    cache = Cache(tmp_path / "cache")
    assert probe.kvm(tmp_path, tmp_path, cache=cache).works, "twice what the emulator took was enough"
    assert tried == [("kvm", probe.KVM_SECONDS), ("tcg", probe.TCG_SECONDS), ("kvm", 30.0)]
    (note,) = (tmp_path / "cache/probe").iterdir()
    note.write_bytes(msgspec.json.encode(probe.Verdict(False, "it failed", now[0])))
    assert probe.kvm(tmp_path, tmp_path, cache=cache).reason == "it failed", "not tried at once"
    now[0] += probe.BELIEVED_SECONDS + 1
    assert probe.kvm(tmp_path, tmp_path, cache=cache).works, "an hour later it is"


@pytest.mark.parametrize(("mode", "group", "wanted"), [(0o666, 0, None), (0o660, 106, 106)])
def test_the_group_that_opens_kvm(tmp_path, monkeypatch, mode, group, wanted):
    device = tmp_path / "kvm"
    device.touch()
    device.chmod(mode)
    if os.geteuid() == 0:
        os.chown(device, 0, group)
    elif group:
        pytest.skip("only root gives files away")
    monkeypatch.setattr(confine, "KVM", device)
    assert confine.kvm_group() == wanted
    words = confine.prefix(12345, "kvm")
    assert ("--clear-groups" in words) == (wanted is None)
    assert "--clear-groups" in confine.prefix(12345, "tcg")
    device.chmod(0o600)
    cpuinfo = tmp_path / "cpuinfo"
    monkeypatch.setattr(confine, "CPUINFO", cpuinfo)
    for flags, opens in (("fpu svm", True), ("fpu hypervisor", False)):
        cpuinfo.write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
        with pytest.raises(HostError, match="only root may open") as caught:
            confine.kvm_group()
        assert ("chmod 660" in caught.value.remedy) == opens, (
            "opening it leads nowhere on a CPU without virtualisation"
        )
        if os.geteuid() == 0:
            [check] = doctor.kvm(Path("/"))
            assert check.weight == "disturbs" and check.remedy == caught.value.remedy
    if os.geteuid() == 0:
        device.chmod(mode)
        for virtual, weights in ((False, ["good"]), (True, ["good", "disturbs"])):
            monkeypatch.setattr(doctor, "is_virtual", lambda virtual=virtual: virtual)
            assert [check.weight for check in doctor.kvm(Path("/"))] == weights


def test_the_host_is_recorded_and_qemu_has_weight(tmp_path, monkeypatch):
    monkeypatch.delenv(priority.CHOICE)
    # On a busy host a guest that switches itself off is gone before it is looked at.
    said = tiny.say(b"kduel: step 01-a\nworking\nkduel: step 01-a ended\n") + tiny.SLEEP_FOR_EVER
    with priority_free() as groups:
        done = run(
            machine(tmp_path, said),
            tmp_path / "console.log",
            Launch(boot_deadline=15, deadline=15, pin=pins(1), raised=True),
        )
        assert done.ended == "deadline" and done.pinned == pins(1)
        assert done.priority == priority.find_obtainable()
        assert groups() == set(), "no control group is left"
    [(step, record)] = done.host
    assert step == "01-a" and record.seconds >= 0
    if Path("/proc/self/schedstat").exists():
        assert record.vcpu_run_s is not None and record.vcpu_wait_s is not None and record.other_wait_s is not None


def test_an_exact_machine_records_nothing_and_takes_no_weight(tmp_path):
    said = tiny.say(b"kduel: step 01-a\nkduel: step 01-a ended\n") + tiny.POWER_OFF
    done = run(
        machine(tmp_path, said), tmp_path / "console.log", Launch(boot_deadline=60, deadline=60, record_host=False)
    )
    assert done.host == [] and done.priority == []


def pins(count: int) -> list[int]:
    return sorted(os.sched_getaffinity(0))[-count:]


@contextlib.contextmanager
def priority_free():
    """What control groups a run leaves behind."""
    top = Path("/sys/fs/cgroup")
    before = set(top.glob("kduel-*"))
    yield lambda: set(top.glob("kduel-*")) - before


def test_qemu_inherits_nothing_of_the_callers_environment(tmp_path, monkeypatch):
    """Neither where it boots, nor where it is asked about itself."""
    real = shutil.which("qemu-system-x86_64")
    seen = tmp_path / "seen"
    seen.mkdir(mode=0o777)
    seen.chmod(0o777)
    tmp_path.chmod(0o755)
    for outer in tmp_path.parents[:3]:
        outer.chmod(outer.stat().st_mode | 0o011)
    wrapper = tmp_path / "bin/qemu-system-x86_64"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nenv -0 >{seen}/$$\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("SECRET_TOKEN", "hush")
    boot(tmp_path, tiny.say(b"hello") + tiny.POWER_OFF)
    known_features.__wrapped__()
    qemu_version()
    got = [set(path.read_bytes().split(b"\0")) for path in seen.iterdir()]
    assert len(got) == 3
    for variables in got:
        names = {variable.partition(b"=")[0] for variable in variables} - {b""}
        assert names - {b"PATH", b"LC_ALL", b"PWD", b"OLDPWD", b"SHLVL", b"_", b"LD_LIBRARY_PATH"} == set()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize(
    ("flags", "mode", "group", "remedy"),
    [
        ("svm", 0o660, 106, "usermod -aG"),
        ("vmx", 0o600, 0, "chgrp kvm"),
        ("hypervisor", 0o660, 106, "Do not change its mode"),
        ("hypervisor", 0o600, 0, "Do not change its mode"),
    ],
)
def test_an_ordinary_user_is_sent_to_the_group_only_where_kvm_may_work(
    tmp_path, monkeypatch, flags, mode, group, remedy
):
    device, cpuinfo = tmp_path / "kvm", tmp_path / "cpuinfo"
    device.touch()
    os.chown(device, 0, group)
    device.chmod(mode)
    cpuinfo.write_text(f"flags\t\t: fpu {flags}\n")
    monkeypatch.setattr(confine, "KVM", device)
    monkeypatch.setattr(probe, "KVM", device)
    monkeypatch.setattr(confine, "CPUINFO", cpuinfo)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(HostError, match="this user may not open") as caught:
        confine.check_kvm()
    assert remedy in caught.value.remedy
    [check] = doctor.kvm(Path("/"))
    assert check.remedy == caught.value.remedy
    verdict = probe.kvm(tmp_path, tmp_path, cache=Cache(tmp_path / "cache"))
    assert not verdict.works and remedy in verdict.reason
