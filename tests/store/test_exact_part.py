"""A run with an exact part: two runs in one directory, kept apart, and every command that reads it knows both."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from kduel.analysis.campaigns.history import runs_below
from kduel.cli.exact_first import wants_exact_part
from kduel.cli.report import command as report
from kduel.cli.verify import command as verify
from kduel.core.errors import InputError
from kduel.core.experiment import Contender
from kduel.core.results import Results
from kduel.judge.evaluate import judge_run
from kduel.report import report_format
from kduel.report.content.closing import closing
from kduel.store.integrity import foreign_part
from kduel.store.rundir import EXACT, RESULTS, RunDir
from kduel.study.contenders import contender_tables
from kduel.study.file import parse_study, suite_text
from kduel.study.first_part import first_part, only_kernel
from kduel.study.load import Study, assemble


@pytest.fixture
def run(unpack: Callable[[str], Path], tmp_path: Path, counts_belong: None) -> Path:
    path = shutil.copytree(unpack("qemu"), tmp_path / "run")
    shutil.copytree(unpack("icount"), path / EXACT)
    return path


def study(*kernels: str, machine: str = "") -> Study:
    text = suite_text("quick") + contender_tables(list(kernels), False)
    return assemble(parse_study(text, "quick"), text, "quick", machine=machine)


@pytest.mark.slow
def test_results_hold_both_and_mix_nothing(run: Path):
    both = judge_run(run)
    timed = judge_run(run)
    shutil.rmtree(run / EXACT)
    timed = judge_run(run)
    assert both.exact is not None and both.exact.machine.exact and not both.machine.exact
    assert timed.exact is None and both.metrics == timed.metrics and both.trials == timed.trials
    assert msgspec.json.decode(msgspec.json.encode(both), type=Results) == both


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "markdown", "mail", "html", "latex", "summary"])
def test_every_report_names_it(run: Path, form: str):
    text = " ".join(report_format(form).render(judge_run(run)).split())
    assert re.search("Counted (first|exactly)", text) and "fewer instructions" in text


def test_the_text_shows_both_parts_one_after_the_other(run: Path):
    text = CliRunner().invoke(report, [str(run)], catch_exceptions=False).stdout
    assert text.index("Counted first: ") < text.index("no proof") < text.index("\nTimed\n") < text.index("interval")
    part = CliRunner().invoke(report, [str(run / EXACT)], catch_exceptions=False).stdout
    assert "takes fewer instructions" in part and "Counted first" not in part
    screen = "\n".join("".join(piece for piece, _ in line) for line in closing(judge_run(run / EXACT), "run", 80, 22))
    assert "no proof" in screen and "kduel explain run -b" in screen


def test_verify_and_index_know_the_part(run: Path):
    for part in (run / EXACT, run):
        (part / RESULTS).write_bytes(msgspec.json.encode(judge_run(part)))
    assert runs_below([run]) == [run, run / EXACT]
    before = json.loads(CliRunner().invoke(verify, [str(run), "--format", "json"]).stdout)
    changed = next((run / EXACT / "trials").glob("*/*/stdout"))
    changed.write_text(changed.read_text() + "\n")
    done = CliRunner().invoke(verify, [str(run), "--format", "json"])
    after = json.loads(done.stdout)
    alone = json.loads(CliRunner().invoke(verify, [str(run / EXACT), "--format", "json"]).stdout)
    assert after["checked"] == before["checked"]
    assert {f"exact: {change}" for change in alone["changes"]} <= {*after["changes"]} and not before["changes"]


@pytest.mark.slow
def test_a_part_of_another_run_is_called_so(unpack: Callable[[str], Path], tmp_path: Path):
    """Its counts passed for the run's own, once results.json had been written again."""
    run = shutil.copytree(unpack("qemu"), tmp_path / "run")
    shutil.copytree(unpack("icount"), run / EXACT)
    for part in (run / EXACT, run):
        (part / RESULTS).write_bytes(msgspec.json.encode(judge_run(part)))
    done = CliRunner().invoke(verify, [str(run)])
    told = "exact is of another run: its seed is 7, not 1; its suite is icount, not exact-quick"
    assert done.exit_code == 1 and f"  {told}\n" in done.stdout
    assert told in " ".join(CliRunner().invoke(report, [str(run)], catch_exceptions=False).stdout.split())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda lock: lock["kernels"][1].update(sha256="f" * 64), "its kernel debian-6.12 is ffff"),
        (lambda lock: lock["contenders"][0].update(cmdline="quiet"), "its kernel debian-6.1 is 26f2"),
        (lambda lock: lock["contenders"][0].update(name="third"), "its kernel third is 26f2"),
        (lambda lock: lock["contenders"][0].update(name="third"), "its kernel debian-6.1 is none, not 26f2"),
        (lambda lock: lock.update(seed=8), "its seed is 8, not 7"),
    ],
)
def test_what_makes_a_part_another_runs_is_named(run: Path, change: Callable[[dict[str, Any]], None], told: str):
    own = RunDir.open(run)
    assert not foreign_part(own, own.lock())
    path = run / EXACT / "lock.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    (said,) = foreign_part(own, own.lock())
    assert told in said


def test_a_run_whose_machine_is_not_prepared_has_the_place_for_it_and_is_not_judged(run: Path, tmp_path: Path):
    old, path = RunDir.open(run), tmp_path / "new"
    early = msgspec.structs.replace(old.lock(), prepared=False)
    new = RunDir.create(path, old.study_text(), early, old.plan())
    assert (path / EXACT).is_dir() and new.exact_part is None and new.plan() == old.plan()
    shutil.copytree(run / EXACT, path / EXACT, dirs_exist_ok=True)
    assert RunDir.open(path).lock(prepared=False).seed == early.seed
    with pytest.raises(InputError, match="is timed yet") as refused:
        judge_run(path)
    assert f"kduel resume {path}" in refused.value.remedy and f"kduel report {path / EXACT}" in refused.value.remedy
    new.complete(old.lock())
    assert judge_run(path).exact is not None
    with pytest.raises(InputError, match="holds something else"):
        RunDir.create(path, old.study_text(), early, old.plan())


def test_the_part_has_the_kernels_of_the_study_on_the_exact_machine():
    part = first_part(study("debian:6.1", "debian:6.12"))
    assert part.names == ["debian-6.1", "debian-6.12"] and part.machine == "icount" and len(part.steps) == 8
    assert [contender.kernel for contender in part.contenders] == ["debian:6.1", "debian:6.12"]
    assert parse_study(part.text, "the part").contender[1]["name"] == "debian-6.12"
    odd = Contender(name='a "name" \\ of', kernel="./x y", cmdline="quiet a='b c'")
    assert only_kernel(odd) == odd
    emulator = SimpleNamespace(emulates=lambda *_, **__: True)
    for setting, counted in (("sysctl=vm.swappiness=7", False), ("cmdline=quiet", True)):
        chosen = SimpleNamespace(
            study=study("debian:6.1", f"debian:6.1,{setting}"), kind=emulator, settings={}, arms=[]
        )
        assert wants_exact_part(None, chosen, Path("nowhere"), by_default=True) == counted
    both = msgspec.structs.replace(
        study("debian:6.1", "debian:6.12"), contenders=[odd, Contender(name="b", kernel="x")]
    )
    assert first_part(both).contenders[0] == odd


def test_what_cannot_have_one_is_refused():
    with pytest.raises(InputError, match="not on icount"):
        first_part(study("debian:6.1", "debian:6.12", machine="icount"))
    set_up = study("debian:6.1", "debian:6.12")
    other = Contender(name="b", kernel="x", policy="fifo:5")
    with pytest.raises(InputError, match="b sets a scheduler"):
        first_part(msgspec.structs.replace(set_up, contenders=[set_up.contenders[0], other]))


def test_of_two_that_make_the_same_run_one_is_told(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from kduel.store import whole_files

    sync = whole_files.sync_tree

    def other_was_quicker(fresh: Path) -> None:
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "lock.json").touch()
        sync(fresh)

    monkeypatch.setattr(whole_files, "sync_tree", other_was_quicker)
    old = RunDir.open(run)
    with pytest.raises(InputError, match="is there already"):
        RunDir.create(tmp_path / "new", old.study_text(), old.lock(), old.plan())
    assert not list(tmp_path.glob(".new-*"))
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["lock.json"]
