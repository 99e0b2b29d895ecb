"""The pages of the site: all runs, each pair of contenders, each benchmark over time, the matrix, the machines."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kduel.analysis.campaigns.contrasts import FEWEST
from kduel.analysis.campaigns.history import MetricHistory
from kduel.analysis.index import run_query
from kduel.analysis.indexed import indexed_history
from kduel.core.format import with_sign
from kduel.core.text import plural
from kduel.report.campaigns.history import change
from kduel.report.content.counted import PART
from kduel.report.site import answer
from kduel.report.site.parts import NONE, Cell, Mark, Page, Section, Table, chart, file_name, number

MOST_ROWS = 2000
"""Of a table; the index has the others."""
MOST_CHARTS = 60
"""On the page of a benchmark, those with a change first."""
RUNS = """
SELECT run.path, run.name, run.machine, substr(coalesce(run.measured, 'unknown'), 1, 16) AS measured, run.blocks,
       run.trials, run.void, run.merged, run.alpha, run.limits,
       EXISTS (SELECT 1 FROM verdict WHERE verdict.run = run.id AND role = 'primary' AND scale != 'exact') AS varies
FROM run ORDER BY run.measured DESC, run.started DESC, run.path
"""
PAIR = """
SELECT substr(coalesce(measured, 'unknown'), 1, 16) AS measured, path, benchmark, metric, verdict, effect_pct, ci_low_pct,
       ci_high_pct, n FROM headline WHERE baseline = {} AND contender = {}
       ORDER BY headline.measured DESC NULLS LAST, started DESC, path, benchmark, metric
"""
MOST_MARKS = 60
"""Runs of a strip, the latest."""
MOST_ANSWERED = 3
"""Pairs that the first sentences are about."""


def rows_of(index: Path, question: str) -> list[dict[str, Any]]:
    """The answer to a question, by column."""
    found = run_query(index, question)
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def quote_sql(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def verdict(words: str) -> Cell:
    return Cell(words, tone=answer.TONES.get(words, "neutral"))


Row = list[str | Cell]


def table(head: Sequence[str | Cell], rows: Sequence[Sequence[str | Cell]]) -> Table:
    lines = [[Cell(cell) if isinstance(cell, str) else cell for cell in row] for row in (head, *rows[:MOST_ROWS])]
    return Table(head=lines[0], rows=lines[1:], left_out=max(0, len(rows) - MOST_ROWS))


def heads(*words: str, numbers: int = 0) -> list[Cell]:
    """Column heads, the last `numbers` of them over numbers."""
    return [Cell(word, number=place >= len(words) - numbers) for place, word in enumerate(words)]


def pages(index: Path, reports: dict[str, str]) -> list[Page]:
    """Every page. `reports` has the address of a run's own page, by the run's path. Raises InputError."""
    history = indexed_history(index, attributed=False)
    runs = rows_of(index, RUNS)
    verdicts = {
        (baseline := row["baseline"], contender := row["contender"]): rows_of(
            index, PAIR.format(quote_sql(baseline), quote_sql(contender))
        )
        for row in rows_of(index, "pairs")
    }
    benchmarks = [
        row["benchmark"] for row in rows_of(index, "SELECT DISTINCT benchmark FROM verdict ORDER BY benchmark")
    ]
    return [
        overview(index, runs, verdicts, benchmarks, history, reports),
        matrix(index),
        machines(index),
        *(pair(*names, rows, reports) for names, rows in verdicts.items()),
        *(benchmark(name, history) for name in benchmarks),
    ]


def overview(
    index: Path,
    runs: list[dict[str, Any]],
    verdicts: dict[tuple[str, str], list[dict[str, Any]]],
    benchmarks: list[str],
    history: MetricHistory,
    reports: dict[str, str],
) -> Page:
    known = {row["path"]: row for row in runs}
    of_run = answer.by_run(itertools.chain(*verdicts.values()), whole=False)
    pairs_head: Row = [
        "contender",
        "against",
        Cell("runs", number=True),
        "run by run, oldest first",
        "the latest finished run",
    ]
    pairs: list[Row] = [
        [
            Cell(contender, file_name("pair", baseline, contender)),
            baseline,
            number(len(answer.by_run(rows)), 0),
            Cell("", strip=strip(rows, reports)),
            answer.counted_words(answer.latest_finished(rows, known)[0]),
        ]
        for (baseline, contender), rows in verdicts.items()
    ]
    numbers = ("blocks", "trials", "void")
    runs_head: Row = ["run", "name", "machine", "measured (UTC)", *heads(*numbers, numbers=3), "verdicts"]
    cells: list[Row] = [
        [
            Cell(row["path"], reports.get(row["path"], "")),
            row["name"] + (" (merged)" if row["merged"] else ""),
            row["machine"],
            row["measured"].replace("T", " "),
            # An empty cell for 0, so that what there is can be seen; where a run has no verdict, too.
            *(number(row[key], 0) if row[key] else "" for key in numbers),
            answer.counted_words(of_run.get(row["path"], [])),
        ]
        for row in runs
    ]
    told = (
        [STRIP_MEANS.format(link=", and leads to its report" if reports else "")]
        if verdicts
        else ["No run has a primary metric: there is no verdict to list."]
    )
    meant = ["Verdicts are those of primary metrics."]
    sections = [
        Section(heading="Pairs of contenders", sentences=told, table=table(pairs_head, pairs)),
        series_section(benchmarks, history),
        Section(heading="All runs", sentences=meant, table=table(runs_head, cells)),
    ]
    if skipped := [[row["path"], row["reason"]] for row in rows_of(index, "skipped")]:
        sections.append(Section(heading="Not readable", table=table(["directory", "reason"], skipped)))
    answers = []
    steps = []
    whole = {path for path, row in known.items() if not row["merged"]}
    for (baseline, contender), rows in itertools.islice(verdicts.items(), MOST_ANSWERED):
        latest, begun, later = answer.latest_finished(rows, known)
        said, between = answer.trend(rows[rows.index(latest[0]) :])
        claims = [f"{contender} against {baseline}: {answer.latest_words(latest, known)}", said]
        sure = [answer.certainty(latest, known), f"measured on {latest[0]['measured'][:10]}", later]
        answers.append((". ".join(filter(None, claims)), f"How sure: {'; '.join(filter(None, sure))}"))
        steps += answer.next_steps(answer.by_run(rows), begun, between, whole)
    # What is begun is ended first; then what changed is looked for; then what the last two runs differ in.
    step, command = min(steps, default=("", ""), key=lambda one: answer.STEPS.index(one[0]))
    return Page(
        name="index.html",
        title=plural(sum(not answer.is_part(path, known) for path in known), "run"),
        sections=sections,
        answer=answers,
        step=step,
        command=command,
    )


STRIP_MEANS = "Each sign is a run{link}: ▲ better, ▼ worse, ◆ both, ≠ different, ≈ no difference that matters, ? undecided, – not judged."


def strip(rows: list[dict[str, Any]], reports: dict[str, str]) -> tuple[Mark, ...]:
    """A mark for each run of a pair, the oldest first. `rows` are its verdicts, the newest first."""
    marks = []
    for path, mine in answer.by_run(rows).items():
        sign, tone = answer.sign_and_tone(mine)
        about = f"{mine[0]['measured'][:10]} {path}: {answer.counted_words(mine)}"
        link = reports.get(path) or reports.get(path.removesuffix(PART), "")
        marks.append(Mark(sign=sign, tone=tone, about=about, link=link))
    return tuple(reversed(marks[:MOST_MARKS]))


def series_section(benchmarks: list[str], history: MetricHistory) -> Section:
    """The benchmarks over time; too few runs for a change are said once."""
    lines = {name: lines_of(name, history) for name in benchmarks}
    longest = max((len(line.points) for line in itertools.chain(*lines.values())), default=0)
    few = longest < 2 * FEWEST
    if few:
        said = f"No trend can be told yet: it takes {2 * FEWEST} runs of one contender on one machine, and there are {longest} at most."
    else:
        said = f"False alarms: {100 * history.alpha:g} % of the series that never change."
    rows: list[Row] = [
        [
            Cell(name, file_name("benchmark", name)),
            number(len(found) or None, 0),
            plural(changed, "change") if (changed := sum(len(line.steps) for line in found)) else "–",
        ]
        for name, found in lines.items()
    ]
    head: Row = ["benchmark", Cell("series", number=True), "changes of level"]
    shown = 2 if few else 3
    return Section(
        heading="Benchmarks over time",
        sentences=[said, *history.apart],
        table=table(head[:shown], [row[:shown] for row in rows]),
    )


def pair(baseline: str, contender: str, rows: list[dict[str, Any]], reports: dict[str, str]) -> Page:
    """Every verdict of one contender against one baseline, the newest first."""
    cells: list[Row] = [
        [
            row["measured"].replace("T", " "),
            Cell(row["path"], reports.get(row["path"], "")),
            Cell(f"{row['benchmark']}/{row['metric']}", file_name("benchmark", row["benchmark"])),
            verdict(row["verdict"]),
            NONE if row["effect_pct"] is None else Cell(f"{with_sign(row['effect_pct'], '.2f')} %", number=True),
            answer.interval(row["ci_low_pct"], row["ci_high_pct"]),
            number(row["n"], 0),
        ]
        for row in rows
    ]
    head = heads("measured (UTC)", "run", "metric", "verdict", "change", "interval", "n", numbers=3)
    return Page(
        name=file_name("pair", baseline, contender),
        title=f"{contender} against {baseline}",
        sections=[Section(heading=plural(len(rows), "verdict"), table=table(head, cells))],
    )


def lines_of(name: str, history: MetricHistory) -> list[Any]:
    """The series of a benchmark, those with a change first."""
    found = [line for line in history.lines if line.key.rpartition("/")[0] == name]
    return sorted(found, key=lambda line: (not line.steps, line.key, line.contender, line.machine))


def benchmark(name: str, history: MetricHistory) -> Page:
    """Every metric of a benchmark over time, with the places where its level changed."""
    lines = lines_of(name, history)
    changes = [
        (since.time_text, line.key.rpartition("/")[2], line.contender, line.machine, Cell(change(step), number=True), since.run)
        for line in lines
        for step in line.steps
        for since in (line.points[step.index],)
    ]  # fmt: skip
    changes.sort(key=lambda row: row[0], reverse=True)
    head: Row = ["since", "metric", "contender", "machine", Cell("change", number=True), "first run"]
    none = [] if changes else ["No series changed its level. It takes six runs of one series at least."]
    found = table(head, changes) if changes else None
    sections = [Section(heading=plural(len(changes), "change"), sentences=none, table=found)]
    drawn = lines[:MOST_CHARTS]
    for key in dict.fromkeys(line.key for line in drawn):
        charts = [chart(line) for line in drawn if line.key == key]
        sections.append(Section(heading=key.rpartition("/")[2], charts=charts))
    if not lines:
        lacking = ["No metric of one contender has two runs on one machine with known dates."]
        sections.append(Section(heading="Series", sentences=lacking))
    if len(lines) > MOST_CHARTS:
        more = f"{len(lines) - MOST_CHARTS} more series without a chart: kduel query --history --index has them."
        sections.append(Section(heading="More series", sentences=[more]))
    return Page(name=file_name("benchmark", name), title=name, sections=sections)


def matrix(index: Path) -> Page:
    """The latest verdict of each contender in each primary metric, by machine."""
    latest = rows_of(index, "latest")
    columns = list(dict.fromkeys((row["baseline"], row["contender"]) for row in latest))
    rows: dict[tuple[str, str], dict[tuple[str, str], dict[str, Any]]] = {}
    for row in latest:
        place = rows.setdefault((f"{row['benchmark']}/{row['metric']}", row["machine"]), {})
        place[row["baseline"], row["contender"]] = row
    cells: list[Row] = [
        [
            Cell(key, file_name("benchmark", key.rpartition("/")[0])),
            machine,
            *(latest_cell(found.get(column)) for column in columns),
        ]
        for (key, machine), found in rows.items()
    ]
    head: Row = ["metric", "machine"]
    head += [Cell(f"{new} against {old}", file_name("pair", old, new)) for old, new in columns]
    counts = ["The run that measured the metric on that machine last counts."]
    sections = [Section(heading="Latest verdicts", sentences=counts, table=table(head, cells))]
    return Page(name="matrix.html", title="Contenders by metrics", sections=sections)


def latest_cell(row: dict[str, Any] | None) -> Cell:
    """A verdict with its effect; a dash where nothing was measured."""
    if row is None:
        return Cell("–")
    size = "" if row["effect_pct"] is None else f" {with_sign(row['effect_pct'], '.2f')} %"
    return Cell(f"{row['verdict']}{size}", tone=verdict(row["verdict"]).tone)


def machines(index: Path) -> Page:
    rows: list[Row] = []
    for row in rows_of(index, "machines"):
        dates = ((row[key] or "unknown")[:16].replace("T", " ") for key in ("first", "last"))
        rows.append([row["machine"], number(row["runs"], 0), number(row["contenders"], 0), *dates])
    head: Row = ["machine", *heads("runs", "contenders", numbers=2), "first", "last"]
    sections = [Section(heading=plural(len(rows), "machine"), table=table(head, rows))]
    return Page(name="machines.html", title="Machines", sections=sections)
