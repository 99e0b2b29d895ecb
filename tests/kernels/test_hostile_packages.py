"""Packages and lists of packages that are bombs or no archives, and honest ones of the tools that make them."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from made_kernels import bzimage, kernel_files, module
from made_repositories import quietly

from kduel.core.errors import HostError, InputError, KduelError
from kduel.core.progress import Progress
from kduel.kernels.apt.unpack import unpack as unpack_debs
from kduel.kernels.arch import PLUGIN as ARCH
from kduel.kernels.debian_source import untar_inside
from kduel.kernels.files import decompress
from kduel.kernels.packages.pacman import read_identity, unpack_pacman

RELEASE = "6.14.6-arch1-1"
IMAGE = f"usr/lib/modules/{RELEASE}/vmlinuz"


def header(kind: bytes, content: bytes = b"", name: str = "header", size: int | None = None) -> bytes:
    """One member's header, with its content."""
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, len(content) if size is None else size
    return member.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512)


def record(text: bytes) -> bytes:
    """An extended header of one line."""
    length = next(total for total in range(len(text), len(text) + 20) if len(b"%d %b\n" % (total, text)) == total)
    return header(tarfile.XHDTYPE, b"%d %b\n" % (length, text))


END = bytes(1024)
HOSTILE = {
    "digits": (header(tarfile.XHDTYPE, b"9" * 100_000), "an extended header of 100000 bytes"),
    "few digits": (header(tarfile.XHDTYPE, b"9" * 5000), "cannot be read"),
    "row": (record(b"a=b") * 2000, "two headers of one kind"),
    "names": (header(tarfile.GNUTYPE_LONGNAME, b"a\0") * 2000, "two headers of one kind"),
    "records": (header(tarfile.XHDTYPE, b"6 a=b\n" * 101), "oversized"),
    "sparse map": (record(b"GNU.sparse.map=a,b"), "sparse"),
    "sparse": (header(tarfile.GNUTYPE_SPARSE, size=0), "neither a plain file"),
    "huge": (header(tarfile.REGTYPE, size=1 << 40), "a number that is none"),
    "one path": (header(tarfile.XGLTYPE, b"17 path=/etc/abc\n"), "one path for all"),
    "link": (header(tarfile.SYMTYPE, b"x" * 512), "with bytes in it"),
    "cut": (header(tarfile.REGTYPE, size=5000), "middle of a member"),
    "no tar": (b"x" * 1024, "a wrong checksum|a number that is none"),
}


def package_deb(place: Path, tar: bytes) -> Path:
    """A Debian package with this tar, as anybody can make one."""
    (place / "debian-binary").write_bytes(b"2.0\n")
    (place / "control.tar").write_bytes(END)
    (place / "data.tar").write_bytes(tar)
    quietly("xz", "-0", "-f", place / "data.tar")
    package = place / "linux-image.deb"
    quietly("ar", "rc", package, "debian-binary", "control.tar", "data.tar.xz", cwd=place)
    return package


def package_zst(place: Path, tar: bytes) -> Path:
    """A package of pacman with this tar."""
    (place / "linux.pkg.tar").write_bytes(tar)
    quietly("zstd", "-q", "--rm", place / "linux.pkg.tar")
    return place / "linux.pkg.tar.zst"


def read_deb(place: Path, tar: bytes) -> object:
    return unpack_debs([package_deb(place, tar)], place / "into")


def read_source(place: Path, tar: bytes) -> None:
    untar_inside(package_deb(place, tar), place / "into")


def read_pacman(place: Path, tar: bytes) -> object:
    return unpack_pacman([package_zst(place, tar)], place / "into")


def read_own_name(place: Path, tar: bytes) -> object:
    return read_identity(package_zst(place, tar))


def read_database(place: Path, tar: bytes) -> object:
    directory = place / "mirror/core/os/x86_64"
    directory.mkdir(parents=True)
    (directory / "core.db").write_bytes(package_zst(place, tar).read_bytes())
    return ARCH.list_packages("linux", f"file://{place}/mirror", place, Progress())


READERS = [read_deb, read_source, read_pacman, read_own_name, read_database]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("read", READERS)
def test_a_hostile_archive_is_refused(
    tmp_path: Path, need: Callable[..., str], read: Callable[[Path, bytes], object], name: str
) -> None:
    for program in ("ar", "xz", "zstd", "dpkg-deb"):
        need(program)
    (tmp_path / "into").mkdir()
    first, why = HOSTILE[name]
    with pytest.raises((InputError, HostError), match=why):
        read(tmp_path, header(tarfile.DIRTYPE, name="usr/") + first + END)
    assert not [path for path in (tmp_path / "into").rglob("*") if path.is_file()]


@pytest.mark.parametrize("read", READERS)
def test_a_bomb_ends_at_its_bound(
    tmp_path: Path,
    need: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    read: Callable[[Path, bytes], object],
) -> None:
    """10 MiB of zeros take some hundred bytes; the bound is 1 MiB here."""
    for program in ("ar", "xz", "zstd", "dpkg-deb"):
        need(program)
    monkeypatch.setattr(decompress, "ALWAYS", 1 << 20)
    (tmp_path / "into").mkdir()
    name = "./usr/src/linux-source-6.1.tar.xz" if read is read_source else IMAGE
    if read is read_database:
        name = "linux-1-1/desc"
    tar = header(tarfile.REGTYPE, bytes(10 << 20), name) + END
    with pytest.raises(KduelError, match="it unpacks to more than"):
        read(tmp_path, tar)
    written = [path for path in (tmp_path / "into").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in [*written, *tmp_path.glob("archive.tar")]) < 2 << 20


@pytest.mark.parametrize("ending", ["gz", "xz", "bz2", "zst"])
def test_a_list_of_any_compression_is_bounded(tmp_path: Path, need: Callable[..., str], ending: str) -> None:
    """Told by its bytes, as a server may call it what it likes; damage is said in words."""
    program = need({"gz": "gzip", "xz": "xz", "bz2": "bzip2", "zst": "zstd"}[ending])
    plain = tmp_path / "list"
    plain.write_bytes(bytes(90 << 20))
    packed = tmp_path / "list.xml"
    packed.write_bytes(subprocess.run([program, "-1", "-c", plain], capture_output=True, check=True).stdout)
    assert packed.stat().st_size < 500_000
    with pytest.raises(ValueError, match="unpacks to more than"), decompress.decompress(packed) as stream:
        while stream.read(1 << 20):
            pass
    packed.write_bytes(packed.read_bytes()[:1000])
    with pytest.raises(ValueError), decompress.decompress(packed) as stream:
        while stream.read(1 << 20):
            pass


@pytest.mark.parametrize("compression", ["none", "gzip", "xz", "zstd"])
def test_a_package_by_dpkg_is_read_whole(tmp_path: Path, need: Callable[..., str], compression: str) -> None:
    """With links, a name longer than a header takes, and files that a kernel does not need."""
    need("dpkg-deb")
    tree = tmp_path / "tree"
    release = "6.12.1-" + "long" * 30
    files = kernel_files(release)
    deep = f"usr/lib/modules/{release}/kernel/{'d' * 90}/m.ko"
    for path, data in {**files, deep: module(release)}.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(data)
    (tree / f"usr/lib/modules/{release}/build").symlink_to("/usr/src/" + "x" * 200)
    os.link(tree / deep, tree / f"usr/lib/modules/{release}/kernel/twice.ko")
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN/control").write_text(
        "Package: linux-image\nVersion: 1\nArchitecture: amd64\nMaintainer: N <n@example.org>\nDescription: d\n"
    )
    package = tmp_path / "linux-image.deb"
    quietly("dpkg-deb", "--build", "--root-owner-group", f"-Z{compression}", tree, package)
    found = unpack_debs([package], tmp_path / "into")
    assert found.release == release and found.image.read_bytes() == bzimage(release)
    assert found.modules is not None
    assert (found.modules / "kernel" / ("d" * 90) / "m.ko").read_bytes() == module(release)


@pytest.mark.parametrize("form", ["gnutar", "pax", "ustar"])
def test_a_package_by_bsdtar_is_read_whole(tmp_path: Path, need: Callable[..., str], form: str) -> None:
    """As makepkg calls it; pax brings headers with times before every member."""
    bsdtar, tree = need("bsdtar"), tmp_path / "tree"
    info = b"pkgname = linux\npkgver = 6.14.6.arch1-1\narch = x86_64\n"
    name = "k\u00e4" if form == "pax" else "k"
    for path, data in {".PKGINFO": info, IMAGE: bzimage(RELEASE), f"usr/share/{name}": b"x"}.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(data)
    (tree / f"usr/lib/modules/{RELEASE}/build").symlink_to("elsewhere")
    tar = subprocess.run(
        [bsdtar, "--no-fflags", f"--format={form}", "-cf", "-", ".PKGINFO", "usr"],
        cwd=tree,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        capture_output=True,
        check=True,
    ).stdout
    package = package_zst(tmp_path, tar)
    assert read_identity(package) == ("linux", "6.14.6.arch1-1")
    assert unpack_pacman([package], tmp_path / "into").image.read_bytes() == bzimage(RELEASE)


def test_an_archive_by_git_is_read(tmp_path: Path) -> None:
    """It begins with a header for all members, a comment."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "4f2a"}) as tar:
        member = tarfile.TarInfo(IMAGE)
        member.size = len(bzimage(RELEASE))
        tar.addfile(member, io.BytesIO(bzimage(RELEASE)))
    package = package_zst(tmp_path, stream.getvalue())
    assert unpack_pacman([package], tmp_path / "into").image.read_bytes() == bzimage(RELEASE)
