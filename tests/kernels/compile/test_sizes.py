"""Sizes add up to the byte to what size(1) and nm(1) say; and kernels from source are built once."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from small_tree import write_tree

from kduel.cli.sizes import read_kernel
from kduel.core.cache import Cache
from kduel.core.errors import InputError, NotMeasuredError
from kduel.core.progress import Progress
from kduel.kernels import Kernel, resolve
from kduel.kernels.sizes.account import account_for, compare_pieces, kinds_of_change, stable_name
from kduel.kernels.sizes.elf import read_elf


@pytest.fixture(scope="module")
def kernels(trees: dict[str, Path], shared: Cache) -> dict[str, Kernel]:
    """Both trees, built."""
    return {
        name: resolve(f"source:{trees[name]},config={config}", cache=shared, progress=Progress())
        for name, config in (("old", "tinyconfig"), ("new", "defconfig"))
    }


def printed(vmlinux: Path, tool: str = "size") -> list[int]:
    """text, data, bss and their sum, as size prints them."""
    out = subprocess.run([tool, vmlinux], capture_output=True, text=True, check=True).stdout
    return [int(word) for word in out.splitlines()[1].split()[:4]]


@pytest.mark.slow
def test_every_byte_is_told_once(kernels: dict[str, Kernel]) -> None:
    for kernel in kernels.values():
        assert kernel.vmlinux is not None
        found = account_for(kernel.vmlinux, kernel.vmlinux.with_name("objects.gz"))
        assert [*found.totals.values(), sum(found.totals.values())] == printed(kernel.vmlinux)
        for kind, total in found.totals.items():
            assert sum(piece.size for piece in found.pieces if piece.kind == kind) == total
        sizes = subprocess.run(["nm", "-S", kernel.vmlinux], capture_output=True, text=True, check=True).stdout
        by_name: Counter[str] = Counter()
        for line in sizes.splitlines():
            if len(words := line.split()) == 4:
                by_name[words[3]] += int(words[1], 16)
        assert {n: s for n, s in found.bytes_by(lambda p: p.symbol).items() if not n.startswith("(")} == dict(by_name)


def test_static_functions_of_one_name_find_their_own_objects(kernels: dict[str, Kernel]) -> None:
    vmlinux = kernels["old"].vmlinux
    assert vmlinux is not None
    found = account_for(vmlinux, vmlinux.with_name("objects.gz"))
    helpers = {piece.object: piece.size for piece in found.pieces if piece.symbol == "helper"}
    assert helpers.keys() == {"init/main.o", "kernel/sched.o"}
    for path, size in helpers.items():
        # As the object itself has it.
        again = subprocess.run(["nm", "-S", vmlinux], capture_output=True, text=True, check=True).stdout
        assert f"{size:016x} t helper" in again, path
    assert (
        found.bytes_by(lambda piece: piece.directory)["(no symbol)"]
        == found.bytes_by(lambda piece: piece.symbol)["(no symbol) .rodata"]
    )


@pytest.mark.parametrize(
    ("prefix", "flags"), [("", []), ("powerpc-linux-gnu-", ["-m32"]), ("aarch64-linux-gnu-", [])]
)
def test_other_architectures_are_read_as_their_own_size_does(
    tmp_path: Path, prefix: str, flags: list[str], need: Callable[..., str]
) -> None:
    need(f"{prefix}gcc")
    source = write_tree(tmp_path) / "kernel/sched.c"
    subprocess.run([f"{prefix}gcc", *flags, "-O1", "-c", source, "-o", tmp_path / "a.o"], check=True)
    elf = read_elf(tmp_path / "a.o")
    text, data, bss, _ = printed(tmp_path / "a.o", f"{prefix}size")
    assert elf.totals() == {"text": text, "data": data, "bss": bss}
    assert {(s.name, s.file) for s in elf.symbols} == {("helper", "sched.c"), ("schedule", ""), ("tunables", "")}


def test_a_broken_file_is_told(tmp_path: Path, kernels: dict[str, Kernel]) -> None:
    vmlinux = kernels["old"].vmlinux
    assert vmlinux is not None
    whole = vmlinux.read_bytes()
    for cut in (0, 3, 40, len(whole) // 2, len(whole) - 1):
        (tmp_path / "vmlinux").write_bytes(whole[:cut])
        with pytest.raises(InputError, match="not a complete ELF file"):
            read_elf(tmp_path / "vmlinux")
    (tmp_path / "objects.gz").write_bytes(b"nonsense")
    with pytest.raises(InputError, match="damaged"):
        account_for(vmlinux, tmp_path / "objects.gz")


def test_names_lose_what_the_compiler_numbers_anew() -> None:
    names = ["buf.12345", "f.constprop.0", "f.isra.0.cold", "__func__.4", "__UNIQUE_ID_x123", "crc32", "x86_64"]
    assert [stable_name(name) for name in names] == [
        "buf",
        "f.constprop",
        "f.isra.cold",
        "__func__",
        "__UNIQUE_ID_x",
        "crc32",
        "x86_64",
    ]


def test_the_summary_is_bloat_o_meters() -> None:
    rows = compare_pieces(Counter({"a": 10, "b": 5, "c": 3, "d": 7}), Counter({"a": 15, "b": 1, "e": 2, "d": 7}))
    assert [row.name for row in rows] == ["a", "b", "c", "e", "d"]
    assert kinds_of_change(rows) == "add/remove: 1/1 grow/shrink: 1/1 up/down: 7/-7 (0)"


def test_the_command_adds_up(
    kduel: Callable[..., subprocess.CompletedProcess[str]], trees: dict[str, Path], kernels: dict[str, Kernel]
) -> None:
    specs = [f"source:{trees['old']},config=tinyconfig", f"source:{trees['new']},config=defconfig"]
    done = kduel("sizes", *specs, "--format", "json", "--offline")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    totals = {row["name"]: row for row in found["totals"]}
    assert totals["image"]["contender"] == kernels["new"].image.stat().st_size
    for rows in found["views"].values():
        for side in ("baseline", "contender", "change"):
            assert sum(row[side] or 0 for row in rows) == totals["vmlinux"][side]
    assert [(o["name"], o["baseline"], o["contender"]) for o in found["options"]] == [
        ("LARGE", "n", "y"),
        ("MOUSE", "n", "y"),
    ]
    shown = kduel("sizes", *specs, "--by", "subsystem", "--limit", "1")
    assert "init " in shown.stdout and "others" in shown.stdout and "bloat" not in shown.stdout
    assert str(totals["vmlinux"]["contender"]) in shown.stdout
    refused = kduel("sizes", specs[0])
    assert refused.returncode == 2 and "two kernels" in refused.stderr


def test_a_kernel_is_built_once_and_says_what_it_was_made_of(
    trees: dict[str, Path], shared: Cache, kernels: dict[str, Kernel]
) -> None:
    kernel = kernels["old"]
    assert (kernel.release, kernel.architecture) == ("6.1.7", "x86_64")
    facts = kernel.provenance
    assert facts["recipe"] == "tinyconfig" and "gcc" in facts["compiler"]
    assert facts["exact"] == f"source:{trees['old']},arch=x86_64,config=tinyconfig"
    made = kernel.image.stat().st_mtime_ns
    again = resolve(facts["exact"], cache=shared, progress=Progress(), offline=True)
    assert again.sha256 == kernel.sha256 and again.image.stat().st_mtime_ns == made
    assert not list(shared.root.glob(".build-*"))


def test_what_is_committed_is_what_is_built(
    trees: dict[str, Path], shared: Cache, tmp_path: Path, kernels: dict[str, Kernel]
) -> None:
    tree = write_tree(tmp_path)
    git = ["git", "-C", str(tree), "-c", "user.name=n", "-c", "user.email=n@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "one"], ["tag", "v1"]):
        subprocess.run([*git, *words], check=True)
    (tree / "kernel/sched.c").write_text("this is not committed")
    kernel = resolve(f"git:{tree}#v1,config=tinyconfig", cache=shared, progress=Progress())
    assert kernel.sha256 == kernels["old"].sha256, "equal sources give equal kernels, wherever they come from"
    commit = kernel.provenance["commit"]
    assert kernel.provenance["exact"] == f"git:{tree}#{commit},arch=x86_64,config=tinyconfig"
    with pytest.raises(InputError, match="has no commit 'v2'"):
        resolve(f"git:{tree}#v2", cache=shared, progress=Progress())


def test_a_kernel_that_does_not_build_says_why_and_leaves_its_log(trees: dict[str, Path], shared: Cache) -> None:
    with pytest.raises(NotMeasuredError) as caught:
        resolve(f"source:{trees['broken']},config=tinyconfig", cache=shared, progress=Progress())
    assert "kernel/sched.c:7:27: error: ‘nothing’ undeclared" in caught.value.message
    log = Path(caught.value.remedy.removeprefix("The whole log: "))
    assert "undeclared" in log.read_text()
    assert not list(shared.root.glob(".build-*"))


def test_what_is_no_source_is_refused(shared: Cache, tmp_path: Path) -> None:
    (tmp_path / "not.tar").write_text("hello")
    (tmp_path / "empty").mkdir()
    subprocess.run(["tar", "-cf", tmp_path / "empty.tar", "-C", tmp_path, "empty"], check=True)
    for spec, told in (
        (f"source:{tmp_path}/none.tar.xz", "there is no file"),
        (f"source:{tmp_path}/not.tar", "does not unpack"),
        (f"source:{tmp_path}/empty.tar", "no source tree of the Linux kernel"),
        (f"source:{tmp_path}", "is a directory"),
        (f"git:{tmp_path}/none", "compare two releases"),
        (f"git:{tmp_path}#v1", "has no commit"),
        ("debian-source:nonsense", "names no version"),
    ):
        with pytest.raises(InputError, match=told):
            resolve(spec, cache=shared, progress=Progress())


def test_a_kernel_with_modules_is_resolved_with_them(
    kernels: dict[str, Kernel], shared: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole word was taken for a file."""
    asked = []

    def answer(spec: str, *, modules: str = "", **_: object) -> Kernel:
        asked.append((spec, modules))
        return kernels["old"]

    monkeypatch.setattr("kduel.cli.sizes.resolve", answer)
    found = read_kernel("./bz,modules=mods", cache=shared, progress=Progress(), offline=True)
    assert (asked, found.name) == ([("./bz", "mods")], "bz")
    with pytest.raises(InputError, match="sizes do not depend on cmdline="):
        read_kernel("./bz,modules=mods,cmdline=quiet", cache=shared, progress=Progress(), offline=True)
