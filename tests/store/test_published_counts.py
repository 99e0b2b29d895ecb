"""`kduel verify --against`: exact counts are those of a published run, each of them, or named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from kduel.cli.verify import command as verify
from kduel.core.errors import InputError
from kduel.judge.evaluate import judge_run
from kduel.judge.published import compare_published


@pytest.fixture
def run(unpack: Callable[[str], Path]) -> Path:
    return unpack("icount")


def published(run: Path, into: Path, change: Callable[[dict[str, Any]], object] = len) -> Path:
    document = json.loads(msgspec.json.encode(judge_run(run)))
    change(document)
    into.write_text(json.dumps(document))
    return into


def test_a_run_agrees_with_itself_in_every_count(run: Path, tmp_path: Path) -> None:
    found = compare_published(run, published(run, tmp_path / "there.json"))
    assert found.checked > 3 and not found.changes and not found.notes


def test_one_instruction_more_is_named(run: Path, tmp_path: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        values = document["metrics"][0]["values"]
        values[next(iter(values))][0] += 1

    there = published(run, tmp_path / "there.json", change)
    found = compare_published(run, there)
    label = judge_run(run).metrics[0].benchmark
    assert found.changes[0] == "1 of 4 medians differs, the largest first:"
    assert len(found.changes) == 2 and found.changes[1].startswith(f"{label}, ")
    done = CliRunner().invoke(verify, [str(run), "--against", str(there)])
    assert done.exit_code == 1 and found.changes[1] in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda document: document["machine"]["facts"].update(qemu="10.0.2"), "qemu"),
        (lambda document: document["machine"].update(exact=False), "exact"),
        (lambda document: document["study"].update(seed=77), "seed"),
        (lambda document: [one.update(sha256="other") for one in document["contenders"]], "in common"),
    ],
)
def test_counts_that_need_not_be_the_same_are_not_compared(
    run: Path, tmp_path: Path, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        compare_published(run, published(run, tmp_path / "there.json", change))


def test_counts_that_only_the_other_has_are_noted(run: Path, tmp_path: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        document["metrics"].append(document["metrics"][0] | {"benchmark": "another"})

    found = compare_published(run, published(run, tmp_path / "there.json", change))
    assert not found.changes and len(found.notes) == 1


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"metrics": 3}'])
def test_what_is_no_results_file_is_refused(run: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "there.json").write_text(text)
    with pytest.raises(InputError, match="cannot be read"):
        compare_published(run, tmp_path / "there.json")
