"""Figures of a report are files of the format that was asked for, and a paper includes them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from examples import simulated
from msgspec import structs

from kduel.analysis.boot import WORDS
from kduel.benchmarks.kload import COLUMNS
from kduel.cli.report import command
from kduel.core.results import StepResult
from kduel.judge.imported import results
from kduel.report.plots.figures import (
    boot_spec,
    busy_share,
    draw_figure,
    figure_specs,
    processes_spec,
    read_processes,
)
from kduel.store.imported import Source, bring_in

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
    captions = re.findall(r"\\caption\{(.*)\}\\label\{fig:kduel-", (tmp_path / "a.tex").read_text())
    assert "cyclictest/max\\_latency, us: every trial, over the quartiles and the range." in captions
    assert len(set(captions)) == 8, "each figure is told apart in words"


def test_one_column_has_room_for_each_name_and_verdict(tmp_path: Path) -> None:
    """A name beside its verdict was cut to its first letters, so that no row could be told from another."""
    arguments = [str(GENERATIONS), "-f", "summary", "--figures", str(tmp_path), "--figure-format", "svg"]
    assert CliRunner().invoke(command, arguments, catch_exceptions=False).exit_code == 0
    drawn = (tmp_path / "effects-linux-6.6.0.svg").read_text()
    assert "sysbench-cpu-1t/events_per_second" in drawn and "sysbench-fileio-seqwr/total_time" in drawn
    assert "…" not in drawn


def test_policies_are_bars_by_number_of_processes(tmp_path: Path) -> None:
    """The charts of the study of policies: elapsed and CPU time, and context switches, for each kind of process."""
    bring_in([Source(GENERATIONS.with_name("policies.csv"))], tmp_path / "run")
    named = {
        name: (caption, spec)
        for name, caption, spec in figure_specs(tmp_path / "run", results(tmp_path / "run"), 241)
    }
    kinds = [f"{what}-{kind}" for kind in ("cpu", "io", "mixed") for what in ("times", "switches")]
    assert [name for name in named if name.startswith(("times-", "switches-"))] == kinds
    caption, spec = named["times-cpu"]
    assert caption == "cpu: elapsed time with its standard deviation, below it user and system time."
    drawn = draw_figure(spec, "svg").decode()
    panels = re.findall(r">(\d+) processes<", drawn)
    assert panels == ["10", "100", "1000"]
    assert all(word in drawn for word in ("SCHED_RR", "SCHED_OTHER", "SCHED_FIFO", ">wall<", ">user<", ">system<"))
    # Three policies of 18 bars: elapsed, user and system in each of three panels; 9 spreads.
    bars = re.findall(r'<path [^>]*d="M[\d.-]+,[\d.-]+h[\d.]+v[\d.]+h-[\d.]+Z"', drawn)
    assert len(bars) >= 27
    assert "involuntary" in draw_figure(named["switches-io"][1], "svg").decode()


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


def test_the_processes_of_the_plain_condition_are_drawn(tmp_path: Path) -> None:
    """A step under several conditions, as on exact CPUs, had no chart of its processes."""
    trial = simulated().trials[0]
    captured = Path(__file__).parents[1] / "benchmarks" / "captured" / "kduel-programs" / "kload-cpu-6-200000i"
    assert trial.directory
    step = tmp_path / trial.directory / "01-kload-cpu-6-200000i"
    shutil.copytree(captured, step)
    plain = (step / "stdout").read_text()
    begin = '{"kvary":%d,"phase":0,"cpu":0,"halvings":0,"environment":0,"layout":0}'
    parts = [f'{begin % number}\n{plain}{{"voluntary":5,"involuntary":6}}\n' for number in (0, 1)]
    label = StepResult(label="kload-cpu-6-200000i", benchmark="kload", parameters={})
    found = structs.replace(simulated(), steps=[label])
    once = read_processes(tmp_path, found, trial.contender, 0)
    (step / "stdout").write_text("".join(parts))
    assert len(once) == 6 and read_processes(tmp_path, found, trial.contender, 0) == once


def test_a_boot_fits_one_column() -> None:
    """Its legend made it half as wide again, so that in a column the letters of this figure alone shrank."""
    rows: list[dict[str, Any]] = [
        {"c": "debian-6.12", "stage": word, "v": 1.0, "n": n} for n, word in enumerate(WORDS.values())
    ]
    found = re.match(r'<svg [^>]*?width="([\d.]+)"', draw_figure(boot_spec(rows, 241), "svg").decode())
    assert found and float(found[1]) <= 293, "as the widest of the other figures"
