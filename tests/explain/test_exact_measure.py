"""From a counted trial to an explanation, with real counts of a null call in two Debian kernels."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kduel.core.errors import NotMeasuredError
from kduel.explain.flame import as_svg
from kduel.explain.profile import read_dump
from kduel.explain.show import as_text
from kduel.explain.symbols import Symbols
from kduel.run.exact.measure import CountedTrial, annotate_function, explain_step
from kduel.run.exact.subject import KBENCH, STUDY, operation_study, remedy_for_change
from kduel.study.contenders import contender_tables
from kduel.study.file import parse_study
from kduel.study.load import assemble

DATA = Path(__file__).parent / "data"
READY: Any = SimpleNamespace(
    study=operation_study(["debian:6.1", "debian:6.12"], "null-call"),
    machine=SimpleNamespace(facts={"qemu": "7.2.22 (Debian 1:7.2+dfsg-7)"}),
)


def counted(version: str, into: Path, hops: int = 1, status: int = 0) -> CountedTrial:
    """As a trial left it."""
    step = into / version / "trial" / "01-null-call"
    step.mkdir(parents=True)
    line = json.loads((DATA / f"null-call-{version}.stdout").read_text()) | {"hops": hops}
    (step / "stdout").write_text(json.dumps(line))
    (step / "stderr").write_text("no such thing")
    (step / "exit.json").write_text(json.dumps({"status": status, "seconds": 0.1, "started": 4.0}))
    shutil.copy(DATA / f"null-call-{version}.counts", into / version / "counts")
    return CountedTrial(
        name=version,
        release=f"{version}.0-cloud",
        directory=into / version,
        dump=read_dump(into / version / "counts"),
        symbols=Symbols.read(DATA / f"null-call-{version}.kallsyms"),
    )


def test_an_operation_of_several_hops_is_told_by_the_hop_as_in_a_run(tmp_path: Path) -> None:
    arms = [counted(version, tmp_path, hops=8) for version in ("6.1", "6.12")]
    found = explain_step(READY, arms, 0)
    assert found.operations == 8000
    assert found.total() == (387_000, 382_000)
    assert "Counted by QEMU 7.2.22; 6.1 is 6.1.0-cloud, 6.12 is 6.12.0-cloud." in as_text(found)
    assert "QEMU 7.2.22; 6.1 is 6.1.0-cloud" in as_svg(found)
    assert annotate_function(arms[0], 0, "null-call", "__do_sys_getppid")[0] == 8000


def test_a_step_that_failed_is_no_count(tmp_path: Path) -> None:
    arms = [counted("6.1", tmp_path), counted("6.12", tmp_path, status=1)]
    with pytest.raises(
        NotMeasuredError, match=r"6\.12 could not run null-call: it ended with status 1: no such thing"
    ):
        explain_step(READY, arms, 0)


def test_what_to_do_where_a_run_cannot_be_explained_as_it_was_measured_can_be_typed() -> None:
    text = STUDY + contender_tables(["debian:6.1", "./my kernel/bzImage", "debian:6.12"], False)
    told = remedy_for_change(
        assemble(parse_study(text + KBENCH.format(operation='"pipe"'), "explain"), text, "explain"), "debian-6.12"
    )
    assert "kduel explain debian:6.1 debian:6.12 --benchmark NAME" in told
    assert "--out" not in told, "explain has no such option"
