"""Roots that a kernel mounts itself: their content, what must not be replaced, and a boot from a disk."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kduel.core.cache import Cache
from kduel.core.errors import HostError, InputError
from kduel.core.experiment import Contender, Settle
from kduel.core.progress import Progress
from kduel.guest import mounted
from kduel.guest.cpio import Cpio, unpack
from kduel.guest.initramfs import trial_archive
from kduel.guest.script import ScriptStep, compose
from kduel.kernels import Kernel, resolve
from kduel.machines import Arm, Needs, Outcome, Trial, boards
from kduel.machines.board import PLUGIN, check_root
from kduel.machines.boards.described import lock_tree

NVME = (Path(boards.__file__).parent / "x86_64-nvme.toml").read_text()
NFS = """\
summary = "over NFS"
architecture = "aarch64"
console = "ttyAMA0"
memory = "256M"
cmdline = "root=/dev/nfs nfsroot=10.0.2.2:/srv,vers=3,tcp ip=dhcp"
root = "nfs"
tree = "tree"

[qemu]
program = "qemu-system-aarch64"
package = "qemu-system-arm"
machine = "virt"
cpu = "cortex-a72"
"""
LAB = NFS.partition("[qemu]")[0] + '[labgrid]\nenvironment = "lab.yaml"\nfiles = "files"\ncommands = ["boot"]\n'

NAMES = st.text(alphabet="abc.-é", min_size=1, max_size=8).filter(lambda name: name not in {".", ".."})
FILES = st.dictionaries(NAMES, st.tuples(st.binary(max_size=600), st.sampled_from([0o644, 0o755, 0o600, 0o700])))


def everything(below: Path) -> dict[str, tuple[bytes, bool] | str]:
    """By path: a file's content and whether it may be run, a link's target, "" for a directory."""

    def what(path: Path) -> tuple[bytes, bool] | str:
        if path.is_symlink():
            return str(path.readlink())
        return "" if path.is_dir() else (path.read_bytes(), os.access(path, os.X_OK))

    return {str(path.relative_to(below)): what(path) for path in below.rglob("*")}


@pytest.mark.slow
@given(FILES, FILES)
def test_an_archive_is_unpacked_as_cpio_does_it(
    tmp_path_factory: pytest.TempPathFactory,
    one: dict[str, tuple[bytes, int]],
    two: dict[str, tuple[bytes, int]],
) -> None:
    place = tmp_path_factory.mktemp("roots")
    archives = []
    for content in (one, two):
        archive = Cpio()
        archive.directory("d/e")
        for name, (data, mode) in content.items():
            archive.file(f"d/{name}x", data, mode)
        archives.append(archive)
    archives[0].link("l", "d/none")
    archives[0].character_device("dev/console", 5, 1)
    whole = [archive.finish() for archive in archives]
    (place / "ours").mkdir()
    unpack(b"".join(whole), place / "ours")
    (place / "theirs").mkdir()
    for archive in whole:
        # It ends with the first archive that it reads.
        words = ["cpio", "-idmu", "--quiet", "-f", "dev/console"]
        subprocess.run(words, cwd=place / "theirs", input=archive, check=True)
    assert everything(place / "ours") == everything(place / "theirs")


def archive(script: str) -> bytes:
    base = Cpio()
    for name in ("proc", "bin", "kduel/programs"):
        base.directory(name)
    base.file("kduel/programs/private", b"\x7fELF", 0o700)
    return base.finish() + trial_archive(script)


def test_a_directory_holds_one_trial_and_stays_itself(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    mounted.fill(tree, archive("the first one"))
    (tree / "kduel" / "left").write_text("by somebody")
    (tree / "bin" / "link").symlink_to(tmp_path)
    inode = tree.stat().st_ino
    mounted.fill(tree, archive("second"))
    assert (tree / "kduel" / "guest.sh").read_text() == "second"
    assert not (tree / "kduel" / "left").exists() and not (tree / "bin" / "link").exists()
    assert tmp_path.is_dir() and tree.stat().st_ino == inode, "a server offers this very directory"
    assert {"run", "tmp", "scratch", "proc"} <= {path.name for path in tree.iterdir()}


def test_a_root_is_for_a_server_to_read_that_is_not_root(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        mounted.fill(tmp_path / "tree", archive("x"))
    finally:
        os.umask(before)
    modes = {path: path.stat().st_mode & 0o777 for path in (tmp_path / "tree").rglob("*")}
    assert all(mode & 0o004 for mode in modes.values())
    assert modes[tmp_path / "tree" / "kduel" / "programs" / "private"] == 0o755


def test_what_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(HostError, match=r"not KDuel's(?s:.*)tree = "):
        mounted.fill(tmp_path, archive("x"))
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


@pytest.mark.parametrize("cut", [200, 700])
def test_who_was_interrupted_begins_again(tmp_path: Path, cut: int) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        mounted.fill(tmp_path, archive("x")[:cut])
    mounted.fill(tmp_path, archive("y"))
    assert (tmp_path / "kduel" / "guest.sh").read_text() == "y"


def test_who_was_interrupted_at_emptying_begins_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounted.fill(tmp_path, archive("x"))
    gone: list[Path] = []

    def interrupted(path: Path) -> None:
        if gone:
            raise KeyboardInterrupt
        gone.append(path)
        removed(path)

    removed = shutil.rmtree
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(shutil, "rmtree", interrupted)
        mounted.fill(tmp_path, archive("y"))
    assert len(gone) == 1
    mounted.fill(tmp_path, archive("y"))
    assert (tmp_path / "kduel" / "guest.sh").read_text() == "y"


def test_two_runs_do_not_share_a_directory(tmp_path: Path) -> None:
    held = lock_tree(str(tmp_path / "tree"))
    with pytest.raises(HostError, match=r"another run has its root in .*tree(?s:.*)tree = "):
        lock_tree(str(tmp_path / "tree"))
    os.close(held)
    os.close(lock_tree(str(tmp_path / "tree")))


def test_a_disk_has_it_all(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(mounted.disk(archive("echo of the trial")))
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"

    def tool(*words: str | Path) -> str:
        return subprocess.run(words, capture_output=True, text=True, check=True, env={"PATH": path}).stdout

    tool("e2fsck", "-f", "-n", image)
    assert tool("debugfs", "-R", "cat /kduel/guest.sh", image) == "echo of the trial"
    assert re.search(r"Mode: +0755", tool("debugfs", "-R", "stat /kduel/guest.sh", image))


def test_a_trial_that_ran_another_script_is_known(tmp_path: Path) -> None:
    assert "another trial's" in mounted.describe_other_script(tmp_path, "mine")
    (tmp_path / "script.sha256").write_text(hashlib.sha256(b"mine").hexdigest() + "  -\n")
    assert mounted.describe_other_script(tmp_path, "mine") == ""
    assert "another trial's" in mounted.describe_other_script(tmp_path, "mine, changed")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (NVME.replace("root=/dev/nvme0n1 ", ""), r"root = 'disk', but cmdline(?s:.*)cmdline = "),
        (NVME.replace("@ROOT@", "disk.img"), r"root = 'disk', and extra(?s:.*)file=@ROOT@"),
        (NVME.replace('root = "disk"\n', ""), r"root = 'ram', and extra(?s:.*)@ROOT@"),
        (NVME.replace('"disk"', '"floppy"'), r"Invalid enum value 'floppy'.*root"),
        (NFS.replace('tree = "tree"\n', ""), r"root = 'nfs', and tree = ''(?s:.*)tree = "),
        (NFS.replace('root = "nfs"\n', ""), r"root = 'ram', and tree = 'tree'(?s:.*)root = "),
        (NFS.replace("root=/dev/nfs", ""), r"but cmdline does not state(?s:.*)nfsroot="),
        (LAB.replace('commands = ["boot"]', ""), r"either commands or fastboot(?s:.*)fastboot = \[\]"),
        (LAB + "fastboot = []\n", r"either commands or fastboot"),
        (LAB + 'flash = "userdata"\n', r"flash = 'userdata'(?s:.*)goes with fastboot"),
    ],
)
def test_keys_that_do_not_fit_are_named(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "mine.toml"
    for good in (NVME, NFS, LAB):
        path.write_text(good)
        boards.board(str(path))
    path.write_text(text)
    with pytest.raises(InputError, match=rf"mine\.toml: .*{told}"):
        boards.board(str(path))


def test_a_directory_lies_beside_its_description(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(NFS)
    assert boards.board(str(tmp_path / "mine.toml")).tree == str(tmp_path / "tree")


@pytest.mark.parametrize(
    ("text", "config", "told"),
    [
        (NVME, "CONFIG_A=y\nCONFIG_EXT4_FS=m\n", "CONFIG_EXT4_FS=y"),
        (NFS, "CONFIG_NFS_FS=y\n", "CONFIG_ROOT_NFS=y"),
        (NVME, "CONFIG_A=y\nCONFIG_EXT4_FS=y\n", ""),
        (NFS.replace("nfs", "ram").replace('tree = "tree"\n', ""), "CONFIG_A=y\n", ""),
    ],
)
def test_a_kernel_that_cannot_mount_the_root_is_told_before_it_boots(
    tmp_path: Path, text: str, config: str, told: str
) -> None:
    (tmp_path / "config").write_text(config)
    board = boards.read(text, "mine.toml")
    kernel = Kernel(
        spec="debian:6.1",
        release="6.1",
        architecture=board.architecture,
        image=tmp_path,
        sha256="0" * 64,
        config=tmp_path / "config",
    )
    arms = [Arm(Contender(kernel="k"), kernel)]
    if told:
        with pytest.raises(InputError, match=rf"debian:6.1 cannot mount one: it is not built with {told}"):
            check_root("mine", board, arms)
    else:
        check_root("mine", board, arms)


def boot(place: str, into: Path) -> Outcome:
    spec = "debian:6.12-cloud"
    arm = Arm(Contender(kernel=spec, name="arm"), resolve(spec, cache=Cache(), progress=Progress()))
    machine = PLUGIN.prepare(
        PLUGIN.read_settings({"place": place}), [arm], Needs(), cache=Cache(), progress=Progress()
    )
    parts = [ScriptStep(label="look", script="cat /proc/mounts; echo x >$KDUEL_SCRATCH/x", timeout=300)]
    script = compose(parts, settle=Settle(mode="fixed", seconds=0))
    into.mkdir()
    (into / "guest.sh").write_text(script)
    try:
        return machine.boot(Trial(id="t", arm=arm, script=script, deadline=900, into=into))
    finally:
        machine.close()


@pytest.mark.guest
@pytest.mark.network
def test_a_kernel_of_debians_mounts_its_root_from_a_disk(tmp_path: Path) -> None:
    outcome = boot("x86_64-nvme", tmp_path / "trial")
    assert outcome.void == "", outcome.message
    assert '"status": 0' in (tmp_path / "trial" / "01-look" / "exit.json").read_text()
    assert " / ext4 ro," in (tmp_path / "trial" / "01-look" / "stdout").read_text()
    assert "initrd" not in " ".join(outcome.facts["argv"]).replace(".cpio", "")


@pytest.mark.guest
@pytest.mark.network
def test_a_root_of_another_trial_is_void(tmp_path: Path) -> None:
    # The disk that the kernel mounts was made for a trial before; the one of this trial is another.
    assert boot("x86_64-nvme", tmp_path / "first").void == ""
    base = next(word for word in (tmp_path / "first" / "rerun.sh").read_text().split() if word.endswith(".cpio"))
    (tmp_path / "old").write_bytes(mounted.disk(Path(base).read_bytes() + trial_archive("echo old >$1/old\n")))
    disk = '"-drive", "if=none,id=new,format=raw,file=@ROOT@", "-device", "virtio-blk-pci,drive=new", '
    text = NVME.replace("@ROOT@", f"{tmp_path}/old").replace("extra = [", f"extra = [{disk}")
    (tmp_path / "mine.toml").write_text(text)
    outcome = boot(str(tmp_path / "mine.toml"), tmp_path / "second")
    assert outcome.void == "wrong-machine" and "another trial's script" in outcome.message
