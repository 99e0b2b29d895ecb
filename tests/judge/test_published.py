"""`kduel verify --against`: exact counts held against published ones."""

from __future__ import annotations

import json
import lzma
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from kduel.cli.verify import command as verify
from kduel.core.errors import InputError
from kduel.judge.evaluate import judge_run
from kduel.judge.published import compare_published, read_results
from kduel.store.rundir import EXACT, RESULTS


@pytest.fixture
def run(unpack: Callable[[str], Path]) -> Path:
    path = unpack("icount")
    (path / RESULTS).write_bytes(msgspec.json.encode(judge_run(path)))
    return path


@pytest.fixture
def published(run: Path, tmp_path: Path) -> Path:
    return shutil.copyfile(run / RESULTS, tmp_path / "published.json")


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads(path.read_bytes())
    change(document)
    path.write_text(json.dumps(document))


def against(run: Path, published: Path) -> Result:
    return CliRunner().invoke(verify, [str(run), "--against", str(published)])


@pytest.mark.slow
def test_the_same_counts_are_the_same_compressed_or_not(run: Path, published: Path):
    packed = published.with_suffix(".json.xz")
    packed.write_bytes(lzma.compress(published.read_bytes()))
    for path in (published, packed):
        found = compare_published(run, path)
        assert found.checked > 0 and not found.changes and not found.notes
    assert against(run, published).exit_code in (0, 3)  # 3: this version judges the fixture otherwise than its own


@pytest.mark.slow
def test_one_instruction_more_is_found_and_named(run: Path, published: Path):
    def change(document: dict[str, Any]) -> None:
        metric = document["metrics"][0]
        metric["values"][metric["contender"]][0] += 1

    edit(published, change)
    name = json.loads(published.read_bytes())["metrics"][0]["benchmark"]
    head, difference = compare_published(run, published).changes
    assert head.startswith("1 of ") and " medians differs, " in head
    assert difference.startswith(f"{name}, ")
    done = against(run, published)
    assert done.exit_code == 1 and difference in done.stdout


def test_medians_and_means_are_counted_apart_and_the_largest_difference_comes_first(run: Path, published: Path):
    factors = {"instructions": [1.001, 1.2, 1.0], "instructions-mean": [1.5, 1.0, 1.0]}

    def change(document: dict[str, Any]) -> None:
        for name, wanted in factors.items():
            rows = [one for one in document["metrics"] if one["metric"] == name]
            assert rows[0]["statistic"] == ("mean" if name.endswith("mean") else "median")
            for row, factor in zip(rows, wanted, strict=False):
                row["values"][row["contender"]][0] *= factor

    edit(published, change)
    rows = [one for one in json.loads(published.read_bytes())["metrics"] if one["metric"] == "instructions"]
    medians, larger, smaller, means, mean = compare_published(run, published).changes
    assert medians.startswith("2 of ") and "medians differ, the largest first" in medians
    assert larger.startswith(f"{rows[1]['benchmark']}, instructions, ") and larger.endswith("(17 %)")
    assert smaller.startswith(f"{rows[0]['benchmark']}, instructions, ") and smaller.endswith("(0.1 %)")
    assert means.startswith("1 of ") and "means differs" in means and "instructions-mean" in mean


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda metrics: metrics.append({**metrics[0], "benchmark": "another"}), "operations: 1 only there (another)"),
        (lambda metrics: metrics.reverse(), "operations: in another order"),
        (lambda metrics: metrics[0]["conditions"].append(
            {**metrics[0]["conditions"][0], "name": "odd"}), "conditions: 1 only there (odd)"),
    ],
)  # fmt: skip
def test_counts_with_other_surroundings_are_not_called_changed(
    run: Path, published: Path, change: Callable[[list[dict[str, Any]]], object], said: str
):
    def both(document: dict[str, Any]) -> None:
        metric = document["metrics"][0]
        metric["values"][metric["contender"]][0] += 1
        change(document["metrics"])

    edit(published, both)
    found = compare_published(run, published)
    assert not found.changes and any(said in note and "other surroundings" in note for note in found.notes)
    assert any(" here, " in note and " there (" in note for note in found.notes), "they are listed all the same"
    done = against(run, published)
    assert done.exit_code == 3 and "all the same" not in done.stdout


def test_a_difference_behind_the_last_digit_shown_is_shown(run: Path, published: Path):
    """Both values were shown as 378.26."""

    def change(document: dict[str, Any]) -> None:
        metric = document["metrics"][0]
        metric["values"][metric["contender"]][0] += 1e-6

    edit(published, change)
    _, difference = compare_published(run, published).changes
    difference = difference.rpartition(" (")[0]
    here, there = difference.rpartition(": ")[2].split(", ")
    assert here.removesuffix(" here") != there.removesuffix(" there")


@pytest.mark.parametrize("place", ["", "exact"])
def test_contenders_that_only_the_metrics_have_are_named(run: Path, published: Path, place: str):
    """A traceback, KeyError."""

    def change(document: dict[str, Any]) -> None:
        if place:
            document[place] = json.loads(json.dumps(document))
        (document[place] if place else document)["contenders"].pop()

    name = json.loads(published.read_bytes())["contenders"][-1]["name"]
    edit(published, change)
    with pytest.raises(InputError) as found:
        compare_published(run, published)
    assert all(word in found.value.message for word in (str(published), place, "contenders", name))
    assert found.value.remedy


@pytest.mark.parametrize("schema", [0, 99])
def test_a_schema_of_another_version_is_refused(run: Path, published: Path, schema: int):
    edit(published, lambda document: document.update(schema=schema))
    with pytest.raises(InputError, match=f"schema {schema}"):
        compare_published(run, published)


def test_the_first_schema_has_the_same_counts(run: Path, published: Path):
    edit(published, lambda document: document.update(schema=1))
    assert not compare_published(run, published).changes


def test_a_contender_that_the_run_lacks_is_no_agreement(run: Path, published: Path):
    kept = json.loads(published.read_bytes())["contenders"][0]["name"]
    for trial in run.glob("trials/*"):
        if json.loads((trial / "trial.json").read_bytes())["contender"] != kept:
            shutil.rmtree(trial)
    found = compare_published(run, published)
    assert found.checked and any("not in this run" in note for note in found.notes)


def test_counts_that_the_run_lacks_are_no_agreement(run: Path, published: Path):
    def change(document: dict[str, Any]) -> None:
        document["metrics"].append({**document["metrics"][0], "benchmark": "another"})

    edit(published, change)
    found = compare_published(run, published)
    assert not found.changes and len(found.notes) == 1
    assert against(run, published).exit_code == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda document: document["machine"]["facts"].update(qemu="1.0"), "qemu is"),
        (
            lambda document: (document["machine"]["facts"].update(qemu="1.0"), document["metrics"].reverse()),
            "operations: in",
        ),
        (lambda document: document["study"].update(seed=77), "seed is"),
        (lambda document: [one.update(sha256="0" * 64) for one in document["contenders"]], "the same kernel"),
        (lambda document: document["machine"].update(exact=False), "no exact counts"),
    ],
)
def test_what_need_not_be_the_same_is_not_compared(
    run: Path, published: Path, change: Callable[[dict[str, Any]], object], named: str
):
    edit(published, change)
    with pytest.raises(InputError, match=named):
        compare_published(run, published)


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b"{}", b"\xfd7zXZ", b"[1]"])
def test_a_file_that_is_no_results_is_refused_by_name(run: Path, tmp_path: Path, content: bytes):
    for name in ("other.json", "other.json.xz"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=name):
            compare_published(run, tmp_path / name)


def test_a_fifo_is_refused_in_words_alone(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError) as refused:
        read_results(tmp_path / "pipe")
    assert refused.value.message == f"{tmp_path}/pipe cannot be read as results: it is no plain file"


@pytest.mark.slow
def test_an_exact_part_is_compared_with_a_run_of_its_own(run: Path, published: Path, unpack: Callable[[str], Path]):
    both = unpack("qemu")
    shutil.copytree(run, both / EXACT)
    assert compare_published(both, published).checked == compare_published(run, published).checked


def test_a_difference_in_an_exact_part_of_other_kernels_names_them(
    run: Path, published: Path, unpack: Callable[[str], Path]
):
    timed = unpack("qemu")
    shutil.copytree(run, timed / EXACT)
    edit(timed / "lock.json", lambda lock: [one.update(sha256="0" * 64) for one in lock["kernels"]])

    def change(document: dict[str, Any]) -> None:
        metric = document["metrics"][0]
        metric["values"][metric["contender"]][0] += 1

    edit(published, change)
    name = json.loads(published.read_bytes())["metrics"][0]["contender"]
    assert any(f", {name}, block 1" in one for one in compare_published(timed, published).changes)


def test_a_difference_names_the_kernel(run: Path, published: Path):
    """Both kernels' differences read alike, with ", :" where the condition has no name."""
    edit(published, lambda document: [one["values"].update({n: [v[0] + 1, *v[1:]] for n, v in one["values"].items()})
                                      for one in document["metrics"][:1]])  # fmt: skip
    changes = compare_published(run, published).changes
    names = [one.name for one in judge_run(run).contenders]
    assert sorted(one.split(", ")[2] for one in changes[1:]) == sorted(names)
    assert ", :" not in "".join(changes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda metric: metric.update(mean=metric["mean"] + 1), "mean is "),
        (lambda metric: metric.update(baseline_mean=metric["baseline_mean"] + 1), "baseline_mean is "),
        (lambda metric: metric.update(verdict="faster"), 'verdict is "faster", but the raw values give '),
        (lambda metric: metric.update(effect=77.0), "effect is 77.0, but the raw values give "),
        (
            lambda metric: metric["modes"].update({metric["contender"]: [{"value": 3.0, "share": 1.0}]}),
            "modes of ",
        ),
    ],
)
def test_what_does_not_follow_from_the_files_own_counts_is_named(
    run: Path, published: Path, change: Callable[[dict[str, Any]], object], said: str
):
    edit(published, lambda document: change(document["metrics"][0]))
    (told,) = compare_published(run, published).changes
    assert said in told and judge_run(run).metrics[0].contender in told
    assert against(run, published).exit_code == 1


def test_a_verdict_by_another_rule_or_version_is_no_contradiction(run: Path, published: Path):
    def other_version(document: dict[str, Any]) -> None:
        document["judged_by"] = "0.0.1"
        document["metrics"][0]["verdict"] = "faster"

    edit(published, other_version)
    found = compare_published(run, published)
    assert not found.changes
    assert len(found.notes) == 1 and "KDuel 0.0.1 may judge otherwise" in found.notes[0]
    edit(published, lambda document: document["study"].update(delta=50.0))
    found = compare_published(run, published)
    assert not found.changes and not found.notes


@pytest.mark.parametrize("name", ["trials", "study.toml", "plan.jsonl"])
def test_a_damaged_run_is_one_with_and_without_a_file(run: Path, published: Path, name: str):
    (run / name).rename(run.parent / "away")
    done = against(run, published)
    assert done.exit_code == 1, done.output
    alone = CliRunner().invoke(verify, [str(run)])
    assert alone.exit_code == 1 and set(alone.stdout.splitlines()) <= set(done.stdout.splitlines())
    published.write_text("{")
    done = against(run, published)
    assert isinstance(done.exception, InputError) and "cannot be read as results" in done.exception.message


def test_a_link_in_the_run_is_one_with_a_file(run: Path, published: Path):
    (run / EXACT).symlink_to(run.parent)
    done = against(run, published)
    assert done.exit_code == 1 and "exact was added: it is a symbolic link" in done.stdout
    assert "not compared: " in " ".join(done.stdout.split()) and "all the same" not in done.stdout


def test_facts_that_an_import_lacks_are_not_recorded(run: Path, published: Path, monkeypatch: pytest.MonkeyPatch):
    ours = judge_run(run)
    ours.machine.facts.clear()
    monkeypatch.setattr("kduel.judge.published.judge_run", lambda _: ours)
    with pytest.raises(InputError, match="qemu is not recorded here"):
        compare_published(run, published)
