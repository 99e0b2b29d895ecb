"""Runs merged: whole, untouched, judged together, with the machine and the run of every trial."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from datetime import datetime, timedelta, timezone
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from made_runs import STEP, make_run

from kduel.cli import kduel
from kduel.core.errors import KduelError
from kduel.core.experiment import MachineRecord
from kduel.core.results import Results
from kduel.judge.evaluate import judge_run
from kduel.judge.pooled import read_merged
from kduel.judge.verdict.headline import machines_text
from kduel.judge.verdict.unfinished import find_unfinished
from kduel.report.content.answer import answer
from kduel.store.merged import examine, merge, record_of


def called(*arguments: object) -> str:
    """What `kduel ARGUMENTS...` prints."""
    done = CliRunner().invoke(kduel, [*map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.slow
def test_a_merged_run_keeps_every_file_and_says_where_each_trial_is_from(tmp_path: Path) -> None:
    first = make_run(tmp_path / "a", 3, place="rack1")
    second = make_run(tmp_path / "b", 3, place="rack2", seed=2, blocks=12)
    for run in (first, second):
        called("report", run, "--format", "json", "--output", run / "results.json")
    merge([second, first], tmp_path / "c")
    for name, run in (("a", first), ("b", second)):
        copy = tmp_path / "c/runs" / name
        files = {path.relative_to(run) for path in run.rglob("*") if path.is_file() and path.name != ".held"}
        assert files == {path.relative_to(copy) for path in copy.rglob("*") if path.is_file()}
        assert all((copy / path).read_bytes() == (run / path).read_bytes() for path in files)
        trial = copy / "trials/0001-b01-old"
        if trial.is_dir():
            subprocess.run(["sha256sum", "--check", "--quiet", "manifest.sha256"], cwd=trial, check=True)
    assert examine(tmp_path / "c").checked == 44 and not examine(tmp_path / "c").changes
    results = judge_run(tmp_path / "c")
    assert {(trial.part, trial.machine) for trial in results.trials} == {("a", "rack1"), ("b", "rack2")}
    assert len(results.blocks) == 22 and len({trial.id for trial in results.trials}) == 44
    assert all((tmp_path / "c" / str(trial.directory) / "trial.json").is_file() for trial in results.trials)
    (metric,) = results.metrics
    assert metric.verdict == "slower" and metric.n == 22 and metric.machines is not None
    assert [one.n for one in metric.machines.effects] == [10, 12]
    assert metric.machines.pooled == pytest.approx(metric.effect_pct, rel=1e-9)
    written = msgspec.json.encode(results)
    assert msgspec.json.encode(msgspec.json.decode(written, type=Results)) == written
    for form in ("text", "markdown", "html", "json", "csv", "latex"):
        assert "rack2" in called("report", tmp_path / "c", "--format", form, "--output", "-") or form in (
            "csv",
            "latex",
        )
    assert "44 trials checked, nothing changed" in called("verify", tmp_path / "c")


@pytest.mark.slow
def test_the_order_of_the_arguments_does_not_matter(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / f"r{day}", 2, place=f"rack{day % 2}", seed=day, day=day) for day in (3, 1, 2)]
    merge(runs, tmp_path / "one")
    merge(runs[::-1], tmp_path / "other")
    assert judge_run(tmp_path / "one").metrics == judge_run(tmp_path / "other").metrics
    merge([tmp_path / "r1", tmp_path / "r2"], tmp_path / "two")
    merge([tmp_path / "two", tmp_path / "r3"], tmp_path / "flat")
    assert judge_run(tmp_path / "flat").metrics == judge_run(tmp_path / "one").metrics


def test_runs_of_one_machine_are_one_longer_run(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, 0.9, seed=day, day=day, most=10) for day, name in enumerate("ab", 1)]
    record = merge(runs, tmp_path / "c")
    assert {part.machine for part in record.parts} == {"rack1"}
    (metric,) = judge_run(tmp_path / "c").metrics
    assert metric.machines is None and metric.n == 20
    (table,) = read_merged(tmp_path / "c").samples
    assert table.parts == ["a"] * 10 + ["b"] * 10
    places = sorted(place for order in table.order.values() for place in order if place is not None)
    assert places == list(range(40)), "no two trials have one place"
    assert [one.position for one in judge_run(tmp_path / "c").trials] == places


def test_a_part_that_is_not_finished_is_named(tmp_path: Path) -> None:
    """Merged with another, a run that had been interrupted when its result was liked looked like a whole one."""
    runs = [make_run(tmp_path / name, seed=day, day=day, most=10, sd_pct=0.8) for day, name in enumerate("ab", 1)]
    shutil.rmtree(max((runs[1] / "trials").iterdir()))
    merge(runs, tmp_path / "c")
    told = [one.message for one in judge_run(tmp_path / "c").warnings if one.code == "unfinished-part"]
    assert told == ["b is not finished: 9 of up to 10 blocks are complete."]
    merge(runs, tmp_path / "d", ["left", "right"])
    (metric,) = judge_run(tmp_path / "d").metrics
    assert metric.machines is not None and [one.machine for one in metric.machines.effects] == ["left", "right"]


def test_a_merged_run_is_merged_again_as_the_sum_of_its_parts(tmp_path: Path) -> None:
    here = MachineRecord(kind="qemu", settings={}, facts={"cpus": 2})
    a, b, c, d = (make_run(tmp_path / name, 3, seed=day, day=day, machine=here) for day, name in enumerate("abcd", 1))
    merge([a, b], tmp_path / "ab")
    merge([c, d], tmp_path / "cd")
    merge([a, b], tmp_path / "named", ["left", "right"])
    for number, (runs, machines) in enumerate(
        [(["ab", "c"], {"a"}), (["c", "ab"], {"a"}), (["ab", "cd"], {"a"}), (["named", "c"], {"left", "right", "c"})]
    ):
        again = tmp_path / f"again-{number}"
        merge([tmp_path / name for name in runs], again)
        assert {trial.machine for trial in judge_run(again).trials} == machines


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"steps": [msgspec.structs.replace(STEP, parameters={**STEP.parameters, "time": 9})]}, "benchmarks.job"),
        ({"about": {"delta": 2.0}}, "study.delta"),
        ({"edition": 1}, "machine.edition"),
        ({"covariates": ["host-load"]}, "machine.covariates"),
    ],
)
def test_what_differs_is_named(tmp_path: Path, changes: dict[str, object], named: str) -> None:
    make_run(tmp_path / "a")
    make_run(tmp_path / "b", seed=2, **changes)  # type: ignore[arg-type]
    with pytest.raises(KduelError, match=named) as error:
        merge([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
    assert "different experiments" in str(error.value) and not (tmp_path / "c").exists()


def test_exact_counts_of_two_versions_of_qemu_are_not_merged(tmp_path: Path) -> None:
    for name, qemu in (("a", "7.2.22"), ("b", "10.0.13"), ("c", "10.0.13")):
        machine = MachineRecord(kind="icount", exact=True, facts={"accelerator": "tcg", "qemu": qemu})
        make_run(tmp_path / name, seed=ord(name), machine=machine)
    with pytest.raises(KduelError, match=r"machine\.facts\.qemu: 7\.2\.22 in .*/a, 10\.0\.13 in .*/b"):
        merge([tmp_path / "a", tmp_path / "b"], tmp_path / "d")
    merge([tmp_path / "b", tmp_path / "c"], tmp_path / "d")


def test_a_copy_is_no_second_run(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a")
    subprocess.run(["cp", "-r", run, tmp_path / "b"], check=True)
    with pytest.raises(KduelError, match="hold the same trial"):
        merge([run, tmp_path / "b"], tmp_path / "c")
    with pytest.raises(KduelError, match="named twice"):
        merge([run, run], tmp_path / "c")
    with pytest.raises(KduelError, match="one run only"):
        merge([run], tmp_path / "c")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.parametrize(("started", "manifests"), [("", True), ("elsewhere", True), ("elsewhere", False)])
def test_a_copy_that_states_its_starts_otherwise_is_no_second_run(
    tmp_path: Path, started: str, manifests: bool
) -> None:
    """Without its starts, or with those of another time zone, a copy counted as more trials."""
    run = make_run(tmp_path / "a")
    subprocess.run(["cp", "-r", run, tmp_path / "b"], check=True)
    for path in (tmp_path / "b/trials").glob("*/trial.json"):
        record = json.loads(path.read_text())
        zone = timezone(timedelta(hours=1))
        record["started"] = started and datetime.fromisoformat(record["started"]).astimezone(zone).isoformat()
        path.write_text(json.dumps(record))
    for path in [] if manifests else tmp_path.rglob("manifest.sha256"):
        path.unlink()
    with pytest.raises(KduelError, match="hold the same trial"):
        merge([run, tmp_path / "b"], tmp_path / "c")


def test_a_changed_part_is_told(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, place=name, seed=day) for day, name in enumerate("ab")]
    merge(runs, tmp_path / "c")
    next((tmp_path / "c/runs/b/trials").glob("*/01-job/stdout")).write_text("time 1.0\n")
    assert any("runs/b" in change for change in examine(tmp_path / "c").changes)
    assert any(warning.code == "changed-afterwards" for warning in judge_run(tmp_path / "c").warnings)
    done = CliRunner().invoke(kduel, ["verify", str(tmp_path / "c")])
    assert done.exit_code == 1


def test_a_damaged_merge_and_commands_for_one_run_are_errors_with_a_remedy(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, place=name, seed=day) for day, name in enumerate("ab")]
    merge(runs, tmp_path / "c")
    for command in ("resume", "report --boot", "plan"):
        with pytest.raises(KduelError, match="merged run"):
            CliRunner().invoke(kduel, [*command.split(), str(tmp_path / "c")], catch_exceptions=False)
    whole = (tmp_path / "c/merge.json").read_text()
    document = json.loads(whole)
    document["parts"][0]["name"] = "../../a"
    for text in ("{", '{"schema": 9, "parts": []}', json.dumps(document)):
        (tmp_path / "c/merge.json").write_text(text)
        with pytest.raises(KduelError):
            record_of(tmp_path / "c")


def test_an_interrupted_part_counts_as_far_as_its_blocks_are_finished(tmp_path: Path) -> None:
    first, second = (make_run(tmp_path / name, 3, place=name, seed=day) for day, name in enumerate("ab"))
    last = max((first / "trials").iterdir())
    subprocess.run(["rm", "-r", last], check=True)
    merge([first, second], tmp_path / "c")
    results = judge_run(tmp_path / "c")
    assert len(results.blocks) == 19 and results.metrics[0].n == 19
    assert [part.blocks for part in results.study.parts] == [9, 10]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "markdown", "html", "mail", "latex", "summary"])
def test_a_report_lists_the_parts_and_says_that_merging_until_decided_is_peeking(tmp_path: Path, form: str) -> None:
    first = make_run(tmp_path / "a", 3, place="rack1")
    merge([first, make_run(tmp_path / "b", 3, place="rack2", seed=2)], tmp_path / "c")
    page = called("report", tmp_path / "c", "--format", form, "--output", "-")
    limits = (Path(__file__).parents[3] / "docs/statistics.md").read_text()
    figures = "6.5, 7.9 and 8.8 %"
    said = " ".join(page.split()).replace("\\%", "%").replace("\\allowbreak{}", "")
    assert figures in limits and figures in said
    assert "rack1: 10 blocks, seed 1" in said and "rack2: 10 blocks, seed 2" in said
    assert figures not in " ".join(called("report", first, "--format", form, "--output", "-").split())


@pytest.mark.slow
def test_machines_that_contradict_each_other_have_no_verdict_in_common(tmp_path: Path) -> None:
    """Equivalent on the mean, +5 % on one and -5 % on the other."""
    first = make_run(tmp_path / "a", 5, place="rack1")
    second = make_run(tmp_path / "b", -5, place="rack2", seed=2)
    merge([first, second], tmp_path / "c")
    results = judge_run(tmp_path / "c")
    (metric,) = results.metrics
    assert (metric.verdict, metric.withheld) == ("undecided", "machines contradict each other")
    assert metric.machines is not None and find_unfinished(results) is None
    assert metric.machines.contradicting == ["rack1", "rack2"]
    figures = "job/time is 5.19 % higher on rack1, 5.02 % lower on rack2 (lower is better)"
    assert figures in results.headlines[0].text
    metric.machines.effects[1].effect = 0.0
    assert "higher on rack1, the same on rack2 (lower is better)" in machines_text([metric])
    assert answer(results, "c").command == "kduel report c/runs/a" and (tmp_path / "c/runs/a").is_dir()
    for form in ("text", "markdown", "mail", "html"):
        said = " ".join(called("report", tmp_path / "c", "--format", form, "--output", "-").split())
        assert figures.replace("−", "-") in said.replace("\N{NO-BREAK SPACE}", " ").replace("−", "-")


@pytest.mark.slow
def test_what_a_noisy_part_still_needs_is_counted_with_its_few_degrees_of_freedom(tmp_path: Path) -> None:
    first = make_run(tmp_path / "a", -0.09, place="rack1", blocks=9, sd_pct=0.3)
    second = make_run(tmp_path / "b", 36, place="rack2", seed=2, blocks=3, sd_pct=5)
    merge([first, second], tmp_path / "c")
    results = judge_run(tmp_path / "c")
    (metric,) = results.metrics
    assert metric.verdict == "undecided" and "machines-vary" in {warning.code for warning in metric.warnings}
    assert metric.blocks_more is not None and metric.blocks_more >= 4
    # That many more, shared as these are, do decide it.
    more = 1 + metric.blocks_more / 12
    first = make_run(tmp_path / "d", -0.09, place="rack1", blocks=round(9 * more), sd_pct=0.3)
    second = make_run(tmp_path / "e", 36, place="rack2", seed=2, blocks=round(3 * more), sd_pct=5)
    merge([first, second], tmp_path / "f")
    (decided,) = judge_run(tmp_path / "f").metrics
    assert (decided.verdict, decided.withheld) == ("undecided", "machines contradict each other")
    assert "noisier than the others" in called("report", tmp_path / "c")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "summary", "mail", "markdown", "html", "latex"])
def test_every_format_says_that_machines_contradict_each_other(tmp_path: Path, form: str) -> None:
    runs = [
        make_run(tmp_path / "a", 0, place="rack1", blocks=9, about={"name": "monday"}),
        make_run(tmp_path / "b", 36, place="rack2", blocks=4, seed=2, about={"name": "tuesday"}),
    ]
    merge(runs, tmp_path / "c")
    said = " ".join(called("report", tmp_path / "c", "--format", form, "--output", "-").split())
    assert "contradict each other" in said
    if form != "latex":
        assert "monday + tuesday" in said, "it is not called by its first part alone"


def test_a_machines_effect_has_the_same_digits_everywhere(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / "a", 0, place="rack1", blocks=9)]
    runs.append(make_run(tmp_path / "b", 36, place="rack2", blocks=4, seed=2))
    merge(runs, tmp_path / "c")
    said = " ".join(called("report", tmp_path / "c").split())
    (own,) = {*re.findall(r"rack1 contradicts the other: (\S+ %)", said)}
    assert f"rack1 9 {own}" in said
    assert len({*re.findall(r"standard deviation, interval (.*?)\)", said)}) == 1
