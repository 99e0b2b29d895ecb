"""Roots on a disk and over NFS, by a kernel that has what they need built in: only for ./run-tests --all.

KDUEL_TEST_BUILD names its source, such as debian-source:6.1. The server is nfs-ganesha, in user space, on loopback:
apt-get install nfs-ganesha nfs-ganesha-vfs; it needs root rights. The boards are QEMU's, booted by QEMU itself, by a
U-Boot, and by fastboot.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from test_fastboot import BOARD as FASTBOOT_BOARD
from test_fastboot import FAKE, QEMU, write_lab
from test_labgrid import LAB, UBOOT

from kduel.core.cache import Cache
from kduel.core.experiment import Contender, Settle
from kduel.core.progress import Progress
from kduel.guest.script import ScriptStep, compose
from kduel.kernels import Kernel, resolve
from kduel.machines import Arm, Needs, Trial
from kduel.machines.board import PLUGIN

SOURCE = os.environ.get("KDUEL_TEST_BUILD", "")
SPEC = (
    f"{SOURCE},arch=arm64,config=tinyconfig+guest+EXT4_FS=y+NETDEVICES=y+NET_CORE=y+VIRTIO_NET=y+IP_PNP=y+IP_PNP_DHCP=y"
    "+NETWORK_FILESYSTEMS=y+NFS_FS=y+NFS_V3=y+NFS_V4=y+ROOT_NFS=y"
)
pytestmark = [
    pytest.mark.guest,
    pytest.mark.network,
    pytest.mark.skipif(not SOURCE, reason="KDUEL_TEST_BUILD names no source: this takes minutes"),
]

HEAD = """\
summary = "a test"
architecture = "aarch64"
console = "ttyAMA0"
memory = "256M"
clocksource = "arch_sys_counter"
"""
EMULATED = """
[qemu]
program = "qemu-system-aarch64"
package = "qemu-system-arm"
machine = "virt,dtb-randomness=off"
cpu = "cortex-a72"
"""
DISK = f"""{HEAD}cmdline = "earlycon root=/dev/vda rootwait"
root = "disk"
{EMULATED}extra = ["-drive", "if=none,id=root,format=raw,file=@ROOT@", "-device", "virtio-blk-pci,drive=root"]
"""
OVER_NFS = f"""{HEAD}cmdline = "earlycon root=/dev/nfs nfsroot=10.0.2.2:/board,vers=4,tcp,port=@PORT@ ip=dhcp"
root = "nfs"
tree = "tree"
"""
NFS = f"""{OVER_NFS}{EMULATED}extra = ["-nic", "user,model=virtio-net-pci"]
"""
UBOOT_NFS = f"""{OVER_NFS}
[labgrid]
environment = "lab.yaml"
files = "tftp"
commands = [
    "setenv autoload no",
    "dhcp",
    "tftp ${{kernel_addr_r}} kernel",
    "setenv bootargs '@CMDLINE@'",
    "booti ${{kernel_addr_r}} - ${{fdtcontroladdr}}",
]
"""
UBOOT_DISK = f"""{HEAD}cmdline = "earlycon root=/dev/vda rootwait"
root = "disk"

[labgrid]
environment = "lab.yaml"
files = "tftp"
commands = [
    "setenv autoload no",
    "dhcp",
    "tftp ${{ramdisk_addr_r}} root.ext4",
    "setexpr blocks ${{filesize}} + 1ff",
    "setexpr blocks ${{blocks}} / 200",
    "virtio scan",
    "virtio write ${{ramdisk_addr_r}} 0 ${{blocks}}",
    "tftp ${{kernel_addr_r}} kernel",
    "setenv bootargs '@CMDLINE@'",
    "booti ${{kernel_addr_r}} - ${{fdtcontroladdr}}",
]
"""
FLASHED = FASTBOOT_BOARD.replace('"earlycon"', '"earlycon root=/dev/vda rootwait"\nroot = "disk"').replace(
    'fastboot = ["--header_version", "2", "--pagesize", "4096", "--dtb", "board.dtb"]',
    'fastboot = []\nflash = "userdata"',
)
# Without its caches: it would go on offering a former trial's files for a minute.
GANESHA = """\
MDCACHE { Dir_Chunk = 0; }
NFS_CORE_PARAM { NFS_Port = @PORT@; Bind_addr = 127.0.0.1; Protocols = 4; Enable_NLM = false; Enable_RQUOTA = false; }
NFSV4 { RecoveryRoot = "@PLACE@/state"; Graceless = true; }
EXPORT {
    Export_Id = 1; Path = "@PLACE@/tree"; Pseudo = "/board"; Access_Type = RO; Squash = All_Squash; SecType = sys;
    Attr_Expiration_Time = 0; FSAL { Name = VFS; }
}
"""


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return resolve(SPEC, cache=Cache(), progress=Progress())


@pytest.fixture
def server(tmp_path: Path, need: Callable[..., str]) -> Iterator[int]:
    """Offers tmp_path/tree; its port."""
    ganesha = need("ganesha.nfsd")
    if os.geteuid() != 0:
        pytest.skip("an NFS server needs root rights")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    for name in ("tree", "state"):
        (tmp_path / name).mkdir()
    (tmp_path / "ganesha.conf").write_text(GANESHA.replace("@PORT@", str(port)).replace("@PLACE@", str(tmp_path)))
    files = {"-f": "ganesha.conf", "-p": "ganesha.pid", "-L": "ganesha.log"}
    words = [word for option, name in files.items() for word in (option, tmp_path / name)]
    process = subprocess.Popen([ganesha, "-F", *words])
    try:
        while True:
            assert process.poll() is None, (tmp_path / "ganesha.log").read_text()
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.2)
        yield port
    finally:
        process.terminate()
        process.wait()


def boots(kernel: Kernel, description: Path, into: Path, count: int) -> list[str]:
    """What each of several trials, each with a script of its own, says of its mounts; the script's own words first."""
    arm = Arm(Contender(kernel=SPEC, name="arm"), kernel)
    settings = PLUGIN.read_settings({"place": str(description)})
    machine = PLUGIN.prepare(settings, [arm], Needs(programs=("kbench",)), cache=Cache(), progress=Progress())
    said = []
    try:
        for number in range(count):
            look = f"echo this is {number}; cat /proc/mounts; kbench null-call 0.1"
            script = compose(
                [ScriptStep(label="look", script=look, timeout=100)], settle=Settle(mode="fixed", seconds=0)
            )
            place = into / str(number)
            place.mkdir(parents=True)
            (place / "guest.sh").write_text(script)
            outcome = machine.boot(Trial(id="t", arm=arm, script=script, deadline=600, into=place))
            assert outcome.void == "", outcome.message
            said.append((place / "01-look" / "stdout").read_text())
    finally:
        machine.close()
    return said


def test_a_root_on_a_disk(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "board.toml").write_text(DISK)
    (said,) = boots(kernel, tmp_path / "board.toml", tmp_path / "trials", 1)
    assert "/dev/root / ext4 ro," in said


def test_a_root_over_nfs_is_each_trials_own(kernel: Kernel, server: int, tmp_path: Path) -> None:
    (tmp_path / "board.toml").write_text(NFS.replace("@PORT@", str(server)))
    for number, said in enumerate(boots(kernel, tmp_path / "board.toml", tmp_path / "trials", 2)):
        assert said.startswith(f"this is {number}\n10.0.2.2:/board / nfs4 ro,")


def write_uboot_lab(place: Path, arguments: str = "") -> None:
    """QEMU with a U-Boot, as labgrid's environment file says it, without a coordinator."""
    lab = LAB.replace("    resources:\n      RemotePlace: {name: board-1}\n", "").partition("options:")[0]
    lab = lab.replace("extra_args: '-no-shutdown'", f"extra_args: '-no-shutdown {arguments}'")
    words = {"TFTP": place / "tftp", "QEMU": shutil.which("qemu-system-aarch64"), "UBOOT": UBOOT}
    for name, value in words.items():
        lab = lab.replace(f"@{name}@", str(value))
    (place / "lab.yaml").write_text(lab)


def test_a_root_that_a_boot_loader_writes_to_a_disk(kernel: Kernel, tmp_path: Path) -> None:
    with (tmp_path / "medium").open("wb") as medium:
        medium.truncate(64 << 20)
    write_uboot_lab(tmp_path, f"-drive if=virtio,format=raw,file={tmp_path}/medium")
    (tmp_path / "board.toml").write_text(UBOOT_DISK)
    for number, said in enumerate(boots(kernel, tmp_path / "board.toml", tmp_path / "trials", 2)):
        assert said.startswith(f"this is {number}\n/dev/root / ext4 ro,")


def test_a_root_over_nfs_of_a_board_with_a_boot_loader(kernel: Kernel, server: int, tmp_path: Path) -> None:
    write_uboot_lab(tmp_path)
    (tmp_path / "board.toml").write_text(UBOOT_NFS.replace("@PORT@", str(server)))
    (said,) = boots(kernel, tmp_path / "board.toml", tmp_path / "trials", 1)
    assert "10.0.2.2:/board / nfs4 ro," in said
    assert not (tmp_path / "tftp" / "initrd").exists()


def test_a_root_that_is_flashed(kernel: Kernel, tmp_path: Path) -> None:
    board = subprocess.Popen([sys.executable, FAKE, "serve", tmp_path, *QEMU.split()])
    try:
        while not (tmp_path / "ports").exists():
            time.sleep(0.1)
        write_lab(tmp_path, json.loads((tmp_path / "ports").read_text()))
        (tmp_path / "board.toml").write_text(FLASHED)
        said = boots(kernel, tmp_path / "board.toml", tmp_path / "trials", 2)
    finally:
        board.terminate()
        board.wait()
    for number, words in enumerate(said):
        assert words.startswith(f"this is {number}\n/dev/root / ext4 ro,")
