"""Every trial on one line, with a column for each metric: the raw values as an appendix prints them."""

import csv
from io import StringIO
from typing import ClassVar

from kduel.core.results import Results
from kduel.report import DEFAULTS, Format, ReportOptions
from kduel.report.csv import rows


class WideFormat(Format):
    """`trial` is the block. A missing value is empty. Where anything was counted under several conditions, each has a line."""

    name: ClassVar[str] = "wide"
    summary: ClassVar[str] = "every value, one trial a line, one column a metric"
    suffix: ClassVar[str] = ".csv"

    def render(self, results: Results, options: ReportOptions = DEFAULTS) -> str:
        columns: dict[str, None] = {}
        table: dict[tuple[str, str, str], dict[str, str]] = {}
        for contender, trial, benchmark, metric, unit, better, value, _, _, condition, _ in rows(results):
            heading = f"{benchmark}/{metric} [{unit}: {better}]"
            columns[heading] = None
            table.setdefault((contender, trial, condition), {})[heading] = value
        conditions = any(condition for _, _, condition in table)
        out = StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(("contender", "trial", *["condition"] * conditions, *columns))
        for (contender, trial, condition), values in table.items():
            writer.writerow(
                (contender, trial, *[condition] * conditions, *(values.get(heading, "") for heading in columns))
            )
        return out.getvalue()


PLUGIN = WideFormat()
