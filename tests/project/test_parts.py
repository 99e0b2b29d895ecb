"""Parts of the tests: every file is in one of them, and the longest files begin first."""

from __future__ import annotations

from pathlib import Path

import pytest
from long_files import SECONDS, TESTS, estimate_seconds, files_of_part

FILES = {path: estimate_seconds(path, 3) for path in TESTS.rglob("test_*.py")}


def test_every_long_file_is_there() -> None:
    assert [name for name in SECONDS if not (TESTS / name).is_file()] == []


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_each_file_is_in_one_part_and_parts_take_as_long(parts: int) -> None:
    found = [files_of_part(FILES, f"{number}/{parts}") for number in range(1, parts + 1)]
    assert sorted(path for part in found for path in part) == sorted(FILES)
    seconds = [sum(FILES[path] for path in part) for part in found]
    assert max(seconds) - min(seconds) < 2


def test_a_part_does_not_depend_on_the_order_in_which_files_are_found() -> None:
    other: dict[Path, float] = dict(reversed(FILES.items()))
    assert files_of_part(other, "1/2") == files_of_part(FILES, "1/2")
