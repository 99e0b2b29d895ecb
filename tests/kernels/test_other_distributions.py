"""Kernels of Fedora, openSUSE, Arch Linux and Ubuntu, from small repositories that their own tools made."""

from __future__ import annotations

import hashlib
import io
import lzma
import re
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from heard import Heard
from made_kernels import end_agent, kernel_files, signing_key
from made_repositories import (
    Served,
    armoured,
    gpg,
    pacman_package,
    quietly,
    repomd,
    rpm,
    split,
    ubuntu_kernel,
    ubuntu_suite,
)  # fmt: skip

from kduel.core.cache import Cache
from kduel.core.errors import HostError, InputError
from kduel.kernels import Kernel, resolve
from kduel.kernels.files.decompress import decompress
from kduel.kernels.packages.repomd import locate_primary
from kduel.kernels.ubuntu import _packages

FEDORA = {"6.14.5-300.fc42": "releases/42/Everything/x86_64/os", "6.15.3-200.fc42": "updates/42/Everything/x86_64"}
SUSE = "tumbleweed/repo/oss"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, signing_home: Path, need: Callable[..., str]) -> Path:
    """A mirror of each distribution, in a directory of its name."""
    for program in ("rpmbuild", "createrepo_c", "repo-add", "apt-ftparchive", "gpg", "gpgv", "zstd"):
        need(program)
    root = tmp_path_factory.mktemp("mirrors")
    for version, place in FEDORA.items():
        image, modules = split(f"{version}.x86_64")
        rpm(root / "fedora" / place, signing_home, "kernel-core", version, image)
        rpm(root / "fedora" / place, signing_home, "kernel-modules-core", version, modules, payload="w2.xzdio")
        repomd(root / "fedora" / place, signing_home, signed=False)
    for version in ("6.14.4-1.1", "6.14.10-1.1"):
        files = {path: data for part in split(f"{version[:-2]}-default") for path, data in part.items()}
        rpm(root / "opensuse" / SUSE / "x86_64", signing_home, "kernel-default", version, files, payload="w9.gzdio")
    repomd(root / "opensuse" / SUSE, signing_home, signed=True)
    for name, release in (("linux", "6.14.6-arch1-1"), ("linux-lts", "6.12.28-1-lts")):
        files = {path: data for part in split(release) for path, data in part.items() if "config" not in path}
        version = release.replace("-arch", ".arch").removesuffix("-lts")
        place = root / "arch/core/os/x86_64"
        package = pacman_package(
            place, signing_home, name, version, {f"usr/{path}": data for path, data in files.items()}
        )
        quietly("repo-add", "-q", place / "core.db.tar.gz", package)
    for suite, version in (("noble", "6.8.0-31.31"), ("noble-updates", "6.8.0-60.63")):
        pair = ubuntu_kernel(root, version, version.rpartition(".")[0])
        ubuntu_suite(root / "ubuntu", signing_home, suite, list(pair))
    return root


@pytest.fixture
def mirrors(made: Path, tmp_path: Path, signing_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of them on loopback, named in the environment, with the key."""
    root = tmp_path / "mirrors"
    shutil.copytree(made, root, symlinks=True)
    with Served(root) as served:
        for name in ("fedora", "opensuse", "arch", "ubuntu"):
            monkeypatch.setenv(f"KDUEL_{name.upper()}_MIRROR", f"{served.address}/{name}/")
            key = armoured(signing_home) if name in ("fedora", "opensuse") else signing_key(signing_home)
            monkeypatch.setenv(f"KDUEL_{name.upper()}_KEYRING", str(key))
        yield root


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "release"),
    [
        ("fedora:42", "6.15.3-200.fc42.x86_64"),
        ("fedora:42-6.14", "6.14.5-300.fc42.x86_64"),
        ("opensuse:tumbleweed", "6.14.10-1-default"),
        ("opensuse:tumbleweed-6.14.4", "6.14.4-1-default"),
        ("arch:linux", "6.14.6-arch1-1"),
        ("arch:linux-lts", "6.12.28-1-lts"),
        ("ubuntu:noble", "6.8.0-60-generic"),
        ("ubuntu:noble-6.8.0-31.31", "6.8.0-31-generic"),
    ],
)
def test_the_newest_kernel_that_is_meant_with_its_modules(
    mirrors: Path, cache: Cache, progress: Heard, spec: str, release: str
) -> None:
    kernel = resolve(spec, cache=cache, progress=progress)
    assert kernel.release == release
    files = kernel_files(release)
    assert kernel.image.read_bytes() == files[f"boot/vmlinuz-{release}"]
    assert kernel.modules is not None
    module = "kernel/drivers/block/virtio_blk.ko"
    assert (kernel.modules / module).read_bytes() == files[f"usr/lib/modules/{release}/{module}"]
    assert (kernel.config is None) == spec.startswith("arch:")
    # What it is called exactly means it again, without network too.
    exact = str(kernel.provenance["exact"])
    assert resolve(exact, cache=cache, progress=progress).image == kernel.image
    shutil.rmtree(mirrors)
    shutil.rmtree(cache.root / "archive")
    for name in (spec, exact):
        assert resolve(name, cache=cache, progress=progress, offline=True).image == kernel.image
    assert resolve(exact, cache=cache, progress=progress).image == kernel.image, "a run goes on without its mirror"


def first(root: Path, pattern: str) -> Path:
    return sorted(root.rglob(pattern))[-1]


def flip(path: Path) -> None:
    """Change one byte in the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "file"),
    [
        ("fedora:42", "updates/**/kernel-core*.rpm"),
        ("opensuse:tumbleweed", "kernel-default-6.14.10*.rpm"),
        ("arch:linux", "linux-6*.zst"),
        ("ubuntu:noble", "linux-image-6.8.0-60*.deb"),
        ("ubuntu:noble", "noble-updates/**/Packages.xz"),
    ],
)
def test_a_changed_file_is_refused(mirrors: Path, cache: Cache, progress: Heard, spec: str, file: str) -> None:
    flip(first(mirrors, file))
    with pytest.raises(HostError, match="is not the file that the list of packages names"):
        resolve(spec, cache=cache, progress=progress)


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["fedora:42", "opensuse:tumbleweed", "arch:linux", "ubuntu:noble"])
def test_what_another_key_signed_is_refused(
    mirrors: Path, cache: Cache, progress: Heard, spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mirror whose owner signs as well as he can: by a key that is not the distribution's."""
    other = tmp_path / "g"
    other.mkdir()
    monkeypatch.setenv(f"KDUEL_{spec.partition(':')[0].upper()}_KEYRING", str(signing_key(other)))
    end_agent(other)
    with pytest.raises(InputError, match="is not signed by a key of"):
        resolve(spec, cache=cache, progress=progress)


@pytest.mark.parametrize(
    ("spec", "place", "name"),
    [("fedora:42", FEDORA["6.15.3-200.fc42"], "kernel-core"), ("opensuse:tumbleweed", SUSE, "kernel-default")],
)
def test_an_unsigned_package_is_refused(
    mirrors: Path, cache: Cache, progress: Heard, signing_home: Path, spec: str, place: str, name: str
) -> None:
    """Put into the lists by whoever owns the mirror; openSUSE's he cannot sign, so there they are signed here."""
    directory = mirrors / spec.partition(":")[0] / place
    rpm(directory, signing_home, name, "7.0.1-1.fc42", split("7.0.1-1.fc42.x86_64")[0], signed=False)
    repomd(directory, signing_home, signed=spec.startswith("opensuse"))
    with pytest.raises(InputError, match=f"{name}-7.0.1-1.fc42.x86_64.rpm is not signed"):
        resolve(spec, cache=cache, progress=progress)


def test_lists_that_were_changed_without_the_key_are_refused(
    mirrors: Path, cache: Cache, progress: Heard, signing_home: Path
) -> None:
    repomd(mirrors / "opensuse" / SUSE, signing_home, signed=False)
    index = mirrors / "opensuse" / SUSE / "repodata/repomd.xml"
    index.write_text(index.read_text() + "\n")
    (index.parent / "repomd.xml.asc").write_bytes(first(mirrors, "*.sig").read_bytes())
    with pytest.raises(InputError, match=r"repomd\.xml is not signed"):
        resolve("opensuse:tumbleweed", cache=cache, progress=progress)


def test_a_suite_that_is_passed_off_as_another_is_refused(mirrors: Path, cache: Cache, progress: Heard) -> None:
    """An old suite with its valid signature, in the place of the updates."""
    lists = mirrors / "ubuntu/dists"
    shutil.rmtree(lists / "noble-updates")
    shutil.copytree(lists / "noble", lists / "noble-updates")
    with pytest.raises(HostError, match="is that of noble"):
        resolve("ubuntu:noble", cache=cache, progress=progress)


def test_lists_are_asked_for_once_a_day(mirrors: Path, cache: Cache, progress: Heard) -> None:
    resolve("fedora:42-6.14", cache=cache, progress=progress)
    for path in mirrors.rglob("repodata"):
        shutil.rmtree(path)
    assert resolve("fedora:42", cache=cache, progress=progress).release.startswith("6.15.3")


def test_packages_that_lie_around(made: Path, cache: Cache, progress: Heard, tmp_path: Path) -> None:
    packages = sorted((made / "fedora" / FEDORA["6.14.5-300.fc42"]).glob("*.rpm"))
    for spec in (",".join(map(str, packages)), "rpm:" + ",".join(map(str, packages))):
        kernel: Kernel = resolve(spec, cache=cache, progress=progress)
        assert kernel.release == "6.14.5-300.fc42.x86_64" and kernel.modules is not None
    with pytest.raises(InputError, match="no kernel image is in there"):
        resolve(str(packages[1]), cache=cache, progress=progress)
    damaged = tmp_path / "damaged.rpm"
    for change in (
        lambda data: data[:-100],
        lambda data: data[:-100] + bytes(100),
        lambda data: data[:200],
        lambda _: b"x",
    ):
        damaged.write_bytes(change(packages[0].read_bytes()))
        with pytest.raises(InputError, match=r"damaged\.rpm is not a complete RPM package"):
            resolve(f"rpm:{damaged}", cache=cache, progress=progress)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("fedora:42-6.1", r"Fedora 42 has no kernel 6\.1\nIt has: 6\.15\.3-200\.fc42, 6\.14\.5-300\.fc42\."),
        ("fedora:forty", "names no kernel of Fedora"),
        ("fedora:99", "404"),
        ("arch:linux-zen", "404"),
        ("arch:windows", "Give arch:linux, arch:linux-lts"),
        ("opensuse:16.9", "404"),
        ("ubuntu:jammy", "404"),
    ],
)
def test_what_there_is_not_is_told(mirrors: Path, cache: Cache, progress: Heard, spec: str, says: str) -> None:
    with pytest.raises((InputError, HostError), match=says):
        resolve(spec, cache=cache, progress=progress)


def test_without_a_mirror_or_keys_the_variable_is_named(
    mirrors: Path, cache: Cache, progress: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDUEL_OPENSUSE_KEYRING", "/nonexistent")
    with pytest.raises(HostError, match="KDUEL_OPENSUSE_KEYRING, or install openSUSE-build-key"):
        resolve("opensuse:tumbleweed", cache=cache, progress=progress)
    monkeypatch.delenv("KDUEL_FEDORA_MIRROR")
    with pytest.raises(HostError, match="Name one in KDUEL_FEDORA_MIRROR"):
        resolve("fedora:42", cache=cache, progress=progress)


def relist(mirrors: Path, spec: str, old: str, new: str) -> None:
    """Change the lists of a mirror, which nobody signs, as it could itself."""
    if spec.startswith("arch"):
        database = mirrors / "arch/core/os/x86_64/core.db"
        with tarfile.open(database) as archive:
            members = [(one, one.isfile() and archive.extractfile(one).read()) for one in archive]  # type: ignore[union-attr]
        database.unlink()
        with tarfile.open(database, "w:gz") as archive:
            for one, data in members:
                changed = (data or b"").replace(old.encode(), new.encode())
                one.size = len(changed)
                archive.addfile(one, io.BytesIO(changed))
        return
    for index in (mirrors / "fedora").rglob("repomd.xml"):
        address, _ = locate_primary(index)
        with decompress(index.parents[1] / address) as stream:
            data = stream.read().replace(old.encode(), new.encode())
        (index.parent / "primary.xml").write_bytes(data)
        index.write_text(
            '<repomd xmlns="http://linux.duke.edu/metadata/repo"><data type="primary"><checksum type="sha256">'
            f'{hashlib.sha256(data).hexdigest()}</checksum><location href="repodata/primary.xml"/></data></repomd>'
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "old", "new", "why"),
    [
        ("fedora:42", 'ver="6.15.3"', 'ver="7.9.9"', "the list of packages calls it kernel-core 7.9.9"),
        ("fedora:42", 'ver="6.15.3"', 'ver="6.15.3/../../../../escaped"', "the version of kernel-core is"),
        ("fedora:42", 'ver="6.15.3"', f'ver="{"9" * 5000}"', "the version of kernel-core is"),
        ("fedora:42", 'epoch="0"', 'epoch="\u00b2"', "the version of kernel-core is"),
        ("fedora:42", 'pkgid="YES">', 'pkgid="YES"><!-- -->', ""),
        ("arch:linux", "%VERSION%\n6.14.6", "%VERSION%\n7.9.9", "the list of packages calls it linux 7.9.9"),
        ("arch:linux", "%VERSION%\n", "%VERSION%\n../../../escaped/", "the version of linux is"),
        ("arch:linux", "%CSIZE%\n", "%CSIZE%\nx", "the size of linux is"),
        ("arch:linux", "%CSIZE%\n", "%CSIZE%\n99999999999", "the size of linux is"),
        ("arch:linux", "%FILENAME%\n", "%FILENAME%\n../", "could not be downloaded|404"),
        ("arch:linux", ".pkg.tar.zst\n", ".pkg.tar.zst/\n", "the file of linux is"),
        ("arch:linux", "%VERSION%\n6", "%VERSION%\n" + "9" * 5000, "the version of linux is"),
        ("fedora:42", 'package="', 'package="\u00b2', "the size of kernel-core is"),
        ("fedora:42", "kernel-modules-core-6", "kernel-core-6", "is not the file that the list|one file for two"),
        ("arch:linux", "%SHA256SUM%\n", "%SHA256SUM%\nx", "the SHA-256 of linux is"),
        # Names that unpacking writes itself.
        ("fedora:42", '.rpm"', '"', "the file of kernel-core is"),
    ],
)
def test_a_list_that_nobody_signed_is_not_believed(
    mirrors: Path, cache: Cache, progress: Heard, tmp_path: Path, spec: str, old: str, new: str, why: str
) -> None:
    relist(mirrors, spec, old, new)
    before = {path for path in tmp_path.rglob("*") if not path.is_relative_to(cache.root)}
    if not why:
        assert resolve(spec, cache=cache, progress=progress).release
        return
    with pytest.raises((InputError, HostError), match=why):
        resolve(spec, cache=cache, progress=progress)
    assert {path for path in tmp_path.rglob("*") if not path.is_relative_to(cache.root)} == before
    assert not list(cache.root.rglob("vmlinuz"))


ODD = {
    "ver": ("9" * 5000, "\u00b2:6.14", "6/../../x", ""),
    "size": ("\u00b2", "9" * 5000, "-1", "0", ""),
    "sha256": ("", "x" * 64),
    "file": ("linux 1", "..", "a" * 300),
}


@pytest.mark.slow
@pytest.mark.parametrize(("what", "value"), [(what, value) for what, values in ODD.items() for value in values])
@pytest.mark.parametrize("spec", ["opensuse:tumbleweed", "ubuntu:noble"])
def test_a_signed_list_may_be_wrong(
    mirrors: Path, cache: Cache, progress: Heard, signing_home: Path, spec: str, what: str, value: str
) -> None:
    """Signed anew by its key, as by a distribution's own mistake or a thief of it."""
    if spec.startswith("opensuse"):
        old = {"ver": r'ver="[^"]*"', "size": r'package="[^"]*"', "sha256": '(?<=pkgid="YES">)[0-9a-f]*(?=<)'}
        old["file"] = r'(?<=href=").*?(?=")'
        new = {"ver": f'ver="{value}"', "size": f'package="{value}"', "sha256": value, "file": f"x86_64/{value}"}
        index = mirrors / "opensuse" / SUSE / "repodata/repomd.xml"
        address, _ = locate_primary(index)
        with decompress(index.parents[1] / address) as stream:
            data = re.sub(old[what], new[what].replace("\\", ""), stream.read().decode()).encode()
        (index.parent / "primary.xml").write_bytes(data)
        index.write_text(
            '<repomd xmlns="http://linux.duke.edu/metadata/repo"><data type="primary"><checksum type="sha256">'
            f'{hashlib.sha256(data).hexdigest()}</checksum><location href="repodata/primary.xml"/></data></repomd>'
        )
        gpg(signing_home, "--armor", "--detach-sign", "--output", f"{index}.asc", index)
    else:
        key = {"ver": "Version", "size": "Size", "sha256": "SHA256", "file": "Filename"}[what]
        for suite in ("noble", "noble-updates"):
            lists = mirrors / "ubuntu/dists" / suite
            packages = lists / "main/binary-amd64/Packages"
            text = re.sub(rf"(?m)^{key}: .*$", f"{key}: {value}", packages.read_text())
            packages.write_text(text)
            packed = lzma.compress(text.encode())
            packages.with_suffix(".xz").write_bytes(packed)
            release = (
                f"Suite: {suite}\nSHA256:\n {hashlib.sha256(packed).hexdigest()} 1 main/binary-amd64/Packages.xz\n"
            )
            (lists / "Release").write_text(release)
            gpg(signing_home, "--clearsign", "--output", lists / "InRelease", lists / "Release")
    with pytest.raises(HostError, match=r"list of packages of .* is damaged: the"):
        resolve(spec, cache=cache, progress=progress)
    assert not list(cache.root.rglob("vmlinuz"))


def test_an_odd_stanza_is_no_kernel(mirrors: Path) -> None:
    """One that begins with a kernel's name, without the word Package, was a traceback."""
    assert not list(_packages("linux-image-6.8.0-31-generic\nSize: x\n", "http://mirror"))
