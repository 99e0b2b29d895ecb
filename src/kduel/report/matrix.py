"""A matrix in plain text: one table a family, the verdicts by cell, the growth, the advice."""

import textwrap
from typing import ClassVar

from kduel.analysis.matrix import advise, shape
from kduel.core.results import Results
from kduel.report import DEFAULTS, Format, ReportOptions
from kduel.report.content.answer import answer
from kduel.report.content.closing import with_command
from kduel.report.content.digest import digest
from kduel.report.content.evidence import evidence
from kduel.report.content.matrixtext import advice_lines, matrix_parts

WIDTH = 100


class MatrixFormat(Format):
    name: ClassVar[str] = "matrix"
    summary: ClassVar[str] = "cells, verdicts of contenders that differ in one property, growth, advice; plain text"
    suffix: ClassVar[str] = ".matrix.txt"

    def render(self, results: Results, options: ReportOptions = DEFAULTS) -> str:
        matrix, advice = shape(results), advise(results)
        said = digest(results)
        found = answer(results)
        parts = [said.title, " · ".join(said.facts), textwrap.fill(found.text, WIDTH)]
        parts.append("\n".join(with_command(found.step, found.command, WIDTH)))
        if matrix is None:
            parts.append("This run is no matrix: no two of its benchmarks differ in one number only.")
        else:
            parts += matrix_parts(matrix, results)
        if advice:
            parts.append("Advice by use: each sentence rests on the verdicts that it names")
            parts.append("\n".join(f"  - {line}" for line in advice_lines(advice)))
        parts += [
            "How sure",
            *(
                f"  {line}"
                for line in (
                    matrix and evidence(results).cells(len(matrix.judged), matrix.apart, matrix.hints),
                    *said.caveats,
                )
                if line
            ),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"


PLUGIN = MatrixFormat()
