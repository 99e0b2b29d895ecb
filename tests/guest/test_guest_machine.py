from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from kduel.core.cache import Cache
from kduel.core.errors import HostError
from kduel.guest import scratch
from kduel.guest.gates import gate
from kduel.guest.vm import VirtualMachine, Wiring

WIRING = Wiring(console="stdio", results="file,path=results")


def machine(**changes: object) -> VirtualMachine:
    given = {
        "accelerator": "tcg",
        "cpus": 2,
        "memory_mib": 512,
        "kernel": Path("/k"),
        "initrd": Path("/i"),
        "cmdline": "quiet",
    }
    return VirtualMachine(**{**given, **changes})


def test_a_guest_has_no_network_and_nothing_of_the_host_but_its_files():
    argv = machine(root=Path("/root,1.sqfs"), scratch=Path("/s")).argv(WIRING)
    assert "-nodefaults" in argv and "-no-user-config" in argv and "-no-reboot" in argv
    assert not any(word in " ".join(argv) for word in ("netdev", "virtfs", "9p", "vhost", "-nic", "hostfwd"))
    drives = [argv[index + 1] for index, word in enumerate(argv) if word == "-drive"]
    assert "read-only=on" in drives[0] and "file=/root,,1.sqfs," in drives[0]
    assert "read-only" not in drives[1]


def test_without_disks_there_are_no_drives_and_without_a_monitor_it_does_not_wait():
    argv = machine().argv(WIRING)
    assert "-drive" not in argv and "-mon" not in argv and "-S" not in argv


def test_kvm_uses_the_hosts_own_cpu():
    argv = machine(accelerator="kvm").argv(WIRING)
    assert argv[argv.index("-machine") + 1] == "q35,accel=kvm"
    assert argv[argv.index("-cpu") + 1].startswith("host")


def test_the_gate_lets_through_what_was_planned():
    seen = {"clocksource": "tsc", "cpus": 2, "release": "6.1.0", "memory_kib": 4000000}
    assert gate(seen, {"clocksource": "tsc", "cpus": 2}) == ""


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        ({"clocksource": "hpet", "cpus": 2}, "the clock source is hpet, planned is tsc"),
        ({"clocksource": "tsc", "cpus": 1}, "the number of CPUs is 1, planned is 2"),
        ({"cpus": 2}, "the clock source is unknown, planned is tsc"),
        ({}, "unknown"),
    ],
)
def test_the_gate_names_what_is_not_as_planned(seen, reason):
    assert reason in gate(seen, {"clocksource": "tsc", "cpus": 2})


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    return scratch.template(256, cache=Cache(tmp_path_factory.mktemp("cache")))


def test_the_scratch_template_is_a_sound_file_system_that_old_kernels_know(template):
    subprocess.run(["/sbin/e2fsck", "-fn", template], check=True, capture_output=True)
    told = subprocess.run(["/sbin/dumpe2fs", "-h", template], check=True, capture_output=True, text=True).stdout
    features = next(line for line in told.splitlines() if line.startswith("Filesystem features"))
    assert "has_journal" in features and "extent" in features
    assert "orphan_file" not in features and "metadata_csum_seed" not in features
    assert template.stat().st_blocks * 512 < 32 << 20


@pytest.mark.slow
def test_the_scratch_template_is_the_same_bytes_each_time(template, tmp_path):
    time.sleep(1.1)  # its times are in whole seconds
    again = scratch.template(256, cache=Cache(tmp_path))
    assert again.read_bytes() == template.read_bytes()


@pytest.mark.slow
def test_a_copy_is_the_same_bytes_sparse_and_leaves_nothing(template, tmp_path):
    cache = Cache(tmp_path)
    with scratch.fresh_copy(template, cache) as copy:
        assert Path(f"/proc/self/fd/{copy.fileno()}").read_bytes() == template.read_bytes()
        assert os.fstat(copy.fileno()).st_blocks <= template.stat().st_blocks + 64
        assert not list((tmp_path / "tmp").iterdir())


@pytest.mark.parametrize("size", [0, 1, 4095, 1 << 20])
@pytest.mark.parametrize("data", [[], [(0, b"a")], [(5000, b"bb"), (900_000, b"c")]])
def test_any_sparse_file_is_copied_whole(size, data, tmp_path):
    source = tmp_path / "source"
    with source.open("wb") as stream:
        stream.truncate(size)
        for position, text in data:
            if position + len(text) <= size:
                stream.seek(position)
                stream.write(text)
    with scratch.fresh_copy(source, Cache(tmp_path / "cache")) as copy:
        assert Path(f"/proc/self/fd/{copy.fileno()}").read_bytes() == source.read_bytes()


def test_a_disk_too_small_for_a_file_system_is_told(tmp_path):
    with pytest.raises(HostError, match="cannot be formatted"):
        scratch.template(0, cache=Cache(tmp_path))
