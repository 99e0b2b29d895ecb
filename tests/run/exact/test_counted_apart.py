"""When the machine icount counts user code and the kernel apart: where a benchmark asks for it, whatever its script says."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kduel.benchmarks.request import SHARES
from kduel.core.experiment import Contender
from kduel.guest.launch import Launch, Run
from kduel.machines import Outcome, Trial, icount
from kduel.machines.icount import IcountMachine, IcountSettings
from kduel.run.prepare import collect_needs, read_study
from kduel.study.file import parse_study
from kduel.study.load import assemble

STUDY = """
[study]
name = "apart"
[machine]
kind = "icount"
[[contender]]
kernel = ["one", "two"]
[[benchmark]]
use = "{use}"
{words}
"""


@pytest.mark.parametrize(
    ("use", "words", "asked"),
    [("request", 'application = "redis-get"', True), ("kbench", 'operation = "null-call"', False)],
)
def test_a_benchmark_asks_for_the_file_that_it_reads(use: str, words: str, asked: bool) -> None:
    text = STUDY.format(use=use, words=words)
    dress: Any = SimpleNamespace(add_needs=lambda needs: needs)
    needs = collect_needs(read_study(assemble(parse_study(text, "study"), text, "study")), dress)
    assert (SHARES in needs.trial_files) == asked


@pytest.mark.parametrize("shares", [True, False])
def test_the_words_of_a_script_do_not_matter(shares: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, given = object.__new__(IcountMachine), {}
    machine.settings = SimpleNamespace(cpus=1, boot_deadline=600, priority="high")  # type: ignore[assignment]
    machine.icount = IcountSettings()
    machine.plugin = machine.guard = tmp_path
    machine.shares, machine.root_at = shares, None

    def run(_machine: Any, _console: Path, how: Launch) -> Run:
        given.update(options=how.extra[-1], writes=list(how.writes.values()))
        return Run(results=tmp_path, ended="off", exit_status=0, stderr="")

    monkeypatch.setattr(icount, "run", run)
    for name, answer in (("boot_files", b""), ("describe", None), ("fixed_options", []), ("judge", Outcome())):
        monkeypatch.setattr(IcountMachine, name, lambda *_, answer=answer: answer)
    arm: Any = SimpleNamespace(contender=Contender(kernel="a"))
    script = "" if shares else '"$KDUEL_PROGRAMS/krequest" --of-the-user\n'
    machine.boot_now(Trial(id="1", arm=arm, script=script, deadline=1, into=tmp_path), "", {}, "no.")
    assert ("shares=" in given["options"], given["writes"]) == (shares, [tmp_path / SHARES] * shares)
