"""The machine `qemu`, with real guests. Kernels come from the cache, or from Debian's archive."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import tiny_kernels as tiny

from kduel.core.cache import Cache
from kduel.core.errors import HostError, InputError
from kduel.core.experiment import Contender, Settle
from kduel.core.progress import Progress
from kduel.guest import confine, envelope, probe, watch
from kduel.guest.environment import read_environment
from kduel.guest.launch import Run
from kduel.guest.root import root_image
from kduel.guest.script import ScriptStep, compose
from kduel.guest.silent import boot_again
from kduel.guest.size import mebibytes
from kduel.guest.vm import VirtualMachine
from kduel.kernels import Kernel, resolve
from kduel.machines import Arm, Needs, Outcome, Trial, machine_kind, qemu
from kduel.machines.host.processors import host_cpus
from kduel.machines.qemu import PLUGIN

SPEC = "debian:6.1-cloud"


@pytest.fixture(scope="module")
def cache():
    return Cache()


@pytest.fixture(scope="module")
def kernel(cache) -> Kernel:
    return resolve(SPEC, cache=cache, progress=Progress())


@pytest.fixture
def boot(cache, kernel, tmp_path):
    def boot(*scripts: str, cmdline: str = "", deadline: float = 900, release: str = "", own=None, **settings):
        if release:
            chosen = Kernel(
                spec=SPEC, release=release, image=kernel.image, sha256=kernel.sha256, modules=kernel.modules
            )
        else:
            chosen = kernel
        arm = Arm(Contender(kernel=SPEC, cmdline=cmdline, machine=own or {}), chosen)
        table = {"accel": "tcg", "memory": "512M", "disk": "256M", "boot_deadline": 900.0, **settings}
        needs = Needs(scratch=True, files=(("greet", greeter(tmp_path)),))
        machine = PLUGIN.prepare(PLUGIN.read_settings(table), [arm], needs, cache=cache, progress=Progress())
        parts = [ScriptStep(label=f"s{n}", script=script, timeout=600) for n, script in enumerate(scripts)]
        script = compose(parts, settle=Settle(mode="fixed", seconds=0))
        into = tmp_path / "trial"
        into.mkdir()
        (into / "guest.sh").write_text(script)
        boot.machine = machine
        return machine.boot(Trial(id="t", arm=arm, script=script, deadline=deadline, into=into)), into

    return boot


def greeter(directory: Path) -> Path:
    program = directory / "greet"
    program.write_text("#!/bin/sh\necho hello from a program\n")
    program.chmod(0o755)
    return program


def good(outcome: Outcome) -> Outcome:
    assert outcome.void == "", outcome.message
    return outcome


@pytest.mark.essential
@pytest.mark.guest
def test_a_trial_from_start_to_end_and_again_by_hand(boot, kernel):
    looking = """
        uname -r
        greet
        mount | grep -c scratch
        echo text >$KDUEL_SCRATCH/file; sync; cat $KDUEL_SCRATCH/file
        ls /sys/class/net
        echo kept >$KDUEL_STEP/more
        test -r /boot/config-$(uname -r)
        dmesg | grep -c 'EXT4-fs.*mounted'
        sysbench --version
        perf --version >/dev/null
        command -v cyclictest stress-ng fio vmstat >/dev/null
        test ! -e /proc/1/root/etc/machine-id
    """
    outcome, into = boot(looking, "exit 9")
    good(outcome)
    at = outcome.timings
    assert 0 < at["launched"] < at["kernel"] < at["ready"] < at["done"] <= at["home"] <= at["off"]
    said = (into / "01-s0/stdout").read_text().splitlines()
    assert said[:6] == [kernel.release, "hello from a program", "1", "text", "lo", "1"]
    assert said[6].startswith("sysbench ")
    assert (into / "01-s0/stderr").read_text() == ""
    assert json.loads((into / "01-s0/exit.json").read_text())["status"] == 0
    assert (into / "01-s0/more").read_text() == "kept\n"
    assert json.loads((into / "02-s1/exit.json").read_text())["status"] == 9
    found = read_environment(into / "environment")
    assert found["release"] == kernel.release
    assert found["clocksource"] == found["clocksource_end"] == "tsc"
    assert found["cpus"] == 2
    assert found["config"]["SMP"] == "y"
    assert found["mitigations"]["meltdown"]
    assert found["packages"] == boot.machine.facts["root"]["packages"]
    assert "kduel: step 01-s0" in (into / "console.log").read_text()
    assert boot.machine.facts["accelerator"] == "tcg" and "emulator" in boot.machine.timing_warning
    assert outcome.facts["pinned"] == host_cpus(2)

    subprocess.run(["sh", into / "rerun.sh"], cwd=into, check=True, timeout=900, stdin=-3, stdout=-3)
    again = into / "again"
    again.mkdir()
    envelope.bring_in(into / "results", again)
    assert (again / "01-s0/stdout").read_text().splitlines()[:2] == [kernel.release, "hello from a program"]


@pytest.mark.guest
@pytest.mark.parametrize("heard", [False, True])
def test_a_kernel_that_qemu_cannot_enter_is_booted_by_its_image(cache, kernel, tmp_path, heard):
    """As one of before 5.0, whose PVH entry is Xen's; one that has printed something is not entered in another way."""
    arm = Arm(Contender(kernel=SPEC), kernel)
    settings = PLUGIN.read_settings({"accel": "tcg", "memory": "512M", "disk": "256M", "boot_deadline": 900.0})
    machine = PLUGIN.prepare(settings, [arm], Needs(), cache=cache, progress=Progress())
    machine.images = {kernel.sha256: tiny.kernel(tmp_path / "silent", tiny.POWER_OFF)}
    machine.cache = Cache(tmp_path / "cache")
    if heard:
        machine.heard.add(kernel.sha256)
    script = compose([ScriptStep(label="s", script="echo yes", timeout=600)], settle=Settle(mode="fixed", seconds=0))

    def once(name: str) -> Outcome:
        into = tmp_path / name
        into.mkdir()
        return machine.boot(Trial(id=name, arm=arm, script=script, deadline=900.0, into=into))

    first = once("first")
    assert first.void == "no-console"
    assert "vmlinuz with earlyprintk=serial,ttyS0,115200, it printed:\n    " in first.message
    assert f"Linux version {kernel.release}" in first.message
    assert ("from now on all kernels are booted by their images" in first.message) is not heard
    assert Cache(tmp_path / "cache").has("silent-entries", kernel.sha256) is not heard, "other processes know it, too"
    if not heard:
        assert good(once("second")).timings["ready"] > 0


@pytest.mark.guest
def test_a_kernel_that_is_silent_both_ways_is_said_to_be(tmp_path):
    silent = tiny.kernel(tmp_path / "silent", tiny.POWER_OFF)
    machine = VirtualMachine(
        accelerator="tcg", cpus=1, memory_mib=128, kernel=silent, initrd=silent, cmdline="console=ttyS0"
    )
    assert boot_again(machine, silent, 900.0) == (
        False,
        "It printed nothing in a second boot either, by silent with earlyprintk=serial,ttyS0,115200.",
    )


@pytest.mark.essential
@pytest.mark.guest
def test_a_kernel_that_panics_is_named_with_its_console(boot):
    outcome, into = boot("echo c >/proc/sysrq-trigger; sleep 60")
    assert outcome.void == "panic"
    assert "sysrq triggered crash" in outcome.message
    assert "ready" in outcome.timings and "done" not in outcome.timings
    assert (into / "console.log").stat().st_size > 5000


@pytest.mark.guest
def test_another_clock_source_or_kernel_than_planned_voids_the_trial(boot):
    outcome, _ = boot("true", cmdline="clocksource=hpet", release="6.1.0-planned")
    assert outcome.void == "wrong-machine"
    assert "the clock source is hpet, planned is tsc" in outcome.message
    assert "planned is 6.1.0-planned" in outcome.message


@pytest.mark.guest
def test_a_guest_that_cannot_reach_its_script_says_why(boot):
    outcome, into = boot("true", cmdline="kduel.root=/dev/none")
    assert outcome.void == "boot-failed"
    assert "cannot boot: mount /dev/none" in outcome.message
    assert not (into / "01-s0").exists()


@pytest.mark.guest
def test_one_wrong_byte_on_the_way_home_voids_the_trial(boot, monkeypatch):
    def damaging(*given: object, **named: object) -> qemu.Run:
        done = really_run(*given, **named)
        stream = bytearray(done.results.read_bytes())
        stream[len(stream) // 2] ^= 1
        done.results.write_bytes(stream)
        return done

    really_run = qemu.run
    monkeypatch.setattr(qemu, "run", damaging)
    outcome, into = boot("echo precious")
    assert outcome.void == "broken-envelope"
    assert "did not arrive completely" in outcome.message and "checksum" in outcome.message
    assert not (into / "01-s0").exists()


@pytest.mark.essential
@pytest.mark.guest
def test_results_beyond_the_bound_are_told_not_kept(boot, monkeypatch):
    monkeypatch.setattr(envelope, "LIMIT", 200_000)
    outcome, into = boot("dd if=/dev/zero bs=1M count=8")
    assert outcome.void == "flood"
    assert not (into / "01-s0").exists()


@pytest.mark.guest
def test_a_step_that_never_ends_is_named_at_the_deadline(boot, monkeypatch, tmp_path):
    log = tmp_path / "trial/console.log"

    def monotonic() -> float:
        """The deadline has passed once the step has begun, however long that took."""
        return time.monotonic() + (10_000 if log.exists() and "step 02-s1" in log.read_text(errors="replace") else 0)

    monkeypatch.setattr(watch, "time", SimpleNamespace(monotonic=monotonic))
    outcome, _ = boot("true", "sleep 1000")
    assert outcome.void in {"deadline", "hang"}
    if outcome.void == "deadline":
        assert "step 02-s1" in outcome.message


@pytest.mark.parametrize(("size", "number"), [("4096M", 4096), ("4G", 4096), ("512", 512), ("1GiB", 1024)])
def test_sizes(size, number):
    assert mebibytes(size, "memory") == number


@pytest.mark.parametrize("size", ["", "0", "four", "-1G", "1T", "1.5G", "99999999G"])
def test_what_is_no_size_names_the_key(size):
    with pytest.raises(InputError, match="memory"):
        mebibytes(size, "memory")


def test_settings_are_checked_by_name():
    with pytest.raises(InputError, match="memroy") as caught:
        machine_kind("qemu").read_settings({"memroy": "4G"})
    assert "memory" in caught.value.remedy
    with pytest.raises(InputError, match="accel"):
        PLUGIN.read_settings({"accel": "xen"})


def test_vcpus_get_host_cpus_or_none():
    allowed = sorted(os.sched_getaffinity(0))
    assert host_cpus(len(allowed)) == allowed
    assert host_cpus(len(allowed) + 1) == []
    assert host_cpus(1) == allowed[-1:]


def test_a_kernel_of_another_architecture_is_refused(kernel_like, cache):
    arm = Arm(Contender(kernel="x"), kernel_like("aarch64"))
    with pytest.raises(InputError, match="aarch64"):
        PLUGIN.prepare(PLUGIN.read_settings({}), [arm], Needs(), cache=cache, progress=Progress())


@pytest.fixture
def kernel_like(tmp_path):
    def like(architecture: str) -> Kernel:
        return Kernel(spec="x", release="1", image=tmp_path / "k", sha256="0", architecture=architecture)

    return like


def test_offline_without_a_root_says_what_to_do(tmp_path):
    with pytest.raises(HostError, match="not in the cache") as caught:
        root_image(cache=Cache(tmp_path), progress=Progress(), offline=True)
    assert "--offline" in caught.value.remedy


@pytest.mark.slow
def test_a_root_that_cannot_be_made_says_why_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("KDUEL_DEBIAN_MIRROR", "http://127.0.0.1:9/debian")
    with pytest.raises(HostError, match="the guest root cannot be made"):
        root_image(cache=Cache(tmp_path), progress=Progress())
    assert not list((tmp_path / "root").iterdir())


@pytest.mark.guest
def test_kvm_is_believed_only_when_a_guest_has_booted(kernel, cache, tmp_path):
    root = root_image(cache=cache, progress=Progress())
    own = Cache(tmp_path)
    try:
        confine.kvm_group()
        tried = os.access("/dev/kvm", os.R_OK | os.W_OK)
    except (OSError, HostError):
        tried = False
    first = probe.kvm(kernel.image, root.busybox, cache=own)
    notes = list((tmp_path / "probe").glob("*.json"))
    if tried:
        assert len(notes) == 1, "the answer is kept, and a second run does not wait for it"
        note = probe.Verdict(False, "kept", time.time())
        notes[0].write_bytes(msgspec.json.encode(note))
        assert probe.kvm(kernel.image, root.busybox, cache=own).reason == "kept"
    else:
        assert not first.works and not notes
    if not first.works:
        assert first.reason
        with pytest.raises(HostError, match="KVM does not work on this host"):
            probe.choose_accelerator("kvm", kernel.image, root.busybox, own, Progress())
        said: list[str] = []
        progress = Progress()
        progress.info = said.append
        assert probe.choose_accelerator("auto", kernel.image, root.busybox, own, progress) == "tcg"
        assert "emulator" in said[0]


@pytest.mark.parametrize(("version", "void"), [("7.2.22 (Debian)", "emulator-fault"), ("8.1.0", "soft-lockup")])
def test_a_lockup_at_a_patched_instruction_is_the_emulators(tmp_path, version, void):
    kernel = Kernel(spec=SPEC, release="6.1", image=tmp_path / "no", sha256="0" * 64, modules=None)
    machine = object.__new__(qemu.QemuMachine)
    machine.settings, machine.accelerator, machine.facts = PLUGIN.read_settings({"cpus": 4}), "tcg", {"qemu": version}
    machine.heard = set()
    lines = [
        "kduel: script",
        "watchdog: BUG: soft lockup - CPU#0 stuck for 30s! [swapper/0:0]",
        " exc_int3+0x44/0x120",
    ]
    (tmp_path / "console.log").write_text("".join(f"    1.000 {line}\n" for line in lines))
    (tmp_path / "results").write_bytes(b"")
    timings = {"kernel": 0.1, "ready": 1.0, "off": 60.0}
    done = Run(results=tmp_path / "results", ended="deadline", exit_status=-9, stderr="", timings=timings)
    trial = Trial(id="t", arm=Arm(Contender(kernel=SPEC), kernel), script="", deadline=60, into=tmp_path)
    outcome = machine.judge(trial, done)
    assert outcome.void == void
    assert outcome.facts.get("excused") == (None if void == "soft-lockup" else "soft-lockup")


@pytest.mark.guest
@pytest.mark.alone
def test_a_guest_sees_the_topology_that_was_asked_for(boot):
    asked = {"topology": "server", "memory": "1G", "boot_deadline": 240.0}
    outcome, into = boot("true", **asked)
    if outcome.void in {"hang", "soft-lockup"}:
        # As a run does: 16 CPUs on two of the host's, each of which waits its turn, may look locked up, and QEMU 7.2 with so
        # many has once stopped in a boot for ever.
        print(outcome.message)
        into.rename(into.with_name("hung"))
        outcome, into = boot("true", **asked)
    good(outcome)
    seen = read_environment(into / "environment")
    assert seen["cpus"] == 16
    assert seen["topology"]["llc"] == ["0-3", "4-7", "8-11", "12-15"]
    assert seen["topology"]["domains"][0] == "0: 2 4 8 16"
    assert boot.machine.max_wait_pct == 100 and boot.machine.behaviour_only


@pytest.mark.guest
def test_a_contender_has_settings_of_its_own(boot):
    outcome, into = boot("true", own={"topology": "2 nodes at 32 x 2 cores", "memory": "640M", "clocksource": "hpet"})
    good(outcome)
    seen = read_environment(into / "environment")
    assert seen["cpus"] == 4 and seen["topology"]["llc"] == ["0-1", "2-3"]
    assert seen["topology"]["distances"] == ["10 32", "32 10"]
    assert 500 < seen["memory_kib"] >> 10 < 640 and seen["clocksource"] == "hpet"
    assert "-m 640M" in (into / "rerun.sh").read_text()
    assert boot.machine.settings.cpus == 2 and "4 CPUs" in boot.machine.timing_warning


@pytest.mark.guest
def test_a_guest_with_another_topology_is_void(boot):
    # A host that starves the guest's clock shows that first; a run would repeat the trial.
    outcomes = (boot("true", topology="smt", cmdline="numa=off nosmt=force")[0] for _ in range(3))
    outcome = next(one for one in outcomes if one.void != "wrong-clock")
    assert outcome.void == "wrong-machine"
