"""The pages of docs: links lead somewhere, and the paths, modules and commands that they name exist."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs/decisions").glob("*.md"),
        *(ROOT / "docs/evidence").glob("*.md"),
        *(ROOT / "docs/studies").glob("*.md"),
    ]
)
FOLDERS = tuple(f"{path.name}/" for path in (ROOT / "src/kduel").iterdir() if path.is_dir() and path.name[0] != "_")
TOP = ("contrib/", "docs/", "perf/", "scripts/", "studies/", "tests/", "src/")
NAME = re.compile(r"`([A-Za-z_][\w./-]*)`")


def names_in(text: str) -> set[str]:
    """What stands alone in backquotes."""
    return set(NAME.findall(text))


def resolves(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        return all(
            hasattr(found := getattr(found, part, None), "__class__") and found is not None for part in parts[end:]
        )
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_exist(page: Path) -> None:
    missing = [
        name
        for name in names_in(page.read_text("utf-8"))
        if (name.startswith(TOP) and not (ROOT / name).exists())
        or (
            name.startswith(FOLDERS)
            and "." in name
            and not (ROOT / "src/kduel" / name).exists()
            and not (ROOT / name).exists()
        )
    ]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_modules_and_what_is_in_them_exist(page: Path) -> None:
    named = {name for name in names_in(page.read_text("utf-8")) if name.startswith("kduel.")}
    entry_points = {"kduel.benchmarks", "kduel.findings", "kduel.kernels", "kduel.machines", "kduel.report"}
    assert [name for name in named - entry_points if not resolves(name)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        path, _, anchor = target.partition("#")
        if "://" in path or path.startswith("mailto:"):
            continue
        there = page.parent / path if path else page
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
            broken.append(target)
    assert not broken


def anchors(page: Path) -> set[str]:
    """Those of a page's headings, as web pages of Git hosts make them."""
    headings = re.findall(r"^#+ +(.*?) *$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_prose_have_at_most_120_characters(page: Path) -> None:
    # A table's row, a line of code and a word that cannot be parted may be longer.
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    prose = [line for line in text.splitlines() if not line.startswith(("|", "    ")) and " " in line.strip()]
    assert not [line for line in prose if len(line) > 120], "wrap them anew"


def test_every_page_can_be_reached_from_the_readme() -> None:
    found, queue = set(), [ROOT / "README.md"]
    while queue:
        page = queue.pop()
        if page in found or page.suffix != ".md" or not page.exists():
            continue
        found.add(page)
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8")):
            if "://" not in target:
                queue.append((page.parent / target).resolve())
    assert set(PAGES) - found == set()


def test_terms_of_the_glossary_are_in_order() -> None:
    terms = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs/glossary.md").read_text("utf-8"), re.MULTILINE)[1:]
    assert terms == sorted(terms, key=str.casefold) and len(set(terms)) == len(terms)


def test_user_pages_are_no_longer_than_a_reader_bears() -> None:
    """What scripts/reference makes does not count, nor what is for those who write code."""
    others = {"cli.md", "findings.md", "architecture.md", "parsers.md", "plugins.md", "releasing.md"}
    pages = [path for path in (ROOT / "docs").glob("*.md") if path.name not in others]
    assert sum(len(path.read_text("utf-8").splitlines()) for path in pages) <= 4500


@pytest.mark.slow
def test_the_site_is_built_without_a_broken_link(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    build = [Path(sys.executable).with_name("zensical"), "build", "--strict"]
    done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "All pages" in (tmp_path / "site/index.html").read_text("utf-8")
