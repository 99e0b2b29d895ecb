"""Boards as files, and what a user is told who names a wrong one, lacks a program, or brings another kernel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kduel.core.cache import Cache
from kduel.core.errors import HostError, InputError
from kduel.core.experiment import Contender
from kduel.core.progress import Progress
from kduel.guest.busybox import BUILT, DEBIAN, busybox
from kduel.guest.vm import Wiring
from kduel.kernels import Kernel
from kduel.machines import Arm, Needs, boards
from kduel.machines.board import PLUGIN, BoardGuest

MINE = """\
summary = "mine"
architecture = "aarch64"
console = "ttyAMA0"
memory = "128M"

[qemu]
program = "qemu-system-none-such"
package = "qemu-system-none"
machine = "virt"
cpu = "cortex-a53"
"""


def arm(architecture: str) -> Arm:
    return Arm(
        Contender(kernel="k"),
        Kernel(spec="debian:6.1", release="6.1", architecture=architecture, image=Path("/none"), sha256="0" * 64),
    )


@pytest.mark.parametrize("name", boards.known_boards())
def test_boards_that_come_along_are_whole(name: str) -> None:
    board = boards.board(name)
    assert board.summary and board.console.startswith("tty")
    assert board.architecture in DEBIAN | BUILT or board.busybox
    wiring = Wiring(console="stdio", results="file,path=r", monitor="socket,fd=3")
    guest = BoardGuest(
        architecture=board.architecture,
        accelerator="tcg",
        cpus=1,
        memory_mib=64,
        kernel=Path("k"),
        initrd=Path("i"),
        cmdline="c",
        emulated=board.qemu,
    )
    argv = guest.argv(wiring, paused=True)
    assert argv[0] == board.qemu.program and argv[-1] == "-S"
    # The kernel's console is the first serial line; results go by virtio or the second one.
    assert argv[argv.index("-serial") + 1] == "chardev:console"
    assert ("virtio-serial-pci" in argv) == (board.qemu.results == "virtio")
    assert argv.count("-serial") == (1 if board.qemu.results == "virtio" else 2)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("summary = ", "is not TOML"),
        (MINE.replace('console = "ttyAMA0"\n', ""), "console"),
        (MINE.replace("memory", "memroy"), "memroy"),
        (MINE.replace("aarch64", "vax"), "none that programs can be built for"),
    ],
)
def test_a_description_that_is_wrong_is_named(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        boards.board(str(path))
    assert told in str(error.value) and "mine.toml" in str(error.value)


def test_unknown_boards_list_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"no board 'beagle'(?s:.*)arm64-virt"):
        boards.board("beagle")
    with pytest.raises(InputError, match=r"needs a board(?s:.*)arm64-virt"):
        boards.board("")
    with pytest.raises(InputError, match="cannot read the board"):
        boards.board("/none/such.toml")


def prepare(place: str, architecture: str, needs: Needs | None = None) -> object:
    settings = PLUGIN.read_settings({"place": place})
    return PLUGIN.prepare(
        settings, [arm(architecture)], needs or Needs(), cache=Cache(), progress=Progress(), offline=True
    )


def test_a_missing_emulator_is_named_with_its_package(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    with pytest.raises(HostError, match=r"qemu-system-none-such, which is not installed(?s:.*)qemu-system-none\b"):
        prepare(str(path), "aarch64")


def test_a_kernel_of_another_architecture_is_refused() -> None:
    with pytest.raises(InputError, match=r"arm64-virt is aarch64, debian:6.1 is a kernel for x86_64(?s:.*)6.1-arm64"):
        prepare("arm64-virt", "x86_64")


def test_benchmarks_that_need_a_distribution_are_refused() -> None:
    with pytest.raises(InputError, match=r"sysbench(?s:.*)kbench, lmbench, memory"):
        prepare("arm64-virt", "aarch64", Needs(packages=("sysbench",)))
    with pytest.raises(InputError, match="scratch disk"):
        prepare("arm64-virt", "aarch64", Needs(scratch=True))


def test_no_busybox_for_an_architecture_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no busybox-static for ppc64(?s:.*)busybox = PATH"):
        busybox("ppc64", cache=Cache(), progress=Progress())
    with pytest.raises(InputError, match="is no file"):
        busybox("ppc", str(tmp_path / "none"), cache=Cache(), progress=Progress())
    own = tmp_path / "busybox"
    own.write_bytes(b"\0BusyBox v1.36.1 (2024-01-01 00:00:00 UTC)\0")
    assert busybox("ppc", str(own), cache=Cache(), progress=Progress()).version.startswith("1.36.1 (2024")


@pytest.mark.slow
def test_the_command_line_tells_it_in_a_paragraph() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kduel", "run", "a/none", "b/none", "--machine", "board:beagle"],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": "src", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr
    listed = subprocess.run(
        [sys.executable, "-m", "kduel", "list", "boards"],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": "src", "PATH": "/usr/bin:/bin"},
    )
    assert "arm64-virt" in listed.stdout and "riscv64-virt" in listed.stdout
