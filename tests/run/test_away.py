"""A machine that is away when a trial is due: its void trials are no evidence against a contender, and the run ends soon
where nothing else comes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from outside import BENCHMARK

from kduel.core.experiment import Void
from kduel.core.void_codes import VOID_CODES, may_be_contenders
from kduel.judge.verdict.comparison import compare, finished_blocks
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.voids import missing_in
from kduel.store.collect import collect


def records(run: Path) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted((run / "trials").glob("[!.]*/trial.json"))]


def statuses(run: Path, contender: str) -> list[str]:
    return [one["status"] for one in records(run) if one["contender"] == contender]


@pytest.mark.slow
@pytest.mark.parametrize("missed", ["new", "old"])
def test_a_machine_that_was_away_at_the_start_condemns_no_contender(kduel, write_study, tmp_path: Path, missed: str):
    run, enough = tmp_path / "run", Rule().equivalent_from
    study = write_study(machine=f"away = {{{missed} = 2}}", blocks=f"fixed = {enough + 2}")
    done = kduel("run", study, "--out", run)
    assert "could not be measured" not in done.stderr and done.returncode == 0, done.stderr
    assert statuses(run, f"outside-{missed}") == ["void"] * 2 + ["ok"] * enough
    said = json.loads(kduel("report", "--format", "json", run).stdout)
    assert "crashes" not in [one["code"] for one in said["warnings"]]
    assert (said["metrics"][0]["verdict"], said["metrics"][0]["withheld"]) == ("equal", ""), said["metrics"][0]


@pytest.mark.slow
def test_trials_that_never_began_are_no_missing_values_of_their_contender(
    kduel, write_study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run = tmp_path / "run"
    kduel("run", write_study(machine="away = {new = 3}", blocks="fixed = 12"), "--out", run)
    monkeypatch.setattr("kduel.core.plugins.plugins", lambda _: {BENCHMARK.name: BENCHMARK})
    tables = collect(run)
    assert finished_blocks(tables) == 12, "they were due, and are over"
    [compared, *_] = compare(tables, Rule.of_edition(2))
    assert missing_in(compared.table, "outside-new") == (0, 9) and missing_in(compared.table, "outside-old") == (
        0,
        12,
    )


def test_a_machine_that_stays_away_ends_the_run_which_goes_on_later(kduel, write_study, tmp_path: Path):
    run = tmp_path / "run"
    done = kduel("run", write_study(machine="away = {old = 9, new = 9}", blocks="fixed = 20"), "--out", run)
    assert done.returncode == 3, done.stderr
    assert "void by no fault of their contenders" in done.stderr and "unreachable: No route to host" in done.stderr
    assert "kduel resume" in done.stderr and "Traceback" not in done.stderr
    assert len(records(run)) == 3


def test_the_contenders_own_trouble_still_counts(kduel, write_study, tmp_path: Path):
    run = tmp_path / "run"
    machine = 'away = {new = 1}\npanics = ["new"]'
    done = kduel("run", write_study(machine=machine, blocks="fixed = 12"), "--out", run)
    assert done.returncode == 1 and "outside-new could not be measured" in done.stderr
    codes = [one["void"]["code"] for one in records(run) if one["contender"] == "outside-new"]
    assert codes == ["unreachable", "panic", "panic"]


def test_whose_fault_a_code_is():
    listed = {one.code for one in VOID_CODES if not may_be_contenders(Void(one.code))}
    assert listed == {
        "emulator-fault",
        "host-disturbed",
        "block-interrupted",
        "uneven-turns",
        "no-node",
        "unreachable",
        "wrong-host-key",
        "not-admitted",
        "no-such-host",
        "ssh-settings",
        "no-sudo",
    }
    # After the reboot into its kernel, silence may be the contender's own.
    for code in ("no-return", "no-answer", "fell-back", "rebooted", "panic", "code-of-a-plug-in"):
        assert may_be_contenders(Void(code))
    assert not may_be_contenders(None)
