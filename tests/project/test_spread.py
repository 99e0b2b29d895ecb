"""The script that counts how many files know of a feature."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts/spread"))


def known(place: Path, name: str, text: str) -> list[str]:
    """The features that a file of this text is counted for."""
    file = place / name
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return [feature for feature, files in SCRIPT["spread"](place).items() if files]


@pytest.mark.parametrize(
    ("name", "text", "features"),
    [
        ("report/a.py", "def f(r): return r.machine.exact", ["exact counts"]),
        ("report/a.py", "judge(tables, exact=True)", ["exact counts"]),
        ("report/a.py", "from kduel.run.exact import measure", ["exact counts"]),
        ("report/a.py", "class A:\n    slices: int", ["slices"]),
        ("report/a.py", "def merge(): ...", ["merged runs"]),
        # Words of a text and local variables are no knowledge of others.
        ("report/a.py", 'exact = "exact counts, factors"  # exact', []),
        # The feature's own, and another thing of this name.
        ("run/exact/a.py", "def f(r): return r.machine.exact", []),
        ("kernels/a.py", "self.exact", []),
    ],
)
def test_a_file_is_counted_for_what_it_reaches_for(tmp_path: Path, name: str, text: str, features: list[str]) -> None:
    assert known(tmp_path, name, text) == features


def test_growth_is_refused_and_a_lower_number_is_not() -> None:
    page = "| tails | 2 | 25 |\n"
    assert not list(SCRIPT["grown"]({"tails": ["a", "b"]}, page)) + list(SCRIPT["grown"]({"tails": []}, page))
    (told,) = SCRIPT["grown"]({"tails": ["a", "b", "c"]}, page)
    assert told.startswith("3 files know of tails, 2 did")
    (told,) = SCRIPT["grown"]({"slices": []}, page)
    assert "has no row" in told


def test_what_there_is_to_learn_is_counted(tmp_path: Path) -> None:
    source, docs = tmp_path / "src", tmp_path / "docs"
    for name, text in {
        "cli/__init__.py": 'GROUPS = {"Measure": {"run": "", "plan": ""}, "Other": {"list": ""}}\n',
        "run/a.py": 'def once(a, *, b):\n    """Says so."""\n    return a\n\n\ndef twice(): once(1, b=2), twice(), twice()\n',
    }.items():
        (source / name).parent.mkdir(parents=True)
        (source / name).write_text(text)
    docs.mkdir()
    (docs / "glossary.md").write_text("# Glossary\n\n| term | meaning |\n|---|---|\n| run | a study carried out |\n")
    found = SCRIPT["sizes"](source, docs)
    assert found["lines of Python"] == "7: run 6, cli 1" and found["commands"] == "3"
    assert found["functions, of which are called from one place"] == "2, 1, 1 of six lines or fewer"
    assert found["arguments of the longest signatures"] == "`once` 2, `twice` 0"
    assert found["words of the glossary"] == "1" and found["pages in docs/, lines"] == "1, 5"
