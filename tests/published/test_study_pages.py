"""The pages of docs/studies: their figures follow from the files beside them, and the items of their index exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from study_tables import STUDIES, pair_rows, policies_rows

from kduel.core.plugins import plugins
from kduel.judge.imported import results
from kduel.report.plots.figures import figure_specs
from kduel.store.imported import Source, bring_in

ROOT = STUDIES.parents[1]
PUBLISHED = ROOT / "studies" / "published"


@pytest.mark.parametrize("name", ["generations", "footprint", "desktop"])
def test_a_pages_figures_follow_from_its_file(name: str) -> None:
    page = (STUDIES / f"{name}.md").read_text("utf-8")
    told = re.findall(r"^\| [a-z0-9.-]+ \| [a-z0-9_.-]+ \| .* % \|$", page, re.MULTILINE)
    assert len(told) >= 4
    assert [row for row in told if row not in pair_rows(f"{name}.csv")] == []


def test_the_policies_figures_follow_from_their_file() -> None:
    page = (STUDIES / "policies.md").read_text("utf-8")
    assert "\n".join(policies_rows()) in page


@pytest.mark.parametrize("name", ["old-kernels", "built-kernels"])
def test_the_counts_of_an_old_kernel_follow_from_their_file(name: str) -> None:
    assert "\n".join(pair_rows(f"{name}.csv")) in (STUDIES.parent / "old-kernels.md").read_text("utf-8")


@pytest.mark.slow
def test_the_published_figures_have_the_names_of_the_index(tmp_path: Path) -> None:
    """Figures 4 to 10 of the study of two generations."""
    index = (STUDIES / "README.md").read_text("utf-8")
    named = re.findall(r"^\| Fig\. .*`(values-[a-z0-9-]+)` \|$", index, re.MULTILINE)
    bring_in([Source(PUBLISHED / "generations.csv")], tmp_path / "run")
    drawn = {name for name, *_ in figure_specs(tmp_path / "run", results(tmp_path / "run"), 241)}
    assert len(named) == 7
    assert {re.sub(r"[^A-Za-z0-9.]+", "-", name) for name in drawn} >= set(named)


@pytest.mark.slow
def test_the_charts_of_the_policies_have_the_names_of_the_index(tmp_path: Path) -> None:
    named = re.findall(r"`((?:times|switches)-[a-z]+)`", (STUDIES / "README.md").read_text("utf-8"))
    bring_in([Source(PUBLISHED / "policies.csv")], tmp_path / "run")
    drawn = {name for name, *_ in figure_specs(tmp_path / "run", results(tmp_path / "run"), 241)}
    assert len(named) == 6 and drawn >= set(named)


def test_every_category_of_lmbench_in_the_index_is_in_the_suite() -> None:
    named = set(
        re.findall(
            r"^\| lmbench: .*\| category `([a-z]+)` \|$", (STUDIES / "README.md").read_text("utf-8"), re.MULTILINE
        )
    )
    suite = tomllib.loads((ROOT / "src" / "kduel" / "study" / "suites" / "lmbench.toml").read_text())
    assert named == {one["category"] for one in suite["benchmark"]} - {"processes"}, (
        "the study has no row of processes"
    )


def test_every_file_and_command_of_the_index_is_there() -> None:
    index = (STUDIES / "README.md").read_text("utf-8")
    files = set(re.findall(r"(?:docs/)?\bstudies/[a-z/-]+\.(?:toml|csv)\b", index))
    assert len(files) >= 12 and not [file for file in files if not (ROOT / file).is_file()]
    formats = set(re.findall(r"--format ([a-z]+)", index))
    assert formats <= set(plugins("report")) and "wide" in formats


@pytest.mark.parametrize("file", sorted(STUDIES.glob("*.csv")), ids=lambda file: file.stem)
def test_what_was_measured_is_written_up_by_one_command(file: Path, tmp_path: Path) -> None:
    bring_in([Source(file)], tmp_path / "run")
    found = results(tmp_path / "run")
    assert found.metrics
    if not found.machine.resolution:  # Exact CPUs give no verdict under so few conditions.
        assert "undecided" not in {metric.verdict for metric in found.metrics}, "all of it was counted"
    assert any(name.startswith("effects-") for name, *_ in figure_specs(tmp_path / "run", found, 241))
