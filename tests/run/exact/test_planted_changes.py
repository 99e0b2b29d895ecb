"""Changes that are planted in a kernel's source: what counts as found, and which patches there are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kduel.kernels.compile.recipe import read_recipe

sys.path.insert(0, str(Path(__file__).parents[3] / "perf"))

import planted_changes as planted
from planted_changes import Found


@pytest.mark.parametrize(
    ("found", "expected", "right"),
    [
        (Found(0), Found(0), True),
        (Found(1), Found(0), False),
        (Found(0, ("dup_fd",)), Found(0), False),
        (Found(1, ("files_struct.file_lock, next_fd",)), Found(1, ("files_struct.next_fd",)), True),
        (Found(1, ("files_struct.file_lock",)), Found(1, ("files_struct.next_fd",)), False),
        (Found(1, ("files_struct.next_fd", "file.f_count")), Found(1, ("files_struct.next_fd",)), False),
        (Found(1), Found(1, ("alloc_fd",)), False),
        (Found(-1, ("alloc_fd",)), Found(1, ("alloc_fd",)), False),
        (Found(1, None), Found(1, ("files_struct.next_fd",)), True),
        (Found(2, None), Found(1, ("files_struct.next_fd",)), False),
        (Found(7), None, True),
    ],
)
def test_a_figure_is_right_where_it_is_as_expected_and_nothing_else_is_named(
    found: Found, expected: Found | None, right: bool
) -> None:
    assert planted.is_right(found, expected) == right


def test_each_patch_is_counted_and_can_be_built() -> None:
    used = {name for plant in planted.PLANTS for name in (plant.before, plant.after)} - {planted.BASE}
    assert {f"{name}.patch" for name in used} == {path.name for path in planted.PATCHES.iterdir()}
    for name in used:
        assert read_recipe(f"{planted.SOURCE},patch={planted.PATCHES / name}.patch")[1].patch
    assert "DEBUG_INFO_BTF=y" in planted.SOURCE


def test_the_document_has_a_place_for_the_table(tmp_path: Path) -> None:
    """Half an hour of building kernels comes before it is written."""
    copy = tmp_path / planted.DOCUMENT.name
    copy.write_bytes(planted.DOCUMENT.read_bytes())
    planted.write("planted-changes", ["| row |"], copy)
    assert "<!-- table planted-changes -->\n| row |\n<!-- end of planted-changes -->\n" in copy.read_text("utf-8")
