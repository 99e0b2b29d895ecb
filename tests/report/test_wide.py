"""The wide format: raw values as the appendix of a paper has them."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

from click.testing import CliRunner

from kduel.cli.report import command
from kduel.store.imported import Source, bring_in

PUBLISHED = Path(__file__).parents[2] / "studies" / "published"
FIRST, LAST = (
    ["3224.78", "6478.83", "269", "2", "10004.92", "10.0047", "470"],
    ["3221.58", "6473.31", "209", "2", "9997.6", "10.0085", "504"],
)
"""Lines of Tables II and III of the study of two generations."""


def written(path: Path) -> list[list[str]]:
    done = CliRunner().invoke(command, [str(path), "-f", "wide"], catch_exceptions=False)
    assert done.exit_code == 0
    return list(csv.reader(StringIO(done.output)))


def test_an_appendix_comes_back_as_it_was_printed(tmp_path: Path) -> None:
    heading, *lines = written(PUBLISHED / "generations.csv")
    assert heading[:3] == ["contender", "trial", "sysbench-cpu-1t/events_per_second [events/s: higher]"]
    assert lines[0] == ["linux-4.19.309", "1", *FIRST] and lines[-1] == ["linux-6.6.0", "10", *LAST]
    assert len(lines) == 20 and {len(line) for line in lines} == {9}
    (tmp_path / "again.csv").write_text("\n".join(map(",".join, [heading, *lines])) + "\n")
    bring_in([Source(tmp_path / "again.csv")], tmp_path / "run")
    assert written(tmp_path / "run")[1:] == lines, "and `kduel import` reads it"


def test_a_missing_value_is_empty() -> None:
    heading, *lines = written(PUBLISHED / "desktop.csv")
    boot = heading.index("boot/time [s: lower]")
    assert [line[boot] for line in lines] == ["55", "", "48.2", "47.6", "57.8", ""]


def test_each_condition_of_a_count_has_its_line(tmp_path: Path) -> None:
    lines = [
        f"{name},1,pipe,instructions,instructions,lower,{value},exact,{condition}\n"
        for name, values in (("old", (100, 104)), ("new", (90, 91)))
        for condition, value in zip(("plain", "shifted"), values, strict=True)
    ]
    path = tmp_path / "counts.csv"
    path.write_text("contender,trial,benchmark,metric,unit,better,value,kind,condition\n" + "".join(lines))
    heading, *found = written(path)
    assert heading == ["contender", "trial", "condition", "pipe/instructions [instructions: lower]"]
    assert found == [
        ["old", "1", "plain", "100"],
        ["old", "1", "shifted", "104"],
        ["new", "1", "plain", "90"],
        ["new", "1", "shifted", "91"],
    ]
