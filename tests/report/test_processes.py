"""Each process of a kload step as a line: where it began and ended, the first at the top."""

from __future__ import annotations

import re

from examples import simulated

from kduel.report.page.processes import process_panels, processes_chart
from kduel.report.plots.draw import Scale


def test_a_line_goes_from_a_processs_start_to_its_end() -> None:
    rows = [[0, 500_000, 0, 0, 0, 0], [250_000, 1_000_000, 0, 0, 0, 0]]
    drawn = processes_chart(rows, Scale(low=0, high=1.0), 1)
    assert 'class="process arm1 few"' in drawn
    assert re.findall(r"M(\d+) (\d+)h(\d+)", drawn) == [("0", "250", "500"), ("250", "750", "750")]
    assert " few" not in processes_chart(rows * 30, Scale(low=0, high=1.0), 1)


def test_without_the_runs_directory_there_is_no_chart() -> None:
    assert process_panels(None, simulated()) == []
