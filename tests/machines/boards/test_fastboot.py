"""A board whose boot loader speaks fastboot: the real fastboot, mkbootimg and labgrid, and a fake board (a file beside
this one) that boots what it is sent in QEMU."""

from __future__ import annotations

import json
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
from kduel.guest.script import ScriptStep, compose
from kduel.kernels import resolve
from kduel.machines import Arm, Machine, Needs, Trial
from kduel.machines.board import PLUGIN
from kduel.machines.boards import Real
from kduel.machines.labgrid.loaders import Fastboot
from kduel.store.collect import parse_step

FAKE = Path(__file__).with_name("fake_fastboot_board.py")
SPEC = "debian:6.1-arm64"
QEMU = "qemu-system-aarch64 -nodefaults -display none -no-reboot -machine virt,dtb-randomness=off -cpu cortex-a72 -m 256M"
BOARD = """\
summary = "a fake board, driven by labgrid"
architecture = "aarch64"
console = "ttyAMA0"
memory = "256M"
cmdline = "earlycon"
clocksource = "arch_sys_counter"

[labgrid]
environment = "lab.yaml"
files = "files"
fastboot = ["--header_version", "2", "--pagesize", "4096", "--dtb", "board.dtb"]
"""
LAB = """\
targets:
  main:
    resources:
      NetworkSerialPort: {host: 127.0.0.1, port: @CONSOLE@, protocol: raw}
      AndroidNetFastboot: {address: 127.0.0.1, port: @FASTBOOT@, protocol: tcp}
    drivers:
      SerialDriver: {}
      AndroidFastbootDriver: {}
      ExternalPowerDriver:
        cmd_on: @PYTHON@ @FAKE@ on @SWITCH@
        cmd_off: @PYTHON@ @FAKE@ off @SWITCH@
        delay: 0.1
"""


def write_lab(place: Path, ports: dict[str, int]) -> None:
    words = {name.upper(): str(port) for name, port in ports.items()} | {"PYTHON": sys.executable, "FAKE": str(FAKE)}
    text = LAB
    for name, value in words.items():
        text = text.replace(f"@{name}@", value)
    (place / "lab.yaml").write_text(text)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    board = subprocess.Popen([sys.executable, FAKE, "serve", tmp_path, *QEMU.split()])
    try:
        while not (tmp_path / "ports").exists():
            assert board.poll() is None
            time.sleep(0.05)
        write_lab(tmp_path, json.loads((tmp_path / "ports").read_text()))
        (tmp_path / "board.toml").write_text(BOARD)
        (tmp_path / "files").mkdir()
        (tmp_path / "files" / "board.dtb").write_bytes(b"a device tree of the board's")
        yield tmp_path
    finally:
        board.terminate()
        board.wait()


def prepare(place: Path) -> tuple[Arm, Machine]:
    arm = Arm(Contender(kernel=SPEC, name="arm"), resolve(SPEC, cache=Cache(), progress=Progress()))
    settings = PLUGIN.read_settings({"place": str(place / "board.toml")})
    return arm, PLUGIN.prepare(settings, [arm], Needs(), cache=Cache(), progress=Progress())


@pytest.mark.guest
@pytest.mark.network
def test_a_trial_on_a_board_that_speaks_fastboot(place: Path) -> None:
    arm, machine = prepare(place)
    try:
        boot = benchmark("boot-timeline")
        parameters = boot.read_parameters({})
        parts = [ScriptStep(label="boot", script=boot.script(parameters), timeout=200)]
        script = compose(parts, settle=Settle(mode="fixed", seconds=0))
        into = place / "trial"
        into.mkdir()
        (into / "guest.sh").write_text(script)
        outcome = machine.boot(Trial(id="t", arm=arm, script=script, deadline=600, into=into))
    finally:
        machine.close()
    assert outcome.void == "", outcome.message
    assert parse_step(into / "01-boot", boot, parameters)["kernel"] > 0
    # The board had nothing but the image, and all of it: the real tool finds the device tree too.
    assert (place / "parts" / "dtb").read_bytes() == b"a device tree of the board's"
    lines = console_lines((into / "console.log").read_text(errors="replace"))
    assert timeline(lines).moments["begin"] == next(x.host for x in lines if x.text == "=> fastboot boot boot.img")


@pytest.mark.guest
@pytest.mark.network
def test_a_board_that_does_not_come_up_is_void_in_time(place: Path) -> None:
    # Its power switch does nothing: fastboot waits for it, and would for ever.
    text = (place / "lab.yaml").read_text()
    (place / "lab.yaml").write_text(text.replace(f"{FAKE} on", f"{FAKE} off"))
    (place / "board.toml").write_text(BOARD + "seconds_per_command = 3\n")
    arm, machine = prepare(place)
    try:
        into = place / "trial"
        into.mkdir()
        outcome = machine.boot(Trial(id="t", arm=arm, script="exit 0\n", deadline=600, into=into))
    finally:
        machine.close()
    assert outcome.void and "fastboot boot did not succeed" in outcome.message
    assert "seconds_per_command" in outcome.message


def loader(place: Path, arguments: list[str]) -> Fastboot:
    from labgrid import Environment

    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
    write_lab(place, {"console": port, "switch": port, "fastboot": port})
    target = Environment(str(place / "lab.yaml")).get_target("main")
    (place / "kernel").write_bytes(b"kernel")
    real = Real(environment=str(place / "lab.yaml"), files=str(place), fastboot=arguments)
    return Fastboot(target, None, real)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "cmdline", "told"),
    [
        (["--dtb", "none.dtb"], "c", r"none\.dtb(?s:.*)fastboot = "),
        (["--dbt", "x"], "c", r"--dbt(?s:.*)fastboot = "),
        ([], "c" * 2000, "max 1536"),
    ],
)
def test_an_image_that_cannot_be_packed_is_told(
    tmp_path: Path, arguments: list[str], cmdline: str, told: str
) -> None:
    with pytest.raises(HostError, match=told):
        loader(tmp_path, arguments).start(cmdline, [].append)


@pytest.mark.parametrize("program", ["mkbootimg", "fastboot"])
def test_a_missing_program_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    other = {"mkbootimg": "fastboot", "fastboot": "mkbootimg"}[program]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / other).symlink_to(shutil.which(other) or "")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(HostError, match=rf"{program} is not installed(?s:.*)apt-get install {program}"):
        loader(tmp_path, [])
