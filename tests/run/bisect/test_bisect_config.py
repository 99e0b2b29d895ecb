"""What --config names: a file, or a recipe as of kernels from source."""

from __future__ import annotations

from pathlib import Path

import pytest

from kduel.core.errors import InputError
from kduel.kernels.compile.toolchain import TARGETS, own_target
from kduel.run.bisect.build import Builder, read_config_option

MAKEFILE = """\
tinyconfig:
	@echo CONFIG_TINY=y >$O/.config; echo CONFIG_FOR_$(ARCH)=y >>$O/.config
allnoconfig:
	@grep -v CONFIG_UNKNOWN $(KCONFIG_ALLCONFIG) >$O/.config
olddefconfig:
	@echo CONFIG_OLD=y >>$O/.config
bzImage:
	@cp $O/.config $O/image
"""


def builder(tmp_path: Path, recipe: str, told: list[str] | None = None) -> Builder:
    source = tmp_path / "source"
    source.mkdir(exist_ok=True)
    (source / "Makefile").write_text(MAKEFILE)
    warn = [].append if told is None else told.append
    return Builder(source=source, build=tmp_path / "build", recipe=recipe, log=tmp_path / "log", warn=warn)


def test_a_recipe_is_made_by_the_tree_and_what_it_does_not_accept_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    made = builder(tmp_path, "tinyconfig+guest+UNKNOWN=y+FOO=y", told)
    made.check()
    assert made.make() == f"tree:{tmp_path / 'build'}"
    config = (tmp_path / "build" / "image").read_text().splitlines()
    target = TARGETS[own_target()].arch
    assert {"CONFIG_TINY=y", f"CONFIG_FOR_{target}=y", "CONFIG_FOO=y", "CONFIG_BLK_DEV_INITRD=y"} <= set(config)
    assert told == ["the tree did not accept UNKNOWN=y"]


def test_a_file_can_be_added_to(tmp_path: Path) -> None:
    (tmp_path / "my").write_text("CONFIG_MINE=y\n")
    builder(tmp_path, f"{tmp_path / 'my'}+FOO=y").make()
    config = (tmp_path / "build" / "image").read_text().split()
    assert config == ["CONFIG_MINE=y", "CONFIG_FOO=y", "CONFIG_OLD=y"]


def test_kernels_of_different_recipes_are_different_entries_of_the_cache(tmp_path: Path) -> None:
    (tmp_path / "my").write_text("CONFIG_MINE=y\n")
    mine = builder(tmp_path, f"{tmp_path / 'my'}+guest")
    before = mine.settings()
    (tmp_path / "my").write_text("CONFIG_MINE=n\n")
    others = [builder(tmp_path, recipe).settings() for recipe in ("tinyconfig", "tinyconfig+guest")]
    assert len({before, mine.settings(), *others}) == 4


@pytest.mark.parametrize(
    ("given", "recipe"),
    [("tinyconfig+guest", True), ("defconfig", True), ("running", True), ("my.config", False), ("none", False)],
)
def test_a_file_is_told_from_a_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, recipe: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.config").write_text("CONFIG_X86=y\n")
    assert read_config_option(given) == ((None, given) if recipe else (tmp_path / given, ""))


def test_a_file_that_is_called_like_a_recipe_is_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tinyconfig").write_text("CONFIG_X86=y\n")
    assert read_config_option("tinyconfig") == (tmp_path / "tinyconfig", "")


def test_a_misspelt_recipe_is_refused_with_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="'gest' is neither") as error:
        read_config_option("tinyconfig+gest")
    assert "tinyconfig+guest" in error.value.remedy


def test_a_tree_without_a_configuration_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the tree has no \.config"):
        builder(tmp_path, "", []).check()
