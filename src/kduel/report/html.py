"""The report as one page that opens offline: verdicts first, then every value, the course of the run, and the methods."""

import itertools
import re
from collections.abc import Sequence
from typing import Any, ClassVar
from urllib.parse import quote

import msgspec

from kduel.core.results import Results, TrialResult
from kduel.report import DEFAULTS, Format, ReportOptions
from kduel.report.content.answer import answer
from kduel.report.content.closing import EXACT_MEANS
from kduel.report.content.digest import Digest, digest
from kduel.report.content.environment import difference_groups, environment_rows
from kduel.report.content.host import drawn_figure
from kduel.report.content.machines import machine_tables
from kduel.report.content.methods import methods
from kduel.report.content.notes import Note, key
from kduel.report.content.ranking import RANKING_MEANS, ranking_rows, ranking_title
from kduel.report.content.reproduce import reproduction, shell_lines
from kduel.report.content.scheduling import counter_tables
from kduel.report.page.charts import Charts, metric_groups
from kduel.report.page.factors import factors_part
from kduel.report.page.figures import every_value, further_figures
from kduel.report.page.glossary import link_terms
from kduel.report.page.matrix import matrix_part
from kduel.report.page.picture import picture_part
from kduel.report.page.processes import process_panels
from kduel.report.page.render import render_page
from kduel.report.page.tails import tails_part
from kduel.report.page.tradeoffs import MARKS, MARKS_TOLD, efficiency, tradeoffs_part
from kduel.report.plots.trials import LONG, WORSE
from kduel.store.rundir import EXACT, PAGE

MOST_COMPARED = 2
"""Comparisons whose tables are open; where there are more, or a matrix says it in one table, all are folded."""
MOST_METRICS = 24
"""Metrics whose values are listed; the others are folded."""
MOST_VALUES = 6000
"""Values that are tables as well as charts: a page of a longer run would be too large to send."""
OPEN_METRICS = 2
"""So many metrics are shown unfolded; a longer list starts folded."""

INDENTED = re.compile(r"\n\s+(?=<)")
"""Before a tag it only makes the page larger: text is escaped, so that no line of it begins with one."""
AGAIN = "Or remove the file, and count again: kduel explain RUN -b NAME."
PASTED = 100
"""Columns of the commands that a reader pastes into a shell."""


class HtmlFormat(Format):
    name: ClassVar[str] = "html"
    summary: ClassVar[str] = "one page with plots that opens offline"
    suffix: ClassVar[str] = ".html"

    def render(self, results: Results, options: ReportOptions = DEFAULTS) -> str:
        said = digest(results)
        groups = metric_groups(results)
        matrix = matrix_part(results)
        machines = machine_tables(results)
        charts = Charts(results)
        page = render_page(
            "report.html", results=results, said=said, answer=answer(results), groups=groups,
            places={(group.first.benchmark, group.first.metric): group.number for group in groups}, matrix=matrix,
            turns=charts.turns_apart(groups), processes=process_panels(options.directory, results),
            tradeoffs=tradeoffs_part(results), factors=factors_part(results), tails=tails_part(results),
            counters=counter_tables(results),
            rankings=[(ranking_title(one), ranking_rows(one)) for one in results.rankings],
            ranking_means=RANKING_MEANS, marks=MARKS,
            picture=None if matrix and matrix.leads else picture_part(results, said), remarks=remarks(said, results),
            efficiency=efficiency, marks_told=MARKS_TOLD,
            folds_verdicts=bool(matrix and matrix.leads) or len(said.comparisons) > MOST_COMPARED,
            exact_page=f"{options.run}/{EXACT}/{PAGE}", exact_means=EXACT_MEANS, host_drawn=drawn_figure(results),
            delta=results.study.delta, MOST_METRICS=MOST_METRICS, open_all=len(groups) <= OPEN_METRICS,
            contradicted=any(row.note.startswith("contradicts") for one in machines for row in one.rows),
            methods=methods(results), again=shell_lines(again, PASTED) if (again := reproduction(results)) else [],
            machine_tables=machines, explanations=explanations(results),
            lost=sum("unreadable" in one for one in results.explanations), differences=difference_groups(results),
            environment=environment_rows(results), names=[contender.name for contender in results.contenders],
            links=lambda trial: raw_links(trial, options.run), charts=charts,
            every=every_value(results, groups, MOST_VALUES), further=further_figures(groups),
            worse_steps=step_words(WORSE, "worse by "), long_steps=step_words(LONG, "waited "),
        )  # fmt: skip
        return link_terms(INDENTED.sub("\n", page))


PLUGIN = HtmlFormat()


def explanations(results: Results) -> list[tuple[str, Any, str]]:
    """(heading, picture, table as text) of each explained metric; of a file that cannot be read the reason and the remedy."""
    from markupsafe import Markup

    from kduel.explain import flame, show
    from kduel.explain.compare import Explanation
    from kduel.explain.sharing import show as sharing
    from kduel.explain.sharing.compare import SharingExplanation

    found = []
    for raw in results.explanations:
        # The pictures escape every name themselves.
        if "unreadable" in raw:
            found.append((f"{raw['unreadable']} cannot be shown", "", f"{raw['why']}\n{AGAIN}"))
        elif "rows" in raw and "kernels" in raw:
            lines = msgspec.convert(raw, SharingExplanation)
            names = ", ".join(arm.contender for arm in lines.kernels)
            heading = f"{lines.benchmark}: cache lines that CPUs share in {names}"
            found.append((heading, Markup(sharing.as_svg(lines)), sharing.as_text(lines)))
        else:
            one = msgspec.convert(raw, Explanation)
            heading = f"{one.benchmark}: {one.contender} against {one.baseline}"
            found.append((heading, Markup(flame.as_svg(one)), show.as_text(one)))
    return found


def step_words(steps: Sequence[float], before: str) -> list[str]:
    """Ranges of per cent between the steps, in words."""
    middle = [f"{low:g} to {high:g}" for low, high in itertools.pairwise(steps)]
    return [f"{before}less than {steps[0]:g} %", *(f"{words} %" for words in middle), f"{steps[-1]:g} % or more"]


def raw_links(trial: TrialResult, run: str) -> list[tuple[str, str]]:
    """(words, relative URL) of a trial's raw files; none for a path that would lead out of the run."""
    path = trial.directory or ""
    if not path or path.startswith("/") or ".." in path.split("/"):
        return []
    base = f"{run}/{quote(path, safe='/')}"
    if not base.startswith("."):
        base = f"./{base}"
    return [("all files", f"{base}/"), ("console", f"{base}/console.log")]


MOST_FIRST = 3
Remark = str | Note


def remarks(said: Digest, results: Results) -> tuple[list[Remark], list[Remark]]:
    """The first caution, then findings on the run and on metrics that decide by their weight, then further cautions; and the rest."""
    gating = {key(metric) for metric in results.gating}
    weighty = [note for note in said.notes.notes if not note.touches or gating.intersection(note.touches)]
    light = [note for note in said.notes.notes if note not in weighty]
    ordered: list[Remark] = [*said.own_caveats[:1], *weighty, *said.own_caveats[1:], *light]
    return ordered[:MOST_FIRST], ordered[MOST_FIRST:]
