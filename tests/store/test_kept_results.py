"""results.json, which scripts read, is what the raw values give; `kduel verify` says where it is not."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from kduel.cli.verify import command as verify
from kduel.core.plugins import entry_points_by_group, plugins
from kduel.core.version import full_version
from kduel.explain.compare import Explanation, Row
from kduel.explain.profile import IDLE
from kduel.judge.evaluate import judge_run
from kduel.judge.results_check import compare_kept
from kduel.store.integrity import MOST_NAMED
from kduel.store.rundir import EXACT, EXPLAIN, RESULTS


@pytest.fixture
def run(unpack: Callable[[str], Path], output: object) -> Path:
    """A run as it is when its report was written. Its benchmark is a plug-in, which `output` installs."""
    path = unpack("process")
    (path / RESULTS).write_bytes(msgspec.json.encode(judge_run(path)) + b"\n")
    return path


def edit(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the run's results.json."""
    document = json.loads((run / RESULTS).read_text())
    change(document)
    (run / RESULTS).write_text(json.dumps(document))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["process", "icount", "qemu", "local", "build", "board", "interrupted"])
def test_results_that_were_left_alone_are_the_same(kduel, output, unpack: Callable[[str], Path], kind: str):
    path = unpack(kind)
    changes, notes = compare_kept(path)
    short = kind in ("interrupted", "process")  # not all planned trials are there
    assert (len(changes), len(notes)) == ((0, 1) if short else (1, 0)), "there is none"
    assert kduel("verify", path).returncode == (3 if short else 1)
    (path / RESULTS).write_bytes(msgspec.json.encode(judge_run(path)))
    assert compare_kept(path) == ([], [])
    moved = path.rename(path.with_name("moved"))
    done = kduel("verify", moved)
    assert (done.returncode, " blocks: it was interrupted or stopped, or its last" in done.stdout) == (
        3 if short else 0,
        short,
    )


@pytest.mark.slow
def test_a_verdict_that_was_replaced_is_named_and_can_be_written_again(kduel, run: Path):
    assert kduel("verify", run).returncode == 3, "it is not finished"
    kept = json.loads((run / RESULTS).read_text())["metrics"][0]["verdict"]
    edit(run, lambda document: document["metrics"][0].update(verdict="faster"))
    done = kduel("verify", run)
    assert done.returncode == 1
    assert f'results.json: metrics[0].verdict is "faster", but the raw values give "{kept}"' in done.stdout
    command = done.stdout.split("`")[1]
    assert kduel(*shlex.split(command)[1:]).returncode == 0
    assert kduel("verify", run).returncode == 3


def test_the_finding_of_a_later_explanation_is_no_difference(run: Path):
    rows = [Row(context=IDLE, function="default_idle", baseline=900, contender=0)]
    one = Explanation(benchmark="timer", baseline="old", contender="new", operations=10, rows=rows)
    (run / EXPLAIN).mkdir()
    (run / EXPLAIN / "timer.json").write_bytes(msgspec.json.encode(one))
    assert "other-work" in {warning.code for warning in judge_run(run).warnings}
    assert compare_kept(run) == ([], [])
    edit(run, lambda document: document["warnings"].append({"code": "crashes", "message": "x"}))
    assert compare_kept(run)[0], "any other finding is one"


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"[" * 100_000, b"\xff"])
def test_results_that_are_none_are_told(kduel, run: Path, data: bytes):
    (run / RESULTS).write_bytes(data)
    done = kduel("verify", run)
    assert done.returncode == 1 and "  results.json cannot be read (" in done.stdout, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_directory_in_place_of_results_is_to_be_removed_first(run: Path):
    (run / RESULTS).unlink()
    (run / RESULTS).mkdir()
    assert "results.json cannot be read (it is no plain file); remove it; `kduel report " in compare_kept(run)[0][0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d["metrics"].pop(), "metrics is a list of"),
        (lambda d: d["metrics"][0]["values"].clear(), "metrics[0].values.outside-old is missing"),
        (lambda d: d.update(seen="by me"), "seen is no key of results"),
        (lambda d: d["study"].update(delta=1.001), "study.delta is 1.001, but the raw values give"),
        (lambda d: d["metrics"][0].update(n=True), "metrics[0].n is true"),
        (lambda d: d["trials"].pop(), "trials is a list of"),
        (lambda d: d["headlines"][0].update(text="\x1b[31mmine"), "headlines[0].text is "),
    ],
)
def test_whatever_differs_is_named(run: Path, change: Callable[[dict[str, Any]], object], said: str):
    edit(run, change)
    (told,), notes = compare_kept(run)
    assert said in told and not notes and "\x1b" not in told


def test_the_last_digits_are_no_difference(run: Path):
    edit(run, lambda document: document["study"].update(delta=document["study"]["delta"] * (1 + 1e-13)))
    assert compare_kept(run) == ([], [])


def test_what_another_version_judged_otherwise_is_told_apart(kduel, run: Path):
    edit(run, lambda document: document.update(judged_by="0.1.0+g0123456789ab"))
    assert compare_kept(run) == ([], []), "what is the same needs no excuse"
    edit(run, lambda document: document.update(metrics=[]))
    done = kduel("verify", run)
    assert done.returncode == 3 and done.stdout.startswith("3 trials checked, no raw file changed afterwards\n")
    said = f"note: results.json was written by KDuel 0.1.0+g0123456789ab, this is {full_version()}"
    assert said in " ".join(done.stdout.split())
    found = json.loads(kduel("verify", run, "-f", "json").stdout)
    assert found["changes"] == [] and len(found["notes"]) == 1
    edit(run, lambda document: document.update(judged_by=full_version()))
    assert kduel("verify", run).returncode == 1
    edit(run, lambda document: document.pop("judged_by"))
    assert "does not name the commit" in compare_kept(run)[0][0]


def test_results_of_chosen_trials_are_no_earlier_state(run: Path):
    """One machine runs the trials in their order."""
    before = shutil.copytree(run, run.with_name("before"))
    shutil.rmtree(min((before / "trials").iterdir()))
    (run / RESULTS).write_bytes(msgspec.json.encode(judge_run(before)))
    (told,), notes = compare_kept(run)
    assert not notes and "but the raw values give" in told


def test_results_of_another_run_are_no_trace_of_lost_trials(run: Path):
    """The advice was to restore trials of a run that is whole."""
    edit(run, lambda document: document["trials"][0].update(id="0001-b01-another"))
    assert "trials/0001-b01-another is missing, which results.json has" in compare_kept(run)[0][0]
    edit(run, lambda document: document["study"].update(seed=42))
    (told,), notes = compare_kept(run)
    assert told.startswith("results.json is of another run: study.seed is 42") and not notes


@pytest.fixture
def continued(run: Path) -> Path:
    """A run whose results.json is of its first two trials."""
    before = shutil.copytree(run, run.with_name("before"), ignore=shutil.ignore_patterns(RESULTS))
    for path in sorted((before / "trials").iterdir())[2:]:
        shutil.rmtree(path)
    (run / RESULTS).write_bytes(msgspec.json.encode(judge_run(before)))
    return run


def test_a_run_that_was_continued_since_is_no_tampered_one(kduel, continued: Path):
    edit(continued, lambda document: document["warnings"].append({"code": "machine-out", "message": "x is lost"}))
    changes, (note,) = compare_kept(continued)
    assert not changes and "results.json is of the first 2 of now 3 trials; `kduel report" in note
    done = kduel("verify", continued)
    assert done.returncode == 3 and done.stdout.startswith("3 trials checked, no raw file changed afterwards\nnote: ")


def test_a_boot_that_was_made_again_since_is_no_change(run: Path):
    names = sorted(path.name for path in (run / "trials").iterdir())
    before = run.with_name("before")
    (run / "repeated").mkdir()
    shutil.copytree(run / "trials" / names[0], run / f"repeated/{names[0]}.1")
    shutil.copytree(run, before, ignore=shutil.ignore_patterns(RESULTS))
    shutil.copytree(run / "trials" / names[2], run / f"repeated/{names[2]}.1")
    shutil.rmtree(before / "trials" / names[2])
    results = judge_run(before)
    (run / RESULTS).write_bytes(msgspec.json.encode(results))
    changes, (note,) = compare_kept(run)
    assert len(results.repeated) == 1 and not changes and "is of the first 2 of now 3 trials" in note
    edit(run, lambda document: document["repeated"][0].update(seconds=1e6))
    assert "repeated[0].seconds is 1000000.0, but" in compare_kept(run)[0][0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d["metrics"][0].update(n=99), "metrics[0].n is 99, but the raw values give 1"),
        (lambda d: d["study"].update(checksum="0" * 64), 'study.checksum is "000'),
        (lambda d: d["trials"].pop(), 'study.checksum is "'),
        (lambda d: d["trials"].pop(0), 'study.checksum is "'),
        (lambda d: d["trials"].append(d["trials"][0]), "trials is a list of 3, but"),
        (lambda d: d["repeated"].append(d["trials"][0]), "repeated is a list of 1, but"),
        (lambda d: d.update(warnings=7), "warnings is 7, but"),
    ],
)
def test_numbers_of_an_earlier_state_follow_from_its_trials(
    continued: Path, change: Callable[[dict[str, Any]], object], said: str
):
    """To drop one trial and alter the study hid any edit."""
    edit(continued, change)
    (told,), notes = compare_kept(continued)
    assert said in told and not notes


@pytest.mark.slow
@pytest.mark.parametrize("version", [full_version(), "0.1.0+g0123456789ab"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d["study"].update(seed=42), "study.seed is 42, but"),
        (lambda d: d["study"].update(name="another"), 'study.name is "another", but'),
        (lambda d: d["contenders"][0].update(sha256="0"), 'contenders[0].sha256 is "0", but'),
        (lambda d: d.update(contenders=7), "contenders is a list of 0"),
    ],
)
def test_results_of_another_run_are_none_of_another_version(
    continued: Path, version: str, change: Callable[[dict[str, Any]], object], said: str
):
    edit(continued, lambda document: document.update(judged_by=version))
    edit(continued, change)
    (told,), notes = compare_kept(continued)
    assert told.startswith("results.json is of another run: ") and said in told and not notes


def test_a_key_that_is_there_twice_is_told(kduel, run: Path):
    """Of two values one was compared, and another program reads the other."""
    text = (run / RESULTS).read_text()
    (run / RESULTS).write_text(text.replace('"schema":', '"schema":7,"schema":', 1))
    assert "results.json cannot be read (it has the key 'schema' twice)" in compare_kept(run)[0][0]
    (run / RESULTS).rename(run.with_name("other.json"))
    done = kduel("verify", run, "--against", run.with_name("other.json"))
    assert done.returncode == 2 and "it has the key 'schema' twice" in done.stderr


@pytest.mark.parametrize("kept", [-1, 0])
def test_trials_that_were_removed_are_named_and_the_last_trace_of_them_is_kept(kduel, run: Path, kept: int):
    """The advice was to write results.json again, which then agreed."""
    names = sorted(path.name for path in (run / "trials").iterdir())
    for name in names[kept:]:
        shutil.rmtree(run / "trials" / name)
    done = kduel("verify", run)
    assert done.returncode == 1 and "1 change found:" in done.stdout
    assert all(f"trials/{name}" in done.stdout for name in names[kept:][:MOST_NAMED])
    assert "missing, which results.json has; restore the run from a copy" in " ".join(done.stdout.split())
    assert "kduel report" not in done.stdout


def test_a_page_of_an_interrupted_run_is_no_change(kduel, run: Path):
    """Ctrl-C, then `kduel report RUN -f html`: results.json was missed, though there had never been one."""
    (run / RESULTS).unlink()
    shutil.rmtree(sorted((run / "trials").iterdir())[-1])
    assert kduel("report", run, "-f", "html").returncode == 0
    changes, (note,) = compare_kept(run)
    assert not changes and note.startswith("results.json is missing: the run has") and "was interrupted" in note


@pytest.mark.parametrize("lost", ["lock.json", "plan.jsonl", "study.toml"])
def test_a_document_that_was_removed_is_missing_and_its_directory_still_a_run(kduel, run: Path, lost: str):
    """Without lock.json the status was 2, as for a wrong command line, and the advice to give another directory."""
    (run / lost).unlink()
    done = kduel("verify", run)
    assert done.returncode == 1 and lost in done.stdout and "Restore the run from a copy" in done.stdout, done.stderr
    for name in ("lock.json", "plan.jsonl"):
        (run / name).unlink(missing_ok=True)
    done = kduel("verify", run)
    assert done.returncode == 2 and "it has none of lock.json, import.json, merge.json" in done.stderr


def test_an_exact_part_that_was_removed_is_named(run: Path):
    edit(run, lambda document: document.update(exact={"metrics": []}))
    assert compare_kept(run) == (
        ["exact/ is missing, whose counts results.json has; restore the run from a copy"],
        [],
    )


def test_an_object_is_told_by_its_length(run: Path):
    edit(run, lambda document: document.update(machine=None))
    ((told,), _) = compare_kept(run)
    assert "machine is null, but the raw values give an object with " in told and "{" not in told


def test_a_benchmark_that_is_not_installed_here_is_no_change(run: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.path", [place for place in sys.path if not place.endswith("/site")])
    plugins.cache_clear()
    entry_points_by_group.cache_clear()
    changes, (note,) = compare_kept(run)
    assert not changes and "was not compared" in note and "'outside-letters'" in note


def test_an_explanation_is_added_later(run: Path):
    edit(run, lambda document: document.update(explanations=[{}]))
    assert compare_kept(run) == ([], [])


@pytest.mark.slow
def test_the_exact_part_has_results_of_its_own(unpack: Callable[[str], Path], counts_belong: None):
    run = unpack("qemu")
    part = shutil.copytree(unpack("icount"), run / EXACT)
    for path in (part, run):
        (path / RESULTS).write_bytes(msgspec.json.encode(judge_run(path)))
    assert CliRunner().invoke(verify, [str(run)]).exit_code == 0
    edit(part, lambda document: document["metrics"][0].update(verdict="slower"))
    done = CliRunner().invoke(verify, [str(run)])
    assert done.exit_code == 1 and "  exact: results.json: metrics[0].verdict is" in done.stdout


def test_what_is_said_of_them_fits_a_pipe_and_its_command_is_whole(run: Path):
    (run / RESULTS).write_bytes(b"{")
    lines = CliRunner().invoke(verify, [str(run)]).stdout.splitlines()
    command = f"`kduel report {run} -f json -o {run / RESULTS}`"
    assert any(command in line for line in lines), "to be pasted"
    assert max(len(line) for line in lines if command not in line) <= 100
    assert all(line.startswith("    ") for line in lines if line.split()[0] in ("writes", command.split()[0]))
