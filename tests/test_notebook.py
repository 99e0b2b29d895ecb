"""The Python interface, as a script and a notebook use it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import kduel
from kduel.core.errors import InputError
from kduel.judge.evaluate import judge_run
from kduel.notebook import VALUE_COLUMNS, VEGA_LITE, VERDICT_COLUMNS

DOCS = Path(__file__).parents[1] / "docs/notebooks.md"


def examples() -> list[str]:
    """Python code blocks of the documentation, in their order."""
    blocks = DOCS.read_text("utf-8").split("```python\n")[1:]
    return [block.split("```")[0] for block in blocks]


def test_results_are_those_of_the_report(unpack: Callable[[str], Path]) -> None:
    run = unpack("qemu")
    loaded = kduel.load(run)
    assert loaded.results == judge_run(run)
    assert repr(loaded) == "\n".join(headline.text for headline in loaded.results.headlines)
    assert loaded.results.headlines[0].text.split()[0] in loaded.to_text()


@pytest.mark.slow
def test_a_frame_has_each_value_once_and_none_that_is_missing(unpack: Callable[[str], Path]) -> None:
    loaded = kduel.load(unpack("qemu"))
    frame = loaded.to_frame()
    assert tuple(frame.columns) == VALUE_COLUMNS
    assert not frame.duplicated(list(VALUE_COLUMNS[:-1])).any()
    expected = {
        (m.benchmark, m.metric, name, block, value)
        for m in loaded.metrics
        for name, column in m.values.items()
        for block, value in zip(loaded.results.blocks, column, strict=True)
        if value is not None
    }
    seen = set(frame[["benchmark", "metric", "contender", "block", "value"]].itertuples(index=False, name=None))
    assert seen == expected
    assert expected


def test_verdicts_are_the_words_of_the_report(unpack: Callable[[str], Path]) -> None:
    loaded = kduel.load(unpack("icount"))
    frame = loaded.verdicts_frame()
    assert tuple(frame.columns) == VERDICT_COLUMNS
    assert list(frame["verdict"]) == [metric.word for metric in loaded.metrics]


@pytest.mark.parametrize("kind", ["qemu", "imported"])
def test_plots_hold_the_values_that_they_show(unpack: Callable[[str], Path], kind: str) -> None:
    loaded = kduel.load(unpack(kind))
    metric = loaded.metrics[0]
    strip = loaded.strip(metric.benchmark, metric.metric)
    drawn = [row["v"] for row in strip.spec["data"]["values"]]
    assert drawn == [value for column in metric.values.values() for value in column if value is not None]
    assert loaded.strip(metric.benchmark).to_svg().startswith("<svg")
    with_interval = [m for m in loaded.metrics if m.ci_low_pct is not None]
    if with_interval:
        rows = loaded.forest().spec["data"]["values"]
        assert [row["effect"] for row in rows] == [m.effect_pct for m in with_interval]
    else:
        with pytest.raises(InputError, match="interval"):
            loaded.forest()


def test_a_forest_holds_all_metrics_of_its_contender_however_many_others_have(tmp_path: Path) -> None:
    """Four times 12 are more than a forest draws; 12 are not."""
    table = tmp_path / "wide.csv"
    lines = [
        f"{name},{trial},b,m{metric},ms,lower,{100 + shift + (trial * 7 + metric * 3) % 5}"
        for shift, name in enumerate(("base", "one", "two", "three", "four"))
        for trial in range(6)
        for metric in range(12)
    ]
    table.write_text("contender,trial,benchmark,metric,unit,better,value\n" + "\n".join(lines) + "\n")
    loaded = kduel.load(table)
    for name, drawn in (("one", loaded.forest()), ("three", loaded.forest("three"))):
        assert [row["effect"] for row in drawn.spec["data"]["values"]] == [
            m.effect_pct for m in loaded.metrics if m.contender == name
        ]
        assert drawn.spec["title"] == f"{name} against base"


def test_a_path_that_the_system_refuses_is_an_error_of_input() -> None:
    with pytest.raises(InputError, match="File name too long"):
        kduel.load("x" * 5000)
    with pytest.raises(InputError, match="is empty"):
        kduel.load("")


def test_a_metric_that_is_not_there_names_those_that_are(unpack: Callable[[str], Path]) -> None:
    loaded = kduel.load(unpack("qemu"))
    known = loaded.metrics[0]
    assert loaded.metric(known.benchmark, known.metric, known.contender) is known
    with pytest.raises(InputError) as error:
        loaded.metric("no-such")
    assert known.benchmark in str(error.value) + str(error.value.remedy)
    with pytest.raises(InputError, match="no contender no-such") as error:
        loaded.forest("no-such")
    assert known.contender in str(error.value.remedy)


@pytest.mark.slow
def test_the_documented_notebook_runs_in_a_real_kernel(unpack: Callable[[str], Path], tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    run = unpack("qemu")
    cells = [nbformat.v4.new_code_cell(code.replace("RUN", str(run))) for code in examples()]
    notebook = nbformat.v4.new_notebook(cells=cells)
    environment = os.environ | {"PYTHONPATH": str(DOCS.parents[1] / "src"), "IPYTHONDIR": str(tmp_path)}
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute(env=environment)
    shown = [output.data for cell in notebook.cells for output in cell.outputs if "data" in output]
    assert len(cells) >= 4
    assert any("text/html" in data for data in shown), "a table"
    plots = [data for data in shown if VEGA_LITE in data]
    assert len(plots) == 2
    assert all("<svg" in data["image/svg+xml"] for data in plots)
