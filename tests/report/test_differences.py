"""Differences between the contenders, as the page has them."""

from __future__ import annotations

import re

from pages import in_turns

from kduel.core.results import Difference
from kduel.report import report_format
from kduel.report.content.environment import MOST_DIFFERENCES, difference_groups


def test_what_differs_in_the_same_way_is_one_row_the_rarest_first() -> None:
    results = in_turns()
    names = [contender.name for contender in results.contenders]
    values = [(None, "y"), ("250", "1000"), (None, "y"), ("y", None), (None, "None")]
    results.differences = [
        Difference(group="config", key=f"O{number}", values=dict(zip(names, found, strict=True)), declared=True)
        for number, found in enumerate(values)
    ]
    (group,) = difference_groups(results)
    assert [keys for keys, _ in group.rows] == [["O1"], ["O3"], ["O4"], ["O0", "O2"]]
    assert group.count == 5 and group.hidden == 0 and group.rows[-1][1] == {names[0]: None, names[1]: "y"}


def test_every_option_is_named_and_a_flood_is_counted() -> None:
    results = in_turns()
    page = report_format("html").render(results)
    assert all(f"{one.key}," in page or f"{one.key}<" in page for one in results.differences)
    results.differences *= 2
    (group,) = difference_groups(results)
    assert group.count == 1704 and group.hidden == 1704 - MOST_DIFFERENCES
    assert "config: 1704" in report_format("html").render(results)


def test_a_window_has_no_title_longer_than_seventy_characters() -> None:
    results = in_turns()
    results.study.title = "Scheduling on four exact CPUs: " + "wake-up latency, switches, fairness, " * 2
    (title,) = re.findall("<title>(.*)</title>", report_format("html").render(results))
    assert title.startswith("Scheduling on four exact CPUs: wake-up latency") and len(title) <= 70
