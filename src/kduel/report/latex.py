"""LaTeX tables for a paper: \\input the file; the preamble needs booktabs and graphicx, and longtable for long ones."""

import re
from typing import ClassVar

from kduel.core.format import arms, effect, interval_text, shown_unit
from kduel.core.metric_results import MetricResult
from kduel.core.results import Results
from kduel.core.text import visible
from kduel.judge.verdict.headline import shows_difference
from kduel.report import DEFAULTS, Format, ReportOptions
from kduel.report.content.answer import answer
from kduel.report.content.digest import ContenderSummary, Digest, digest

LONG = 60
"""More lines than this do not fit a page."""

SPECIAL = {c: f"\\{c}" for c in "{}$&#%_"} | {
    "\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}", "–": r"\textendash{}", "−": r"\(-\)", "±": r"\(\pm\)", "·": r"\(\cdot\)",
    "µ": r"\(\mu\)", "μ": r"\(\mu\)", "≈": r"\(\approx\)", "≠": r"\(\neq\)",
}  # fmt: skip
GAP = r"@{\hspace{.6em}}"
REST = rf"{GAP}l{GAP}r{GAP}r{GAP}r{GAP}r@{{}}"
COLUMNS, BROKEN = f"@{{}}l{REST}", rf"@{{}}p{{.2\linewidth}}{REST}"
"""Of a float, which is made to fit, and of a longtable, whose names are broken."""
FITTED = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{"
"""Makes what follows smaller where it is wider than a line (graphicx)."""
ARROWS = {"higher": r"\(\uparrow\)", "lower": r"\(\downarrow\)", "none": ""}
LIGATURES = re.compile(r"([-,!?])(?=[-,`])")
"""What TeX would draw as another character: -- and the like."""


class LatexFormat(Format):
    """A booktabs table per comparison, with its headline as the caption and its notes below."""

    name: ClassVar[str] = "latex"
    summary: ClassVar[str] = "booktabs tables to \\input into a paper"
    suffix: ClassVar[str] = ".tex"

    def render(self, results: Results, options: ReportOptions = DEFAULTS) -> str:
        said = digest(results)
        parts = [
            "% Written by kduel report. Preamble: \\usepackage[T1]{fontenc}, textcomp, booktabs, graphicx, longtable.",
            breakable(answer(results).text),
        ]
        compared = [one for one in said.comparisons if one.gating]
        parts += [escape_latex(one.headline) + "." for one in said.comparisons if not one.gating]
        for number, comparison in enumerate(compared, 1):
            parts.append(table(comparison, said, number, notes(said) if number == len(compared) else ""))
        if not compared:
            parts.append(notes(said))
        parts += [figure(path, caption) for path, caption in options.figures.items()]
        return "\n\n".join(part for part in parts if part) + "\n"


PLUGIN = LatexFormat()


def figure(path: str, caption: str) -> str:
    """A figure that was drawn to a file; its label is the file's name."""
    name = re.sub(r"[^A-Za-z0-9.-]", "-", path.rsplit("/", 1)[-1].rsplit(".", 1)[0])
    drawn = rf"\includegraphics[width=\linewidth]{{{path}}}"
    below = rf"\caption{{{escape_latex(caption)}}}\label{{fig:kduel-{name}}}"
    return "\n".join([r"\begin{figure}", r"\centering", drawn, below, r"\end{figure}"])


def table(comparison: ContenderSummary, said: Digest, number: int, below: str) -> str:
    """The table of one comparison with what stands below it: a float, or a longtable where it does not fit a page."""
    rows: list[str] = []
    for heading, metrics in (("primary", comparison.primary), ("exploratory", comparison.exploratory)):
        if metrics and comparison.primary and comparison.exploratory:
            if rows:
                rows.append(r"\addlinespace")
            rows.append(rf"\multicolumn{{6}}{{l}}{{\emph{{{heading}}}}} \\")
        rows += [row(metric, said) for metric in metrics]
    caption = escape_latex(f"{comparison.headline}. {said.sure} An arrow points to the better side.")
    head = rf"metric & verdict & change & {escape_latex(comparison.baseline)} & {escape_latex(comparison.contender)} & $n$ \\"
    label = rf"\label{{tab:kduel-{number}}}"
    if 2 * len(rows) > LONG:
        begin = [r"{\scriptsize", rf"\begin{{longtable}}{{{BROKEN}}}", rf"\caption{{{caption}}}{label} \\"]
        repeated, end = [r"\endhead"], [r"\end{longtable}", "}", below]
    else:
        begin = [r"\begin{table}", r"\centering\footnotesize", rf"\caption{{{caption}}}{label}"]
        begin.append(FITTED + rf"\begin{{tabular}}{{{COLUMNS}}}")
        repeated, end = [], [r"\end{tabular}}", below, r"\end{table}"]
    return "\n".join([*begin, r"\toprule", head, r"\midrule", *repeated, *rows, r"\bottomrule", *end])


def row(metric: MetricResult, said: Digest) -> str:
    """A metric in two lines of a column: benchmark, change, means; metric, interval, SDs. Notes are superscripts."""
    verdict = rf"\textbf{{{metric.word}}}" if shows_difference(metric) else metric.word
    size = rf"\emph{{{metric.size}}}" if metric.size else ""
    marks = ",".join(str(number) for number in said.notes.marks_of(metric))
    name = breakable(visible(metric.metric, 200))
    unit = escape_latex(visible(shown_unit(metric), 40)) + ARROWS[metric.better]
    (before, before_sd), (after, after_sd) = arms(metric)
    verdict += rf"\textsuperscript{{{marks}}}" if marks else ""
    benchmark, numbers = breakable(visible(metric.benchmark, 200)), (effect(metric), before, after)
    upper = (benchmark, verdict, *map(escape_latex, numbers), str(metric.n))
    bounds = escape_latex(interval_text(metric))
    lower = (rf"\quad {name}" + (f" ({unit})" if unit else ""), size, bounds, spread(before_sd), spread(after_sd), "")
    return rf"{' & '.join(upper)} \\*" + "\n" + rf"{' & '.join(lower)} \\"


def spread(sd: str) -> str:
    return escape_latex(f"± {sd}") if sd else ""


def notes(said: Digest) -> str:
    # A table in a paper has a footnote for every mark.
    lines = [rf"\textsuperscript{{{note.number}}} {breakable(note.sentence)}" for note in said.notes.notes]
    lines += [breakable(sentence) for sentence in [*said.caveats, *said.measured]]
    return "{\\footnotesize\\raggedright\n" + "\n\n".join(lines) + "\n\n}" if lines else ""


def breakable(text: str) -> str:
    """Text whose long names may be broken behind a slash, an underscore or a hyphen."""
    return re.sub(r"(\\_|/|(?<=\w)-(?=\w))", r"\1\\allowbreak{}", escape_latex(text))


def escape_latex(text: str) -> str:
    """Text in which nothing is a command; letters that pdflatex may lack are named by their code."""
    plain = "".join(SPECIAL.get(c, c if c.isascii() else f"[U+{ord(c):04X}]") for c in text)
    return LIGATURES.sub(r"\1{}", plain)
