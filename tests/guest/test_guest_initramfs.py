from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parents[1] / "kernels"))
from made_kernels import module

from kduel import guest
from kduel.core.cache import Cache
from kduel.guest.cpio import Cpio
from kduel.guest.initramfs import base_archive, trial_archive
from kduel.kernels import Kernel
from kduel.kernels.files.modules import NO_MODULES

BUSYBOX = Path("/bin/busybox")


def unpack(archive: bytes, into: Path) -> dict[str, bytes]:
    into.mkdir()
    subprocess.run(["cpio", "-idm", "--quiet"], cwd=into, input=archive, check=True)
    return {str(p.relative_to(into)): p.read_bytes() for p in into.rglob("*") if p.is_file() and not p.is_symlink()}


def test_the_archive_is_what_cpio_reads(tmp_path):
    archive = Cpio()
    archive.file("a/b/c", b"12345", 0o755)
    archive.file("empty", b"")
    archive.link("bin/sh", "busybox")
    archive.directory("a/b/d")
    found = unpack(archive.finish(), tmp_path / "x")
    assert found == {"a/b/c": b"12345", "empty": b""}
    assert (tmp_path / "x/a/b/c").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "x/bin/sh").readlink() == Path("busybox")
    assert (tmp_path / "x/a/b/d").is_dir()


def test_a_device_is_a_device():
    archive = Cpio()
    archive.character_device("dev/console", 5, 1)
    listed = subprocess.run(["cpio", "-tv", "--quiet"], input=archive.finish(), capture_output=True, check=True)
    line = next(line for line in listed.stdout.decode().splitlines() if "dev/console" in line)
    assert line.startswith("crw-------") and "5,   1" in line


def test_the_same_content_gives_the_same_bytes():
    def made() -> bytes:
        archive = Cpio()
        archive.file("x/y", b"z")
        return archive.finish()

    assert made() == made()


@pytest.fixture
def kernel(tmp_path):
    config = tmp_path / "config"
    config.write_text("CONFIG_A=y\n")
    return Kernel(spec="x", release="1.2.3", image=tmp_path / "vmlinuz", sha256="0" * 64, config=config)


def test_programs_and_config_are_inside_and_change_the_key(kernel, tmp_path):
    cache = Cache(tmp_path / "cache")
    program = tmp_path / "kbench"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    bare = base_archive(kernel, BUSYBOX, cache=cache)
    with_program = base_archive(kernel, BUSYBOX, cache=cache, programs=[("sub/kbench", program)])
    assert bare != with_program
    assert base_archive(kernel, BUSYBOX, cache=cache) == bare
    found = unpack(with_program.archive.read_bytes(), tmp_path / "x")
    assert found["kduel/programs/sub/kbench"] == b"\x7fELF"
    assert found["boot/config-1.2.3"] == b"CONFIG_A=y\n"
    assert found["kduel/modules"] == b""
    assert (tmp_path / "x/kduel/programs/sub/kbench").stat().st_mode & 0o111


def test_only_a_quick_guest_has_the_lines_that_save_time(kernel, tmp_path, monkeypatch):
    cache = Cache(tmp_path / "cache")
    found = {
        quick: unpack(
            base_archive(kernel, BUSYBOX, cache=cache, quick=quick).archive.read_bytes(), tmp_path / str(quick)
        )
        for quick in (False, True)
    }
    for name, file in (("init", "init.sh"), ("kduel/run", "run.sh")):
        whole = guest.own_file(file)
        marked = [line for line in whole.splitlines(keepends=True) if line.rstrip().endswith(b"#quick")]
        assert marked and found[True][name] == whole
        assert b"#quick" not in found[False][name]
        assert len(found[False][name]) == len(whole) - sum(map(len, marked))
    more = guest.own_file("run.sh") + b"true #quick\n"
    monkeypatch.setattr(guest, "own_file", lambda _: more)
    assert guest.own_script("run.sh") == found[False]["kduel/run"] and guest.own_script("run.sh", quick=True) == more


def test_a_trials_script_follows_the_base(kernel, tmp_path):
    base = base_archive(kernel, BUSYBOX, cache=Cache(tmp_path / "cache")).archive.read_bytes()
    assert len(base) % 4 == 0, "the kernel wants archives aligned to 4 bytes"
    found = unpack(trial_archive("echo hello\n"), tmp_path / "x")
    assert found == {"kduel/guest.sh": b"echo hello\n"}


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", ["init.sh", "run.sh"])
def test_our_init_is_sound_shell(name, quick):
    script = guest.own_script(name, quick=quick)
    subprocess.run(["busybox", "sh", "-n", "/dev/stdin"], input=script, check=True)


def test_the_modules_that_a_guest_loads_are_known_by_their_content(kernel, tmp_path):
    cache, modules = Cache(tmp_path / "cache"), tmp_path / "lib"
    assert base_archive(kernel, BUSYBOX, cache=cache).modules == NO_MODULES
    (modules / "kernel/fs").mkdir(parents=True)
    ext4, other = modules / "kernel/fs/ext4.ko", modules / "kernel/fs/other.ko"
    ext4.write_bytes(module("1.2.3"))
    kernel = replace(kernel, modules=modules)

    def found() -> str:
        return base_archive(kernel, BUSYBOX, cache=cache, modules=["ext4"]).modules

    first = found()
    other.write_bytes(module("1.2.3", depends="ext4"))
    assert found() == first, "this one is not loaded"
    ext4.write_bytes(module("1.2.3", more=["softdep=pre: other"]))
    assert len({first, found(), NO_MODULES}) == 3


def test_modules_that_a_benchmark_may_load_lie_ready_with_what_they_need(kernel, tmp_path):
    cache, modules = Cache(tmp_path / "cache"), tmp_path / "lib"
    (modules / "kernel").mkdir(parents=True)
    (modules / "modules.builtin").write_text("kernel/fs/ext4.ko\n")
    for name, needs in (("nfnetlink", ""), ("nf_tables", "nfnetlink"), ("brd", "")):
        (modules / f"kernel/{name}.ko").write_bytes(module("1.2.3", depends=needs))
    kernel = replace(kernel, modules=modules)
    bare = base_archive(kernel, BUSYBOX, cache=cache, modules=[])
    base = base_archive(kernel, BUSYBOX, cache=cache, modules=[], carried=["brd", "ext4", "nf_tables", "absent"])
    found = unpack(base.archive.read_bytes(), tmp_path / "x")
    place = "kduel/carried"
    assert {name for name in found if name.startswith(place)} == {
        f"{place}/{name}" for name in ("brd", "brd.ko", "nf_tables", "nf_tables.ko", "nfnetlink.ko")
    }
    assert found[f"{place}/nf_tables"].decode().split() == [f"/{place}/nfnetlink.ko", f"/{place}/nf_tables.ko"]
    assert found["kduel/modules"] == b"", "init loads none of them"
    assert found.keys() - unpack(bare.archive.read_bytes(), tmp_path / "bare").keys() == {
        name for name in found if name.startswith(place)
    }
    assert bare.modules == NO_MODULES != base.modules
