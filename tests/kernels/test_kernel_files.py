"""Kernels that lie around: packages, images, built trees, and the host's own."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest
from heard import Heard
from made_kernels import bzimage, deb, elf, kernel_files, module, vmlinux

from kduel.core.cache import KEY, Cache
from kduel.core.errors import HostError, InputError
from kduel.core.plugins import plugins
from kduel.kernels import Kernel, host, resolve

RELEASE = "6.8.0-mine"


def get(spec: str | Path, cache: Cache, **more: Any) -> Kernel:
    return resolve(str(spec), cache=cache, progress=Heard(), **more)


def with_data(package: Path, name: str, data: bytes) -> Path:
    """A package with its data replaced."""
    (package.parent / name).write_bytes(data)
    subprocess.run(["ar", "d", package, "data.tar.xz"], check=True)
    subprocess.run(["ar", "q", package, package.parent / name], check=True)
    return package


class TestPackages:
    def test_one(self, tmp_path: Path, cache: Cache) -> None:
        package = deb(tmp_path, "linux-image-mine", "1", kernel_files(RELEASE))
        kernel = get(package, cache)
        assert kernel.release == RELEASE and kernel.config and kernel.modules
        assert kernel.provenance["packages"][0]["name"] == package.name
        assert get(package, cache, offline=True).image == kernel.image, "unpacked once"

    @pytest.mark.parametrize("name", ["x" * 251, ".hidden", "a b \u00fc", "\u00fc" * 125, "..", "-"])
    def test_a_file_may_have_any_name(self, tmp_path: Path, cache: Cache, name: str) -> None:
        """Of the cache's entry it is a part; a bundle can carry that."""
        package = deb(tmp_path, "image", "1", kernel_files(RELEASE))
        kernel = get(package.rename(tmp_path / f"{name}.deb"), cache)
        assert kernel.release == RELEASE and KEY.fullmatch(kernel.image.parent.name)

    def test_several(self, tmp_path: Path, cache: Cache) -> None:
        place = f"lib/modules/{RELEASE}"
        image = deb(tmp_path, "image", "1", {f"{place}/vmlinuz": bzimage(RELEASE), f"{place}/config": b"X=y"})
        modules = deb(tmp_path, "modules", "1", {f"{place}/kernel/a.ko.xz": b"x"})
        kernel = get(f"{image},{modules}", cache)
        assert kernel.modules is not None and (kernel.modules / "kernel/a.ko.xz").exists()
        assert get(image, cache).modules is None
        with pytest.raises(InputError, match="no kernel image is in there"):
            get(modules, cache)

    def test_only_what_is_needed_is_written(self, tmp_path: Path, cache: Cache) -> None:
        more = {"etc/passwd": b"x", f"lib/modules/{RELEASE}/build/Makefile": b"x", "boot/initrd.img-1": b"x"}
        kernel = get(deb(tmp_path, "image", "1", kernel_files(RELEASE) | more), cache)
        found = {str(p.relative_to(kernel.image.parent)) for p in kernel.image.parent.rglob("*") if p.is_file()}
        modules = f"lib/modules/{RELEASE}"
        assert found == {
            *("vmlinuz", "config", "kernel.json"),
            *(f"{modules}/modules.builtin", f"{modules}/kernel/drivers/block/virtio_blk.ko"),
        }

    def test_nothing_is_written_elsewhere(self, tmp_path: Path, cache: Cache) -> None:
        """A package whose archive tries to climb out, or to go through a link of its own."""
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w") as archive:
            link = tarfile.TarInfo(f"./lib/modules/{RELEASE}/kernel")
            link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
            archive.addfile(link)
            secret = tarfile.TarInfo(f"./boot/config-{RELEASE}")
            secret.type, secret.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(secret)
            for name in (
                f"./boot/vmlinuz-{RELEASE}",
                f"./lib/modules/{RELEASE}/kernel/../../../../../../escaped.ko",
                "./lib/modules/../../../kernel/escaped.ko",
                f"./lib/modules/{RELEASE}/kernel/through.ko",
            ):
                data = bzimage(RELEASE)
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        package = with_data(deb(tmp_path, "evil", "1", {}), "data.tar", content.getvalue())
        kernel = get(package, cache)
        assert not list(tmp_path.rglob("escaped.ko")) and not (tmp_path / "through.ko").exists()
        assert (kernel.image.parent / f"lib/modules/{RELEASE}/kernel/through.ko").is_file()
        assert kernel.config is None

    @pytest.mark.parametrize("left", [0, 60, 200, 900, -40])
    def test_cut_short(self, left: int, tmp_path: Path, cache: Cache) -> None:
        package = deb(tmp_path, "image", "1", kernel_files(RELEASE))
        package.write_bytes(package.read_bytes()[:left])
        with pytest.raises(InputError, match="not a complete Debian package"):
            get(package, cache)
        assert not [p for p in (cache.root / "kernels").glob("*") if p.is_dir()]

    def test_damaged_at_its_very_end(self, tmp_path: Path, cache: Cache) -> None:
        """All files are there and look right, but the checksum that follows them is wrong."""
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w") as archive:
            member = tarfile.TarInfo(f"./boot/vmlinuz-{RELEASE}")
            member.size = len(bzimage(RELEASE))
            archive.addfile(member, io.BytesIO(bzimage(RELEASE)))
        data = bytearray(lzma.compress(content.getvalue() + bytes(1 << 20)))
        data[-36] ^= 1
        package = with_data(deb(tmp_path, "image", "1", {}), "data.tar.xz", bytes(data))
        with pytest.raises(InputError, match=r"not a complete Debian package: .*corrupt"):
            get(package, cache)

    def test_two_kernels_at_once(self, tmp_path: Path, cache: Cache) -> None:
        one = deb(tmp_path, "one", "1", kernel_files("6.1.0"))
        other = deb(tmp_path, "other", "1", kernel_files("6.2.0"))
        with pytest.raises(InputError, match=r"of several kernels \(6.1.0, 6.2.0\)"):
            get(f"{one},{other}", cache)

    def test_what_is_not_there(self, tmp_path: Path, cache: Cache) -> None:
        with pytest.raises(InputError, match="there is no file"):
            get(tmp_path / "none.deb", cache)
        with pytest.raises(InputError, match="brings its own modules"):
            get(deb(tmp_path, "image", "1", kernel_files(RELEASE)), cache, modules=str(tmp_path))


class TestImages:
    def test_alone(self, tmp_path: Path, cache: Cache) -> None:
        path = tmp_path / "bzImage"
        path.write_bytes(bzimage(RELEASE))
        kernel = get(path, cache)
        assert (kernel.release, kernel.config, kernel.modules) == (RELEASE, None, None)
        path.write_bytes(bzimage("6.9.0"))
        assert kernel.image.read_bytes() == bzimage(RELEASE), "the one that was resolved stays"
        assert get(path, cache).release == "6.9.0"

    def test_config_inside(self, tmp_path: Path, cache: Cache) -> None:
        inside = gzip.compress(vmlinux(RELEASE, config=gzip.compress(b"CONFIG_IN=y\n")))
        (tmp_path / "bzImage").write_bytes(bzimage(RELEASE, payload=inside))
        kernel = get(tmp_path / "bzImage", cache)
        assert kernel.config is not None and kernel.config.read_text() == "CONFIG_IN=y\n"

    def test_in_a_system(self, tmp_path: Path, cache: Cache) -> None:
        for path, data in kernel_files(RELEASE).items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(data)
        kernel = get(tmp_path / f"boot/vmlinuz-{RELEASE}", cache)
        assert kernel.config is not None and kernel.config.read_text() == "CONFIG_PVH=y\n"
        assert kernel.modules == tmp_path / "usr/lib/modules" / RELEASE
        (tmp_path / "boot/vmlinuz-other").write_bytes(bzimage("6.9.0"))
        assert get(tmp_path / "boot/vmlinuz-other", cache).modules is None, "never those of another kernel"

    def test_named_modules(self, tmp_path: Path, cache: Cache) -> None:
        (tmp_path / "bzImage").write_bytes(bzimage(RELEASE))
        place = tmp_path / "installed/lib/modules" / RELEASE / "kernel"
        place.mkdir(parents=True)
        (place / "a.ko").write_bytes(module("6.9.0"))
        with pytest.raises(InputError, match=f"are of 6.9.0, the kernel is {RELEASE}"):
            get(tmp_path / "bzImage", cache, modules=str(tmp_path / "installed"))
        (place / "a.ko").write_bytes(module(RELEASE))
        assert get(tmp_path / "bzImage", cache, modules=str(tmp_path / "installed")).modules == place.parent

    def test_mistakes(self, tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(InputError, match="is not a Linux kernel: it is an ELF file"):
            (tmp_path / "program").write_bytes(elf())
            get(tmp_path / "program", cache)
        with pytest.raises(InputError, match="is a directory") as caught:
            get(tmp_path, cache)
        assert f"tree:{tmp_path}" in caught.value.remedy
        with pytest.raises(InputError, match="there is no file"):
            get(tmp_path / "none", cache)
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(InputError, match="pipe is no regular file"):
            get(tmp_path / "pipe", cache)
        monkeypatch.chdir(tmp_path)
        with pytest.raises(InputError, match=r"'6\.12' is not a kernel that KDuel knows"):
            get("6.12", cache)

    def test_not_readable(self, cache: Cache) -> None:
        plugins("kernels")  # Imported as the user who may read this checkout.
        user = os.geteuid()
        # A directory that anybody may enter: those of pytest are root's alone where root calls it.
        with tempfile.TemporaryDirectory() as place:
            Path(place).chmod(0o755)
            image = Path(place) / "vmlinuz"
            image.write_bytes(bzimage(RELEASE))
            image.chmod(0)
            try:
                if user == 0:  # Root may read everything.
                    os.seteuid(65534)
                with pytest.raises(InputError, match=f"{image}.*Permission denied"):
                    get(image, cache)
            finally:
                os.seteuid(user)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A built tree, as far as KDuel looks; a real one was looked at to make it."""
    place = tmp_path / "linux"
    config = "#\n# Automatically generated file; DO NOT EDIT.\n# Linux/x86 6.8.0 Kernel Configuration\n#\n"
    config += "CONFIG_MODULES=y\nCONFIG_EXT4_FS=m\n"
    files = {
        ".config": config.encode(),
        "Kbuild": b"",
        "arch/x86/boot/bzImage": bzimage(RELEASE),
        "include/config/kernel.release": f"{RELEASE}\n".encode(),
        "include/config/auto.conf": b"",
        "vmlinux": b"\x7fELF",
        "modules.order": b"fs/ext4/ext4.o\nkernel/fs/jbd2/jbd2.ko\n",
        "modules.builtin": b"kernel/fs/mbcache.ko\n",
        "fs/ext4/ext4.ko": module(RELEASE, depends="jbd2"),
        "fs/jbd2/jbd2.ko": module(RELEASE),
    }
    for path, data in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(data)
    return place


class TestTrees:
    def test_whole(self, tree: Path, cache: Cache) -> None:
        kernel = get(f"tree:{tree}", cache)
        assert (kernel.release, kernel.vmlinux) == (RELEASE, tree / "vmlinux")
        assert kernel.config is not None and kernel.config.read_text() == (tree / ".config").read_text()
        assert kernel.modules is not None and kernel.modules.name == RELEASE
        found = {str(p.relative_to(kernel.modules)) for p in kernel.modules.rglob("*") if p.is_file()}
        assert found == {"kernel/fs/ext4/ext4.ko", "kernel/fs/jbd2/jbd2.ko", "modules.builtin", "modules.order"}
        assert kernel.provenance == {"source": "tree", "path": str(tree), "commit": None, "modified": None}

    def test_built_again(self, tree: Path, cache: Cache) -> None:
        first = get(f"tree:{tree}", cache)
        assert get(f"tree:{tree}", cache).image == first.image
        (tree / "fs/jbd2/jbd2.ko").write_bytes(module(RELEASE, more=["description=new"]))
        second = get(f"tree:{tree}", cache)
        (tree / "fs/jbd2/jbd2.ko").write_bytes(module(RELEASE, more=["description=old"]))
        assert get(f"tree:{tree}", cache).modules != second.modules, "of the same size"
        assert second.modules != first.modules and first.modules is not None and first.modules.exists()

    def test_commit(self, tree: Path, cache: Cache) -> None:
        def git(*words: str) -> str:
            environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
            who = ["-c", "user.name=n", "-c", "user.email=n@example.org"]
            command = ["git", "-C", str(tree), *who, *words]
            return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()

        git("init", "-q")
        assert get(f"tree:{tree}", cache).provenance["commit"] is None, "a repository without any commit"
        git("add", "Kbuild")
        git("commit", "-qm", "first")
        facts = get(f"tree:{tree}", cache).provenance
        assert (facts["commit"], facts["modified"]) == (git("rev-parse", "HEAD"), False)
        (tree / "Kbuild").write_text("obj-y += x.o\n")
        assert get(f"tree:{tree}", cache).provenance["modified"] is True
        (tree / ".git/index").write_text("damaged")
        assert get(f"tree:{tree}", cache).provenance["modified"] is None, "git cannot tell"

    def test_nothing_modular(self, tree: Path, cache: Cache) -> None:
        text = (tree / ".config").read_text().replace("CONFIG_EXT4_FS=m", "CONFIG_EXT4_FS=y")
        (tree / ".config").write_text(text)
        (tree / "include/config/auto.conf").touch()
        (tree / "modules.order").unlink()
        assert get(f"tree:{tree}", cache).modules is None

    @pytest.mark.parametrize(
        ("missing", "told", "remedy"),
        [
            ("arch/x86/boot/bzImage", "is not built: it has no arch/x86/boot/bzImage", "make -C"),
            ("include/config/kernel.release", "is not built", "make -C"),
            (".config", "is not configured", "defconfig"),
            ("modules.order", "modules of .* are not built", "modules"),
            ("fs/jbd2/jbd2.ko", "fs/jbd2/jbd2.ko is missing", "modules=DIR"),
        ],
    )
    def test_not_built(self, missing: str, told: str, remedy: str, tree: Path, cache: Cache) -> None:
        (tree / missing).unlink()
        with pytest.raises(InputError, match=told) as caught:
            get(f"tree:{tree}", cache)
        assert remedy in caught.value.remedy

    def test_changed_since(self, tree: Path, cache: Cache) -> None:
        (tree / "include/config/kernel.release").write_text("6.9.0\n")
        with pytest.raises(InputError, match=f"the image is of {RELEASE}, but the tree is at 6.9.0"):
            get(f"tree:{tree}", cache)
        later = (tree / "include/config/auto.conf").stat().st_mtime + 5
        os.utime(tree / ".config", (later, later))
        with pytest.raises(InputError, match="changed after the kernel was built"):
            get(f"tree:{tree}", cache)

    def test_signed_modules_only(self, tree: Path, cache: Cache) -> None:
        with (tree / ".config").open("a") as stream:
            stream.write("CONFIG_MODULE_SIG_FORCE=y\n")
        (tree / "include/config/auto.conf").touch()
        with pytest.raises(InputError, match="only signed modules") as caught:
            get(f"tree:{tree}", cache)
        assert "modules_install" in caught.value.remedy

    def test_no_tree(self, tmp_path: Path, cache: Cache) -> None:
        with pytest.raises(InputError, match="there is no directory"):
            get(f"tree:{tmp_path}/none", cache)
        with pytest.raises(InputError, match="is no kernel tree"):
            get(f"tree:{tmp_path}", cache)


class TestHost:
    def test_found(self, tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / f"config-{RELEASE}").write_text("CONFIG_HOST=y\n")
        (tmp_path / "vmlinuz").write_bytes(bzimage(RELEASE))
        monkeypatch.setattr(host, "image_paths", lambda _: [tmp_path / "absent", tmp_path / "vmlinuz"])
        kernel = get("host", cache)
        assert kernel.release == RELEASE and kernel.config is not None
        assert kernel.provenance["source"] == "host"

    def test_absent(self, tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(host, "image_paths", lambda _: [tmp_path / "absent"])
        with pytest.raises(HostError, match=os.uname().release) as caught:
            get("host", cache)
        assert "give the file" in caught.value.remedy

    def test_for_root_only(self, tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "vmlinuz").write_bytes(bzimage(RELEASE))
        monkeypatch.setattr(host, "image_paths", lambda _: [tmp_path / "vmlinuz"])
        monkeypatch.setattr(os, "access", lambda *_: False)
        with pytest.raises(HostError, match="by root only") as caught:
            get("host", cache)
        assert "sudo install -m 644" in caught.value.remedy
