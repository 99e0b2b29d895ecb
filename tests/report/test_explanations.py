"""Explanations that a run keeps, on its page: one that cannot be read is named with a remedy, and hides nothing else."""

from __future__ import annotations

import html
from pathlib import Path

import pytest
from made_runs import make_run

from kduel.judge.evaluate import judge_run
from kduel.report import report_format


@pytest.mark.parametrize(("data", "why"), [("{", "Input data was truncated"), ('{"schema": 99}', "schema 99")])
@pytest.mark.parametrize("name", ["pipe.new", "pipe.new.sharing"])
def test_one_that_cannot_be_read_is_named_with_its_remedy(tmp_path: Path, name: str, data: str, why: str) -> None:
    run = make_run(tmp_path / "run", 5.0)
    (run / "explain").mkdir()
    (run / f"explain/{name}.json").write_text(data)
    page = html.unescape(report_format("html").render(judge_run(run)))
    said = page[page.index("Where the differences come from: 1 kept explanation cannot be shown") :]
    assert said.index(f"explain/{name}.json cannot be shown") < said.index(why)
    assert "kduel explain RUN -b NAME" in said and str(tmp_path) not in page
    assert "is slower than" in page
