"""Figures of a report are files of the format that was asked for, and a paper includes them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kduel.benchmarks.kload import COLUMNS
from kduel.cli.report import command
from kduel.report.plots.figures import busy_share, draw_figure, processes_spec

GENERATIONS = Path(__file__).parents[2] / "studies" / "published" / "generations.csv"
BEGINNINGS = {"svg": b"<svg ", "png": b"\x89PNG", "pdf": b"%PDF"}


@pytest.mark.parametrize("form", list(BEGINNINGS))
def test_every_metric_and_the_effects_are_drawn(form: str, tmp_path: Path) -> None:
    arguments = [str(GENERATIONS), "-f", "latex", "-o", str(tmp_path / "a.tex")]
    arguments += ["--figures", str(tmp_path / "figures"), "--figure-format", form]
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    files = sorted((tmp_path / "figures").iterdir())
    assert [file.suffix for file in files] == [f".{form}"] * 8
    assert all(file.read_bytes().startswith(BEGINNINGS[form]) for file in files)
    assert sum(file.name.startswith("effects-linux-6.6.0") for file in files) == 1
    included = re.findall(r"\\includegraphics\[width=\\linewidth\]\{(.*)\}", (tmp_path / "a.tex").read_text())
    assert sorted(included) == [f"figures/{file.name}" for file in files]


def test_two_columns_are_wider_than_one(tmp_path: Path) -> None:
    widths = []
    for columns in "12":
        where = tmp_path / columns
        arguments = [str(GENERATIONS), "-f", "summary", "--figures", str(where)]
        arguments += ["--figure-format", "svg", "--figure-columns", columns]
        assert CliRunner().invoke(command, arguments, catch_exceptions=False).exit_code == 0
        text = (where / "values-cyclictest-max-latency.svg").read_text()
        found = re.match(r'<svg [^>]*?width="([\d.]+)"', text)
        assert found
        widths.append(float(found[1]))
    assert widths[0] == pytest.approx(241, abs=12) and widths[1] == pytest.approx(504, abs=12)


def test_a_bar_for_each_process() -> None:
    assert COLUMNS[:4] == ["start_us", "end_us", "user_us", "system_us"]
    assert busy_share([1000, 3000, 400, 600, 0, 0]) == 0.5
    rows: list[dict[str, Any]] = [
        {"c": name, "p": number, "start": 0.1 * number, "end": 0.1 * number + 1, "busy": 0.2 * number}
        for name in ("rr", "fifo")
        for number in range(1, 6)
    ]
    drawn = draw_figure(processes_spec(rows, 241), "svg").decode()
    assert len(re.findall(r'aria-roledescription="bar"|<path aria-label', drawn)) in (0, 10)
    assert "rr" in drawn and "fifo" in drawn and "share on a CPU" in drawn
    bars = re.findall(r'<path [^>]*d="M[\d.]+,[\d.]+h[\d.]+v[\d.]+h-[\d.]+Z"', drawn)
    assert len(bars) >= 10
