"""What `kduel explain` answers to words that it cannot use, and to those that ask for help."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from click.testing import CliRunner

from kduel.benchmarks.request import APPLICATIONS
from kduel.benchmarks.support.operations import ABOUT
from kduel.cli.explain import command, find_in_modules, not_executed_error
from kduel.core.errors import HostError, InputError
from kduel.explain.compare import Explanation
from kduel.run.exact.subject import Subject, check_operation
from kduel.run.prepare import Ready
from kduel.store.rundir import RunDir


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--annotate", "f", "--format", "json"], "--annotate prints"),
        (["--annotate", "f", "--plot", "x.svg"], "--annotate prints"),
        (["--blocks", "8"], "--blocks belongs to a timed RUN"),
        (["--frequency", "499"], "--frequency belongs to a timed RUN"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        command.main(["debian:6.1", "debian:6.12", "-b", "pipe", *words], standalone_mode=False)


def test_a_function_that_is_not_executed_is_refused_before_another_trial_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After `kduel explain A B -b pipe` it is known; `--annotate` of a misspelt name counted a minute before it said so."""
    made: list[bool] = []

    def count(*_: object, disassemble: bool = False, **__: object) -> list[object]:
        made.append(disassemble)
        return []

    ready = SimpleNamespace(study=SimpleNamespace(steps=[SimpleNamespace(label="pipe")], machine_settings={}))
    chosen = SimpleNamespace(ready=ready, names=("a", "b"), seed=0, check=lambda *_: None)
    rows = [SimpleNamespace(function="pipe_write")]
    monkeypatch.setattr("kduel.run.exact.subject.find_subject", lambda *_, **__: chosen)
    for name, value in {
        "count_arms": count, "are_counted": lambda *_, **__: True, "step_index": lambda *_: 0,
        "is_boot": lambda *_: False, "explain_step": lambda *_: SimpleNamespace(rows=rows),
    }.items():  # fmt: skip
        monkeypatch.setattr(f"kduel.run.exact.measure.{name}", value)
    done = CliRunner().invoke(command, ["a", "b", "-b", "pipe", "--annotate", "pipe_wirte"])
    assert isinstance(done.exception, InputError) and "Names like it: pipe_write" in (done.exception.remedy or "")
    assert made == [False], "from the cache, and nothing else"


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_cannot_be_kept_in_the_run_is_shown_nevertheless(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: str
) -> None:
    """A run of somebody else's was counted for a minute, and then there was only an error."""

    def write_whole(*_: object) -> None:
        raise HostError("cannot write to RUN/explain: Read-only file system", "`kduel resume RUN` goes on.")

    monkeypatch.setattr("kduel.run.exact.subject.write_whole", write_whole)
    subject = Subject(ready=cast("Ready", None), names=("a", "b"), run=cast("RunDir", SimpleNamespace(path=tmp_path)))
    chosen = SimpleNamespace(
        ready=SimpleNamespace(study=SimpleNamespace(machine_settings={})),
        names=("a", "b"),
        seed=0,
        check=lambda *_: None,
        keep=subject.keep,
        blocks=lambda _: 3,
    )
    found = Explanation(benchmark="pipe", baseline="a", contender="b", operations=1, rows=[])
    monkeypatch.setattr("kduel.run.exact.subject.find_subject", lambda *_, **__: chosen)
    monkeypatch.setattr("kduel.run.exact.measure.explain_step", lambda *_: found)
    for name in ("count_arms", "step_index"):
        monkeypatch.setattr(f"kduel.run.exact.measure.{name}", lambda *_, **__: None)
    monkeypatch.setattr("kduel.run.exact.measure.is_boot", lambda *_: False)
    monkeypatch.setattr("kduel.explain.show.as_text", lambda found, *_: f"{found.blocks} blocks")
    monkeypatch.setattr("kduel.explain.show.next_command", lambda *_: "")
    done = CliRunner().invoke(command, ["RUN", "-b", "pipe", "-f", form])
    assert done.exit_code == 0, done.exception
    assert (json.loads(done.stdout)["blocks"] if form == "json" else done.stdout.strip()) in (3, "3 blocks")
    said = " ".join(done.stderr.split())
    assert "cannot write to RUN/explain: Read-only file system" in said
    assert "not kept" in said and "resume" not in said


def test_help_lists_the_operations_with_what_they_do() -> None:
    done = CliRunner().invoke(command, ["a", "b", "-b", "help"])
    assert done.exit_code == 0
    lines = [line.split(maxsplit=1) for line in done.output.splitlines() if line.startswith("  ")]
    requests = {name: f"one request: {one.about}" for name, one in APPLICATIONS.items()}
    assert {name: about for name, about in lines if name != "boot"} == {
        name: about for name, about in ABOUT.items() if name != "empty"
    } | requests
    assert "2 GB" in dict(lines)["boot"]  # type: ignore[arg-type]


def test_a_misspelt_operation_is_answered_with_the_likely_one() -> None:
    with pytest.raises(InputError) as raised:
        check_operation("nul-call")
    assert (raised.value.remedy or "").startswith("Did you mean null-call? There are: boot, ")
    with pytest.raises(InputError) as raised:
        check_operation("qqq")
    assert (raised.value.remedy or "").startswith("There are: ")


def test_a_directory_that_does_not_exist_is_named(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, [str(tmp_path / "nosuch"), "-b", "pipe"])
    assert (
        isinstance(done.exception, InputError)
        and f"there is no directory {tmp_path}/nosuch" in done.exception.message
    )
    done = CliRunner().invoke(command, [str(tmp_path), "-b", "pipe"])
    assert isinstance(done.exception, InputError) and "is not a run of KDuel" in done.exception.message
    (tmp_path / "lock.json").touch()
    done = CliRunner().invoke(command, [str(tmp_path), str(tmp_path), "-b", "pipe"])
    assert isinstance(done.exception, InputError) and "takes one run" in done.exception.message


def test_a_function_that_is_not_executed_is_an_error_that_names_the_likely_one() -> None:
    error = not_executed_error("pipe_wirte", "pipe", ["pipe_write", "pipe_read", "schedule", "(no symbol)"])
    assert "pipe executes no function 'pipe_wirte'" in error.message
    assert "Names like it: pipe_write" in error.remedy and "schedule" not in error.remedy
    assert "Names like it" not in not_executed_error("x", "pipe", ["pipe_write"]).remedy
    several = not_executed_error("nft_do_chan", "netfilter-100", ["nft_do_chain [nf_tables]"] * 2)
    assert several.remedy.count("nft_do_chain") == 1


def test_a_modules_function_is_found_without_the_module() -> None:
    executed = [
        "nft_do_chain [nf_tables]",
        "nft_do_chain_ipv4 [nf_tables]",
        "nft_do_chain [nf_tables]",
        "f [a]",
        "f [b]",
    ]
    assert find_in_modules("nft_do_chain", executed) == "nft_do_chain [nf_tables]"
    assert find_in_modules("nft_do", executed) == find_in_modules("f", executed) == ""
