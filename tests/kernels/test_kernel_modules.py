from __future__ import annotations

import gzip
import lzma
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_kernels import module

from kduel.core.cache import Cache
from kduel.core.errors import HostError, InputError
from kduel.core.progress import Progress
from kduel.kernels import resolve
from kduel.kernels.files.modules import modinfo, module_bytes, modules_directory, modules_with_dependencies

RELEASE = "6.1.0-test"


def put(place: Path, path: str, **facts: object) -> None:
    target = place / "kernel" / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(module(RELEASE, **facts))  # type: ignore[arg-type]


def names(paths: list[Path]) -> list[str]:
    return [path.name.split(".")[0] for path in paths]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sets(st.integers(0, 11), max_size=3), min_size=1, max_size=12), st.data())
def test_everything_comes_after_what_it_needs(
    tmp_path_factory: pytest.TempPathFactory, graph: list[set[int]], data: st.DataObject
) -> None:
    place = tmp_path_factory.mktemp("modules")
    needs = {number: {n for n in wanted if n < number} for number, wanted in enumerate(graph)}
    for number, wanted in needs.items():
        put(place, f"drivers/m{number}.ko", depends=",".join(f"m{n}" for n in sorted(wanted)))
    asked = data.draw(st.lists(st.sampled_from(sorted(needs)), min_size=1))
    order = [int(name[1:]) for name in names(modules_with_dependencies(place, [f"m{n}" for n in asked]))]
    assert len(order) == len(set(order))
    assert set(asked) <= set(order)
    reachable, todo = set(), list(asked)
    while todo:
        number = todo.pop()
        reachable.add(number)
        todo += needs[number]
    assert set(order) == reachable, "all that is needed, and nothing else"
    for position, number in enumerate(order):
        assert needs[number] <= set(order[:position])


def test_softdeps_and_algorithms(tmp_path: Path) -> None:
    put(tmp_path, "fs/ext4.ko", depends="jbd2", more=["softdep=pre: crc32c post: late", "softdep=pre: absent"])
    put(tmp_path, "fs/jbd2.ko")
    put(tmp_path, "fs/late.ko")
    put(tmp_path, "crypto/crc32c_generic.ko", more=["alias=crc32c", "alias=crypto-crc32c"])
    put(tmp_path, "arch/x86/crypto/crc32c-intel.ko", more=["alias=crypto-crc32c", "alias=crc32c"])
    put(tmp_path, "drivers/other.ko", more=["alias=crc32c"])
    order = names(modules_with_dependencies(tmp_path, ["ext4"]))
    assert order == ["crc32c_generic", "crc32c-intel", "jbd2", "ext4", "late"]


def test_what_is_built_in_is_not_looked_for(tmp_path: Path) -> None:
    put(tmp_path, "fs/ext4.ko", depends="jbd2", more=["softdep=pre: crc32c"])
    put(tmp_path, "arch/x86/crypto/crc32c-intel.ko", more=["alias=crc32c"])
    (tmp_path / "modules.builtin").write_text("kernel/fs/jbd2/jbd2.ko\nkernel/drivers/virtio/virtio-pci.ko\n")
    # An algorithm that is built in too is no reason to go without its faster implementation.
    (tmp_path / "modules.builtin.modinfo").write_bytes(b"crc32c_generic.alias=crc32c\0")
    assert names(modules_with_dependencies(tmp_path, ["virtio_pci", "ext4"])) == ["crc32c-intel", "ext4"]


def test_a_missing_module_is_named(tmp_path: Path) -> None:
    put(tmp_path, "fs/ext4.ko", depends="jbd2")
    with pytest.raises(InputError, match="lack jbd2, which ext4 needs"):
        modules_with_dependencies(tmp_path, ["ext4"])
    with pytest.raises(InputError, match=r"lack nvme\n"):
        modules_with_dependencies(tmp_path, ["nvme"])


def test_a_circle_ends(tmp_path: Path) -> None:
    put(tmp_path, "a.ko", more=["softdep=pre: b"])
    put(tmp_path, "b.ko", more=["softdep=pre: a"])
    assert names(modules_with_dependencies(tmp_path, ["a"])) == ["b", "a"]


def test_dashes_and_underscores_are_one(tmp_path: Path) -> None:
    put(tmp_path, "drivers/virtio-blk.ko", depends="virtio_ring")
    put(tmp_path, "drivers/virtio-ring.ko")
    assert names(modules_with_dependencies(tmp_path, ["virtio_blk"])) == ["virtio-ring", "virtio-blk"]


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("ending", ["", ".xz", ".gz", ".zst"])
def test_all_kinds_of_files(bits: int, big: bool, ending: str, tmp_path: Path, need: Callable[..., str]) -> None:
    plain = module(RELEASE, depends="a,b", bits=bits, big=big)
    path = tmp_path / f"x.ko{ending}"
    if ending == ".zst":
        path.write_bytes(subprocess.run([need("zstd"), "-c"], input=plain, capture_output=True, check=True).stdout)
    else:
        path.write_bytes({"": bytes, ".xz": lzma.compress, ".gz": gzip.compress}[ending](plain))
    assert module_bytes(path) == plain
    assert modinfo(path)["depends"] == ["a,b"]
    path.write_bytes(path.read_bytes()[:-20])
    if ending:
        with pytest.raises(InputError, match=str(path)):
            module_bytes(path)


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=200))
def test_garbage_is_no_module(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("garbage") / "x.ko"
    for start in (b"", module(RELEASE)[:60]):
        path.write_bytes(start + data)
        with pytest.raises(InputError, match="not a kernel module"):
            modinfo(path)


def test_zstd_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.ko.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match="needs zstd"):
        module_bytes(tmp_path / "x.ko.zst")


def test_where_a_users_modules_are(tmp_path: Path) -> None:
    place = tmp_path / "lib/modules" / RELEASE
    put(place, "a.ko")
    for given_place in (tmp_path, tmp_path / "lib/modules", place):
        assert modules_directory(str(given_place), RELEASE) == place
    with pytest.raises(InputError, match="holds no modules of 9"):
        modules_directory(str(tmp_path), "9")
    with pytest.raises(InputError, match=f"are of {RELEASE}, the kernel is 9"):
        modules_directory(str(place), "9")


@pytest.mark.network
@pytest.mark.parametrize("spec", ["debian:6.1-cloud", "debian:7-cloud"])
def test_as_modprobe_does(spec: str, real_cache: Cache, tmp_path: Path, need: Callable[..., str]) -> None:
    kernel = resolve(spec, cache=real_cache, progress=Progress())
    assert kernel.modules is not None
    (tmp_path / "lib/modules").mkdir(parents=True)
    shutil.copytree(kernel.modules, tmp_path / "lib/modules" / kernel.release)
    depmod = Path(need("depmod"))
    modprobe = depmod.with_name("modprobe")
    subprocess.run([depmod, "-b", str(tmp_path), kernel.release], check=True)
    (tmp_path / "none").mkdir()
    for name in (
        "virtio_blk",
        "virtio_pci",
        "virtio_console",
        "overlay",
        "squashfs",
        "erofs",
        "btrfs",
        "xfs",
        "nd_pmem",
    ):
        command = [modprobe, "-d", tmp_path, "-C", tmp_path / "none", "-S", kernel.release, "-D", name]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        theirs = [Path(line.split()[1]).name for line in told.splitlines() if line.startswith("insmod")]
        ours = [path.name for path in modules_with_dependencies(kernel.modules, [name])]
        # Between independent ones the order is free. Of several softdep lines (btrfs) this modprobe obeys only the first.
        assert set(ours) == set(theirs) or (name == "btrfs" and set(ours) > set(theirs)), name
        for path in modules_with_dependencies(kernel.modules, [name]):
            for needed in modinfo(path).get("depends", [""])[0].split(","):
                found = [n for n in ours if n.partition(".")[0].replace("-", "_") == needed.replace("-", "_")]
                assert all(ours.index(n) < ours.index(path.name) for n in found)
