"""Recipes: how a specification is read, and what configuration comes of it."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kduel.core.errors import HostError, InputError
from kduel.core.experiment import Contender
from kduel.kernels.compile.make import Make, Unbuildable, clean_environment
from kduel.kernels.compile.recipe import configure, fingerprint, merge_settings, read_recipe, read_settings
from kduel.kernels.compile.toolchain import TARGETS, compiler_version
from kduel.kernels.sizes.objects import OptionSizes
from kduel.study.contenders import name_all, short_name

NAMES = st.from_regex(r"[A-Z][A-Z0-9_]{0,8}", fullmatch=True)
VALUES = st.sampled_from(["y", "m", "n", "17", '"text"', "0x10"])


def test_a_specification_is_read() -> None:
    place, recipe = read_recipe("debian-source:6.1,arch=arm64,config=tinyconfig+guest+EXT4_FS=y,ccache=yes")
    assert place == "debian-source:6.1"
    assert (recipe.arch, recipe.parts, recipe.ccache) == ("arm64", ["tinyconfig", "guest", "EXT4_FS=y"], True)
    assert recipe.words() == ",arch=arm64,config=tinyconfig+guest+EXT4_FS=y"
    assert read_recipe("git:/a,b/linux#v6.1,config=pmac32_defconfig")[0] == "git:/a,b/linux#v6.1"
    assert read_recipe("source:x.tar.xz")[1].config == "defconfig"


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("source:x,arch=vax", "there is no arch=vax"),
        ("source:x,speed=high", "knows no speed="),
        ("source:x,config=tinyconfig,config=defconfig", "twice"),
        ("source:x,config=", "without a value"),
        ("source:x,config=tinyconfig+nothing", "neither a configuration that KDuel knows"),
        ("source:x,config=./nothing.config", "cannot be read"),
        ("source:x,config=/dev/null", "no setting"),
        ("source:x,ccache=maybe", "ccache=maybe"),
        ("source:x,patch=./nothing.patch", "nothing.patch cannot be read"),
        ("source:x,patch=/dev/null", "is no patch"),
    ],
)
def test_what_cannot_be_meant_is_refused(spec: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        read_recipe(spec)


def test_a_recipe_is_known_by_what_its_files_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fragment = tmp_path / "mine.config"
    fragment.write_text("CONFIG_A=y\n")
    spec = f"source:x,config=tinyconfig+{fragment}"
    before = fingerprint(read_recipe(spec)[1])
    assert fingerprint(read_recipe(spec)[1]) == before
    fragment.write_text("CONFIG_A=m\n")
    assert fingerprint(read_recipe(spec)[1]) != before
    assert read_recipe(spec)[1].words() == f",arch=x86_64,config=tinyconfig+{fragment}"
    monkeypatch.chdir(tmp_path)
    assert read_recipe("source:x,config=./mine.config")[1].words().endswith(f",config={fragment}")
    packed = tmp_path / "whole.gz"
    packed.write_bytes(gzip.compress(b"CONFIG_A=m\n"))
    assert read_recipe(f"source:x,config={packed}")[1].parts == [str(packed)]


def test_contenders_are_called_by_their_recipe() -> None:
    names = [
        short_name(Contender(kernel=kernel))
        for kernel in (
            "debian-source:6.1,arch=ppc,config=tinyconfig+guest",
            "source:/tmp/linux-6.1.tar.xz,config=tinyconfig",
            "debian-source:6.1,config=tinyconfig,ccache=yes,patch=patches/revert-brk.patch",
            "debian:6.12",
            "a.deb,b.deb",
            "/boot/vmlinuz-6.1",
            f"git:.#{'c0ffee' * 6}cafe,config=tinyconfig",
        )
    ]
    assert names == [
        "debian-source-6.1 ppc tinyconfig+guest", "linux-6.1.tar.xz tinyconfig",
        "debian-source-6.1 tinyconfig revert-brk.patch", "debian-6.12", "a.deb,b.deb", "vmlinuz-6.1",
        "git-.#c0ffeec0ffee tinyconfig",
    ]  # fmt: skip


def test_a_recipe_that_all_contenders_share_is_in_no_name() -> None:
    old, new = (Contender(kernel=f"debian-source:{v},arch=ppc,config=tinyconfig+guest") for v in ("5.10", "6.12"))
    other = Contender(kernel="debian-source:6.12,arch=ppc,config=defconfig")
    assert [c.name for c in name_all([old, new], "study")] == ["debian-source-5.10", "debian-source-6.12"]
    assert [c.name for c in name_all([new, other], "study")] == [
        "debian-source-6.12 ppc tinyconfig+guest",
        "debian-source-6.12 ppc defconfig",
    ]


@pytest.mark.slow
@given(st.dictionaries(NAMES, VALUES), st.dictionaries(NAMES, VALUES))
def test_what_is_added_counts_and_the_rest_stays(config: dict[str, str], given_: dict[str, str]) -> None:
    text = "".join(f"# CONFIG_{n} is not set\n" if v == "n" else f"CONFIG_{n}={v}\n" for n, v in config.items())
    assert read_settings(merge_settings(text, given_)) == config | given_


@pytest.fixture
def make(trees: dict[str, Path], tmp_path: Path) -> Make:
    """make on the small tree."""
    build = tmp_path / "build"
    build.mkdir()
    tree = trees["old"].with_name("linux-6.1")
    return Make(
        source=tree, build=build, log=tmp_path / "log", target=TARGETS["x86_64"], environment=clean_environment()
    )


def test_a_configuration_is_made_and_what_did_not_take_is_told(make: Make) -> None:
    recipe = read_recipe("source:x,config=tinyconfig+LARGE=y+NOSUCH=y+BASE=n")[1]
    assert configure(recipe, make) == ["NOSUCH=y"]
    have = read_settings((make.build / ".config").read_text())
    assert (have["LARGE"], have["BASE"]) == ("y", "n")
    assert "NOSUCH" not in have


def test_a_whole_configuration_is_the_beginning(make: Make, tmp_path: Path) -> None:
    given_ = tmp_path / "given.config"
    given_.write_text("CONFIG_LARGE=y\nCONFIG_GONE=y\n")
    assert configure(read_recipe(f"source:x,config={given_}")[1], make) == []
    wanted = {"BASE": "n", "EXTRA": "n", "LARGE": "y", "MODULES": "n", "MOUSE": "y"}
    assert read_settings((make.build / ".config").read_text()) == wanted


@pytest.mark.parametrize(("first", "mouse"), [("tinyconfig", "n"), ("defconfig", "y")])
def test_what_an_addition_makes_visible_stays_off_where_the_beginning_is_bare(
    make: Make, first: str, mouse: str
) -> None:
    configure(read_recipe(f"source:x,config={first}+LARGE=y")[1], make)
    assert read_settings((make.build / ".config").read_text())["MOUSE"] == mouse


def test_a_compiler_that_a_vendors_makefile_names_is_not_taken(make: Make, tmp_path: Path) -> None:
    """Vendors write the path of their own cross compiler into the tree."""
    tree = tmp_path / "vendor"
    shutil.copytree(make.source, tree)
    (tree / "Makefile").write_text(f"CROSS_COMPILE = /nowhere/arm-linux-\n{(make.source / 'Makefile').read_text()}")
    vendors = replace(make, source=tree)
    configure(read_recipe("source:x,config=tinyconfig")[1], vendors)
    vendors.run("bzImage")
    assert (make.build / "vmlinux").exists()


def test_warnings_about_an_old_trees_own_tools_are_no_errors(make: Make, tmp_path: Path) -> None:
    """objtool of 4.19 is compiled with -Werror, and so is its library, where WERROR is not 0."""
    tree = tmp_path / "old"
    shutil.copytree(make.source, tree)
    with (tree / "Makefile").open("a") as makefile:
        makefile.write(
            "bzImage: objtool\nobjtool:\n\techo '#warning old' | gcc -Werror $(HOSTCFLAGS) -E - >/dev/null\n"
        )
        makefile.write("ifneq ($(WERROR),0)\n\tfalse\nendif\n")
    old = replace(make, source=tree)
    configure(read_recipe("source:x,config=tinyconfig")[1], old)
    old.run("bzImage")
    assert (make.build / "vmlinux").exists()
    # As a bisection with a .config of its own builds: no target is named.
    (make.build / "vmlinux").unlink()
    replace(old, target=None).run("bzImage")
    assert (make.build / "vmlinux").exists()
    with pytest.raises(Unbuildable, match="warning"):
        replace(old, target=None, environment={**old.environment, "HOSTCFLAGS": "-O1"}).run("bzImage")


def test_a_board_that_the_tree_does_not_have_is_told_with_makes_words(make: Make) -> None:
    with pytest.raises(Unbuildable, match="No rule to make target 'sandpoint_defconfig'"):
        configure(read_recipe("source:x,config=sandpoint_defconfig")[1], make)


def test_a_compiler_that_is_missing_names_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "make").symlink_to("/usr/bin/make")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError) as caught:
        compiler_version(TARGETS["ppc"])
    assert "powerpc-linux-gnu-gcc is not installed" in caught.value.message
    assert caught.value.remedy.startswith("apt install gcc-powerpc-linux-gnu")


def test_an_object_is_laid_to_its_option(tmp_path: Path) -> None:
    lists = {
        "Makefile": "",
        "fs/Makefile": "obj-y := open.o \\\n\tread_write.o\nobj-$(CONFIG_EXT4_FS) += ext4/\nobj-$(CONFIG_AIO) += aio.o # x\n",
        "fs/ext4/Makefile": (
            "obj-$(CONFIG_EXT4_FS) += ext4.o\next4-y := balloc.o dir.o\next4-$(CONFIG_EXT4_FS_SECURITY) += xattr_security.o\n"
        ),
    }
    for name, text in lists.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    options = OptionSizes(tmp_path)
    found = {
        path: options.option_of(path)
        for path in (
            "fs/open.o",
            "fs/read_write.o",
            "fs/aio.o",
            "fs/ext4/dir.o",
            "fs/ext4/xattr_security.o",
            "mm/x.o",
        )
    }
    assert found == {
        "fs/open.o": "", "fs/read_write.o": "", "fs/aio.o": "AIO", "fs/ext4/dir.o": "EXT4_FS",
        "fs/ext4/xattr_security.o": "EXT4_FS_SECURITY", "mm/x.o": "",
    }  # fmt: skip
