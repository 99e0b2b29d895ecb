"""A board in a lab: labgrid's coordinator and exporter on loopback, its QEMU driver as the board, a real U-Boot in it."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kduel.benchmarks import benchmark
from kduel.benchmarks.support.bootlog import console_lines, timeline
from kduel.core.cache import Cache
from kduel.core.errors import HostError
from kduel.core.experiment import Contender, Settle
from kduel.core.progress import Progress
from kduel.guest.environment import read_environment
from kduel.guest.script import ScriptStep, compose
from kduel.kernels import resolve
from kduel.machines import Arm, Needs, Trial
from kduel.machines.board import PLUGIN
from kduel.store.collect import parse_step

UBOOT = Path("/usr/lib/u-boot/qemu_arm64/u-boot.bin")
BIN = Path(sys.executable).parent
pytestmark = [pytest.mark.guest, pytest.mark.network]

BOARD = """\
summary = "QEMU with U-Boot, driven by labgrid"
architecture = "aarch64"
console = "ttyAMA0"
memory = "512M"
cmdline = "earlycon"
clocksource = "arch_sys_counter"

[labgrid]
environment = "lab.yaml"
place = "board-1"
files = "tftp"
commands = [
    "setenv autoload no",
    "dhcp",
    "tftp ${kernel_addr_r} kernel",
    "tftp ${ramdisk_addr_r} initrd",
    "setenv bootargs '@CMDLINE@'",
    "booti ${kernel_addr_r} ${ramdisk_addr_r}:@INITRD_SIZE@ ${fdtcontroladdr}",
]
"""
LAB = """\
targets:
  main:
    resources:
      RemotePlace: {name: board-1}
    drivers:
      QEMUDriver:
        qemu_bin: qemu
        machine: virt,dtb-randomness=off
        cpu: cortex-a72
        memory: 512M
        bios: uboot
        extra_args: '-no-shutdown'
        nic: user,model=virtio-net-pci,tftp=@TFTP@
      UBootDriver:
        prompt: '=> '
        autoboot: Hit any key to stop autoboot
        login_timeout: 180
tools:
  qemu: @QEMU@
images:
  uboot: @UBOOT@
options:
  coordinator_address: 127.0.0.1:@PORT@
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def client(lab: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [BIN / "labgrid-client", "-c", lab / "lab.yaml", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def acquired(lab: Path) -> str:
    shown = client(lab, "-p", "board-1", "show").stdout
    return next(line.partition(":")[2].strip() for line in shown.splitlines() if "acquired:" in line)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    qemu = shutil.which("qemu-system-aarch64")
    assert qemu and UBOOT.is_file(), "scripts/setup-dev installs qemu-system-arm and u-boot-qemu"
    place = tmp_path_factory.mktemp("lab")
    port = free_port()
    text = LAB.replace("@TFTP@", str(place / "tftp")).replace("@QEMU@", qemu)
    (place / "lab.yaml").write_text(text.replace("@UBOOT@", str(UBOOT)).replace("@PORT@", str(port)))
    (place / "board.toml").write_text(BOARD)
    (place / "exporter.yaml").write_text("shelf:\n  NetworkService:\n    address: 127.0.0.1\n    username: root\n")
    listening = f"127.0.0.1:{port}"
    started = []
    try:
        for command in (
            [BIN / "labgrid-coordinator", "-l", listening],
            [BIN / "labgrid-exporter", "-c", listening, "-n", "lab", "--hostname", "localhost", "exporter.yaml"],
        ):
            with (place / f"{Path(command[0]).name}.log").open("wb") as log:
                started.append(subprocess.Popen(command, cwd=place, stdout=log, stderr=log))
            for _ in range(240):
                if client(place, "resources").returncode == 0 and len(started) == 1:
                    break
                if "shelf" in client(place, "resources").stdout:
                    break
                time.sleep(0.5)
        assert client(place, "-p", "board-1", "create").returncode == 0
        assert client(place, "-p", "board-1", "add-match", "lab/shelf/*").returncode == 0
        yield place
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


def prepare(lab: Path):
    kernel = resolve("debian:6.1-arm64", cache=Cache(), progress=Progress())
    arm = Arm(Contender(kernel="debian:6.1-arm64", name="arm", cmdline="kduel.note=1"), kernel)
    settings = PLUGIN.read_settings({"place": str(lab / "board.toml")})
    return arm, PLUGIN.prepare(settings, [arm], Needs(programs=("kbench",)), cache=Cache(), progress=Progress())


def test_a_trial_on_a_board_in_a_lab(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(BIN), prepend=":")
    arm, machine = prepare(lab)
    try:
        assert acquired(lab) != "None"
        kbench, boot = benchmark("kbench"), benchmark("boot-timeline")
        one, other = kbench.read_parameters({"operation": "null-call", "time": 0.1}), boot.read_parameters({})
        parts = [
            ScriptStep(label="kbench", script=kbench.script(one), timeout=200),
            ScriptStep(label="boot", script=boot.script(other), timeout=200),
        ]
        script = compose(parts, settle=Settle(mode="fixed", seconds=0))
        (tmp_path / "guest.sh").write_text(script)
        outcome = machine.boot(Trial(id="t", arm=arm, script=script, deadline=600, into=tmp_path))
        assert outcome.void == "", outcome.message
        assert parse_step(tmp_path / "01-kbench", kbench, one)["time"] > 0
        assert parse_step(tmp_path / "02-boot", boot, other)["kernel"] > 0
        environment = read_environment(tmp_path / "environment")
        assert "kduel.note=1" in environment["cmdline"] and environment["release"] == arm.kernel.release
        # The boot begins as the boot loader begins to load the kernel, not as the board is switched on.
        log = (tmp_path / "console.log").read_text(errors="replace")
        begin = timeline(console_lines(log)).moments["begin"]
        assert begin == next(line.host for line in console_lines(log) if line.text.startswith("=> tftp"))
        assert 0 < outcome.timings["launched"] <= begin
    finally:
        machine.close()
    assert acquired(lab) == "None"


def test_a_place_that_another_has_is_told(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(BIN), prepend=":")
    with monkeypatch.context() as other:
        other.setenv("LG_USERNAME", "somebody")
        other.setenv("LG_HOSTNAME", "elsewhere")
        assert client(lab, "-p", "board-1", "acquire").returncode == 0
    try:
        with pytest.raises(HostError, match=r"the place board-1 cannot be had(?s:.*)show"):
            prepare(lab)
    finally:
        assert client(lab, "-p", "board-1", "release", "--kick").returncode == 0


def test_a_place_that_its_user_has_already_is_used_and_kept(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(BIN), prepend=":")
    assert client(lab, "-p", "board-1", "acquire").returncode == 0
    try:
        _, machine = prepare(lab)
        machine.close()
        assert acquired(lab) != "None"
    finally:
        assert client(lab, "-p", "board-1", "release").returncode == 0
