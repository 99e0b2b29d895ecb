from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_kernels import HEADERS, bzimage, elf, vmlinux, with_length

from kduel.core.cache import Cache
from kduel.core.errors import HostError, InputError
from kduel.kernels import Kernel
from kduel.kernels.files.image import (
    embedded_config,
    has_pvh_entry,
    identify,
    images_entered_alike,
    kernel_contents,
    note_silent_entry,
    uncompressed_kernel,
)

START = bzimage()[:0x260]


def put(directory: Path, data: bytes) -> Path:
    path = directory / "image"
    path.write_bytes(data)
    return path


def as_kernel(path: Path, sha256: str = "1" * 64, architecture: str = "x86_64") -> Kernel:
    return Kernel(spec="x", release="6.1", image=path, sha256=sha256, architecture=architecture)


@pytest.mark.parametrize("release", sorted(HEADERS))
def test_headers_of_debians_kernels(release: str, tmp_path: Path) -> None:
    found = identify(put(tmp_path, bzimage(like=release, payload=b"\0" * 100)))
    assert (found.format, found.architecture, found.release) == ("bzImage", "x86_64", release)


@pytest.mark.parametrize("release", sorted(HEADERS))
def test_cut_short_is_told(release: str, tmp_path: Path) -> None:
    real = HEADERS[release]
    whole = bzimage(like=release, payload=b"\0" * (real["size"] // 2))
    with pytest.raises(InputError, match=r"cut short: at least 1000 bytes"):
        identify(put(tmp_path, whole[:-1000]))


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=2000))
def test_whatever_is_no_kernel_is_refused_or_read(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    directory = tmp_path_factory.mktemp("any", numbered=True)
    for start in (b"", b"MZ\0\0zimg", b"\x7fELF\x02\x01", START):
        with pytest.raises(InputError):
            identify(put(directory, start + data))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "is empty"),
        (b"#!/bin/sh\necho hello\n" * 50, "it is a script"),
        (elf(), "without a Linux version"),
        (gzip.compress(b"x" * 5000, mtime=0), "compressed and holds no kernel"),
        (b"\x00" * 5000, "no kernel's header"),
    ],
)
def test_not_a_kernel(data: bytes, told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=told) as caught:
        identify(put(tmp_path, data))
    assert str(tmp_path / "image") in caught.value.message
    assert caught.value.remedy


def test_a_device_is_no_kernel() -> None:
    with pytest.raises(InputError):
        identify(Path("/dev/null"))


def test_arm64_and_riscv_images(tmp_path: Path) -> None:
    banner = b"Linux version 6.12.1-arm64 (x@y) #1"
    arm = bytearray(b"MZ" + bytes(198) + banner)
    arm[56:60] = b"ARM\x64"
    assert identify(put(tmp_path, bytes(arm))).architecture == "aarch64"
    assert identify(put(tmp_path, gzip.compress(bytes(arm)))).release == "6.12.1-arm64"
    riscv = bytearray(arm)
    riscv[56:60] = b"RSC\x05"
    assert identify(put(tmp_path, bytes(riscv))).architecture == "riscv64"
    packed = gzip.compress(bytes(arm))
    zboot = b"MZ\0\0zimg" + struct.pack("<II", 64, len(packed)) + bytes(48) + packed
    assert identify(put(tmp_path, zboot)).format == "Image"
    with pytest.raises(InputError, match="cut short: 7 bytes"):
        identify(put(tmp_path, zboot[:-7]))


def test_a_bare_vmlinux_needs_a_pvh_entry(tmp_path: Path) -> None:
    assert identify(put(tmp_path, vmlinux("6.1.0"))).format == "vmlinux"
    with pytest.raises(InputError, match="without a PVH entry"):
        identify(put(tmp_path, vmlinux("6.1.0", pvh=False)))


def packed_by(program: str, *options: str) -> bytes:
    plain = vmlinux("6.1.0")
    done = subprocess.run([program, *options, "-c"], input=plain, capture_output=True, check=True)
    return with_length(done.stdout, plain)


def payload(how: str) -> bytes:
    plain = vmlinux("6.1.0")
    if how == "zstd":
        return packed_by("zstd", "-q")
    if how == "lz4":
        return packed_by("lz4", "-q", "-l")
    return {
        "none": lambda: plain,
        "gzip": lambda: gzip.compress(plain),
        "xz": lambda: with_length(
            lzma.compress(
                plain, filters=[{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2}], check=lzma.CHECK_CRC32
            ),
            plain,
        ),
        "lzma": lambda: with_length(lzma.compress(plain, lzma.FORMAT_ALONE), plain),
        "bzip2": lambda: with_length(bz2.compress(plain), plain),
    }[how]()


@pytest.mark.parametrize("how", ["none", "gzip", "xz", "lzma", "bzip2", "zstd", "lz4"])
def test_the_elf_inside(how: str, tmp_path: Path, cache: Cache) -> None:
    image = put(tmp_path, bzimage("6.1.0", payload=payload(how)))
    found = uncompressed_kernel(as_kernel(image), cache)
    assert found is not None and found.read_bytes().startswith(vmlinux("6.1.0"))
    image.unlink()
    assert uncompressed_kernel(as_kernel(image), cache) == found, "the second time it comes from the cache"


def test_a_kernel_that_was_silent_where_it_was_entered_is_booted_by_its_image(tmp_path: Path, cache: Cache) -> None:
    for digit in "12":
        (tmp_path / digit).mkdir()
    data = bzimage("6.1.0", payload=payload("none"))
    one, other = (as_kernel(put(tmp_path / digit, data), digit * 64) for digit in "12")
    kernels = {"one": one, "other": other}
    assert not {one.image, other.image} & {*images_entered_alike(kernels, cache).values()}
    note_silent_entry(one, cache)
    there = Cache(cache.root)
    assert images_entered_alike(kernels, there) == {"one": one.image, "other": other.image}, "all by their images"
    assert images_entered_alike({"other": other}, there) != {"other": other.image}, "another kernel is not concerned"


@pytest.mark.parametrize("how", ["gzip", "xz", "lzma", "bzip2", "zstd", "lz4"])
def test_a_damaged_payload_is_told(how: str, tmp_path: Path, cache: Cache) -> None:
    data = bytearray(payload(how))
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    image = put(tmp_path, bzimage("6.1.0", payload=bytes(data[: len(data) // 2 + 8])))
    with pytest.raises(InputError, match="damaged"):
        uncompressed_kernel(as_kernel(image), cache)
    assert not cache.has("vmlinux", "1" * 64)


def test_a_program_that_is_missing_is_named(tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    image = put(tmp_path, bzimage("6.1.0", payload=b"\x28\xb5\x2f\xfd" + bytes(50)))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match="zstd") as caught:
        uncompressed_kernel(as_kernel(image), cache)
    assert "Install the package zstd" in caught.value.remedy


def test_no_pvh_entry_gives_none(tmp_path: Path, cache: Cache) -> None:
    image = put(tmp_path, bzimage("6.1.0", payload=gzip.compress(vmlinux("6.1.0", pvh=False))))
    assert uncompressed_kernel(as_kernel(image), cache) is None
    assert uncompressed_kernel(as_kernel(image), cache) is None
    assert uncompressed_kernel(as_kernel(image, "2" * 64, "aarch64"), cache) is None


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=300))
def test_garbled_elf_has_no_pvh_entry(data: bytes) -> None:
    assert not has_pvh_entry(b"\x7fELF\x02\x01" + data.replace(b"Xen", b"xen"))


def test_embedded_config(tmp_path: Path) -> None:
    config = "CONFIG_PVH=y\nCONFIG_X=m\n"
    inside = gzip.compress(vmlinux("6.1.0", config=gzip.compress(config.encode())))
    assert embedded_config(put(tmp_path, bzimage("6.1.0", payload=inside))) == config
    assert embedded_config(put(tmp_path, bzimage("6.1.0", payload=gzip.compress(vmlinux("6.1.0"))))) is None
    assert kernel_contents(put(tmp_path, gzip.compress(b"plain"))) == b"plain"


@pytest.mark.parametrize(
    ("release", "boots"), [("4.15.0-213-generic", False), ("4.20.17", False), ("5.0.0", True), ("6.12.1", True)]
)
def test_before_5_0_the_pvh_entry_is_of_xen_alone(release: str, boots: bool) -> None:
    assert has_pvh_entry(vmlinux(release)) is boots
