"""Kernels of a source with a patch."""

from __future__ import annotations

from pathlib import Path

import pytest

from kduel.core.cache import Cache
from kduel.core.errors import InputError
from kduel.core.progress import Progress
from kduel.kernels import resolve
from kduel.kernels.compile.recipe import fingerprint, read_recipe

PATCH = """\
Make the table shorter.
--- a/fs/read.c
+++ b/fs/read.c
@@ -1,2 +1,2 @@
-static const int table[] = { 5, 4, 3, 2, 1 };
+static const int table[] = { 5, 4, 3, 2, 9 };
 int read_it(int x) { return table[x % 5]; }
"""


@pytest.fixture
def patch(tmp_path: Path) -> Path:
    path = tmp_path / "shorter.patch"
    path.write_text(PATCH)
    return path


@pytest.mark.slow
def test_a_patch_makes_another_kernel_and_leaves_the_source_as_it_was(
    trees: dict[str, Path], shared: Cache, patch: Path
) -> None:
    spec = f"source:{trees['old']},config=tinyconfig"
    plain, patched, again = (
        resolve(one, cache=shared, progress=Progress()) for one in (spec, f"{spec},patch={patch}", spec)
    )
    assert plain.sha256 != patched.sha256 and plain.sha256 == again.sha256
    assert patched.provenance["patch"] == patch.name and "patch" not in plain.provenance
    assert patched.provenance["exact"].endswith(f",patch={patch}")
    texts = sorted(path.read_text() for path in (shared.root / "source").glob("*/linux/fs/read.c"))
    assert sum("9 }" in text for text in texts) == 1 and sum("1 }" in text for text in texts) >= 1


def test_a_recipe_is_known_by_what_its_patch_holds(patch: Path) -> None:
    spec = f"source:x,config=tinyconfig,patch={patch}"
    before = fingerprint(read_recipe(spec)[1])
    assert before != fingerprint(read_recipe("source:x,config=tinyconfig")[1])
    patch.write_text(PATCH.replace("9 }", "8 }"))
    assert fingerprint(read_recipe(spec)[1]) != before


def test_a_patch_that_does_not_fit_is_refused_by_name(trees: dict[str, Path], shared: Cache, patch: Path) -> None:
    patch.write_text(PATCH.replace("{ 5, 4, 3, 2, 1 }", "{ 7 }"))
    with pytest.raises(InputError, match=r"shorter\.patch does not fit 6\.1\.7: .*FAILED") as refused:
        resolve(f"source:{trees['old']},config=tinyconfig,patch={patch}", cache=shared, progress=Progress())
    assert "git diff" in refused.value.remedy
    patch.write_text(PATCH.replace("fs/read.c", "fs/write.c"))
    with pytest.raises(InputError, match="can't find file"):
        resolve(f"source:{trees['old']},config=tinyconfig,patch={patch}", cache=shared, progress=Progress())
