"""The report as one page that opens offline: verdicts first, then every value, the course of the run, and the methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

import msgspec

from kduel.core import format as amounts
from kduel.core.results import Results, TrialResult
from kduel.core.text import plural, visible
from kduel.core.version import full_version
from kduel.judge.verdict.headline import shows_difference, side
from kduel.report import DEFAULTS, Format, ReportOptions
from kduel.report.content.closing import EXACT_MEANS
from kduel.report.content.digest import SIGNS, digest, side_words
from kduel.report.content.environment import difference_groups, environment_rows
from kduel.report.content.host import drawn_figure
from kduel.report.content.machines import machine_tables, part_facts
from kduel.report.content.methods import methods
from kduel.report.content.notes import key
from kduel.report.content.reproduce import reproduction, shell_lines
from kduel.report.page.data import describe_plot, forest_pictures, has_forest, metric_groups, page_data
from kduel.report.page.factors import factors_part
from kduel.report.page.matrix import matrix_part
from kduel.report.page.tails import tails_part
from kduel.report.page.tradeoffs import MARKS, MARKS_TOLD, efficiency, tradeoffs_part
from kduel.report.plots import effects as plots
from kduel.report.plots.bundle import vega_script
from kduel.store.rundir import EXACT, PAGE

if TYPE_CHECKING:
    from jinja2 import Environment

NOTES_ABOVE = 2
"""Cautions and findings that stand above the plot of effects; the others are folded."""
OPEN_METRICS = 8
"""So many metrics are shown unfolded; a longer list starts folded, with only the decided primary ones open."""

PASTED = 100
"""Columns of the commands that a reader pastes into a shell."""


class HtmlFormat(Format):
    """One self-contained file."""

    name: ClassVar[str] = "html"
    summary: ClassVar[str] = "one page with plots that opens offline"
    suffix: ClassVar[str] = ".html"

    def render(self, results: Results, options: ReportOptions = DEFAULTS) -> str:
        environment = templates()
        said = digest(results)
        groups = metric_groups(results)
        matrix = matrix_part(results)
        tradeoffs = tradeoffs_part(results)
        factors = factors_part(results)
        tails = tails_part(results)
        data = page_data(results, groups, said) | {
            "matrix": matrix.specs if matrix else [],
            "tradeoffs": tradeoffs.specs if tradeoffs else [],
            "factors": factors.specs if factors else [],
            "tails": tails.specs if tails else [],
        }
        return environment.get_template("report.html").render(
            results=results,
            said=said,
            groups=groups,
            places={(group.first.benchmark, group.first.metric): group.number for group in groups},
            matrix=matrix,
            tradeoffs=tradeoffs,
            factors=factors,
            tails=tails,
            marks=MARKS,
            NOTES_ABOVE=NOTES_ABOVE,
            efficiency=efficiency,
            marks_told=MARKS_TOLD,
            imported=results.study.imported,
            exact=results.machine.exact,
            exact_page=f"{options.run}/{EXACT}/{PAGE}",
            exact_means=EXACT_MEANS,
            host_drawn=drawn_figure(results),
            delta=results.study.delta,
            open_all=len(groups) <= OPEN_METRICS,
            methods=methods(results),
            again=shell_lines(again, PASTED) if (again := reproduction(results)) else [],
            machine_tables=machine_tables(results),
            parts_facts=part_facts(results),
            explanations=explanations(results),
            differences=difference_groups(results),
            environment=environment_rows(results),
            names=[contender.name for contender in results.contenders],
            links=lambda trial: raw_links(trial, options.run),
            pictures=forest_pictures(said, results.study.delta),
            data=script_json(data),
            vega=script(vega_script()),
            version=full_version(),
        )


PLUGIN = HtmlFormat()


def templates() -> Environment:
    """Jinja that escapes all that it is given, after making hidden characters visible."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def make_visible(value: Any) -> Any:
        return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = Environment(
        loader=PackageLoader("kduel.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=make_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "signs": SIGNS,
        "key": key,
        "described": describe_plot,
        "has_forest": has_forest,
        "forest_metrics": plots.forest_metrics,
        "side": side,
        "sided": side_words,
        "decided": shows_difference,
        "plural": plural,
        "tone": plots.tone,
        "amount": amounts.amount,
        "difference": amounts.difference,
        "detectable": amounts.detectable,
        "effect": amounts.effect,
        "interval": amounts.interval_text,
        "mean_and_sd": amounts.mean_and_sd,
        "means": amounts.means,
        "percent": amounts.percent,
        "plain_number": amounts.plain_number,
        "MISSING": amounts.MISSING,
        "source": lambda name: Markup(environment.loader.get_source(environment, name)[0]),  # type: ignore[union-attr]
    }
    return environment


def explanations(results: Results) -> list[tuple[str, Any, str]]:
    """(heading, picture, table as text) of each explained metric; nothing for what is damaged."""
    from markupsafe import Markup

    from kduel.explain import flame, show
    from kduel.explain.compare import Explanation
    from kduel.explain.sharing import show as sharing
    from kduel.explain.sharing.compare import SharingExplanation

    found = []
    for raw in results.explanations:
        # The pictures escape every name themselves.
        try:
            if "rows" in raw and "kernels" in raw:
                lines = msgspec.convert(raw, SharingExplanation)
                names = ", ".join(arm.contender for arm in lines.kernels)
                heading = f"{lines.benchmark}: cache lines that CPUs share in {names}"
                found.append((heading, Markup(sharing.as_svg(lines)), sharing.as_text(lines)))
            else:
                one = msgspec.convert(raw, Explanation)
                heading = f"{one.benchmark}: {one.contender} against {one.baseline}"
                found.append((heading, Markup(flame.as_svg(one)), show.as_text(one)))
        except msgspec.ValidationError:
            continue
    return found


def script_json(value: Any) -> Any:
    """JSON that may stand in a script element: nothing in it can end the element or hide a character."""
    from markupsafe import Markup

    text = msgspec.json.encode(value).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def script(text: str) -> Any:
    """Our own script, as it is."""
    from markupsafe import Markup

    return Markup(text)


def raw_links(trial: TrialResult, run: str) -> list[tuple[str, str]]:
    """(words, relative URL) of a trial's raw files; none for a path that would lead out of the run."""
    path = trial.directory or ""
    if not path or path.startswith("/") or ".." in path.split("/"):
        return []
    base = f"{run}/{quote(path, safe='/')}"
    if not base.startswith("."):
        base = f"./{base}"
    files = [("all files", f"{base}/"), ("console", f"{base}/console.log"), ("script", f"{base}/guest.sh")]
    return files if trial.status == "void" else [*files, ("environment", f"{base}/environment.json")]
