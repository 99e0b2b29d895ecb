"""The comparison of runs as a page: what changed first; in full also confounds, results by column, changes, then claims."""

import itertools
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from msgspec import structs

from kduel.analysis.campaigns.claims import JudgedClaim, Standing
from kduel.analysis.campaigns.compare import REPEATS_VARY, Campaigns, ColumnChange, MetricRow
from kduel.core.format import MISSING, effect, effect_with_interval, interval_text, mean_and_sd, percent, relative_pct
from kduel.core.metric_results import MetricResult
from kduel.core.text import list_few, plural
from kduel.judge.verdict.headline import matters
from kduel.report.campaigns.page import CampaignPage, CampaignTable, PageSection, changed_lines
from kduel.report.content.answer import largest_words
from kduel.report.content.certainty import SURE
from kduel.report.content.digest import largest_first, side_words

MOST_CONFOUNDS = 60
MOST_NAMED = 6
"""Runs that the first sentence says which they are."""
BETWEEN = f"{SURE}95 % confidence for all comparisons together."
DRIFT = "What drifted between the runs counts as a change, too."
UNDECIDED = "Undecided is not the same as equal: more measurements of both may decide."
OVER_CONDITIONS = (
    "What was counted under several conditions has its median here, and its change is the median of the differences under each: "
    "these values need not differ by it."
)
MOST_NAMED_COLUMNS = 4
"""Columns that tables call by their names; more have letters."""
MOST_PAIRS = 2
"""Pairs that the first sentences are about."""
MOST_CHANGES = 10
"""Lines about what changed at the beginning: the largest changes."""


def page_of(found: Campaigns, claims: Sequence[JudgedClaim] = (), *, brief: bool = False) -> CampaignPage:
    """Everything, in the order in which it should be read: what changed comes first. `brief`: no more than that and the claims."""
    rest = [] if brief else [columns_section(found), confounds_section(found), results_section(found)]
    if not brief:
        rest += [attribution_section(found), *(change_section(pair, kernels_first(found)) for pair in found.between)]
        rest.append(not_compared_section(found))
    sections = [changed_section(found), *(structs.replace(one, folded=True) for one in rest)]
    if claims:
        sections.append(claims_section(claims))
    named = [*dict.fromkeys(column.contender for column in found.columns)]
    runs = len({Path(column.run).resolve() for column in found.columns})
    of_runs = f" in {plural(runs, 'run')}" if runs > 1 else ""
    shown = [section for section in sections if section.lead or section.sentences or section.table or section.bullets]
    return CampaignPage(title=f"{list_few(named, 3)}{of_runs}", sections=shown)


def changed_section(found: Campaigns) -> PageSection:
    """Section with the largest changes that are shown by the data, how sure they are, and what to do next. Where contenders are in
    several runs, these changes are of one contender from run to run, which is what such a comparison is about."""
    names = kernels_first(found)
    pairs = pairs_of_interest(found)
    changes = [(pair, change) for pair in pairs for change in pair.changes if change.n]
    shown = [both for both in changes if matters(both[1])]
    shown.sort(key=lambda both: (weak(both[1]), -abs(relative_pct(both[1]) or 0.0)))
    rows = [
        [f"{change.benchmark}/{change.metric}", names[pair.before], names[pair.after], effect(change), change.word]
        for pair, change in shown[:MOST_CHANGES]
    ]
    undecided = sum(change.verdict == "undecided" for _, change in changes)
    more = f", the largest {MOST_CHANGES} below, maxima and spreads last" if len(shown) > MOST_CHANGES else ""
    compared, show = plural(len(changes), "comparison"), "shows" if len(shown) == 1 else "show"
    lead = f"No change that matters is shown in {compared}: {undecided or 'none'} undecided."
    step, command = UNDECIDED if undecided else "", ""
    sentences = runs_legend(found)
    if not changes:
        lead = "Nothing is compared: no metric was measured alike in two of these."
    if shown:
        changed = {id(pair): pair for pair, _ in shown}.values()
        lead = " ".join(pair_sentence(pair, found) for pair in itertools.islice(changed, MOST_PAIRS))
        step, command = next_step(found, shown[0][0])
        sentences.append(f"{len(shown)} of {compared} {show} a change that matters{more}; {undecided} undecided.")
    table = (
        CampaignTable(head=["metric", "from", "to", "change", "verdict"], rows=rows, numbers_from=5) if rows else None
    )
    bullets = changed_lines({column.run: column.changed for column in found.columns})
    return PageSection(
        heading="", lead=lead, sure=certainty(found, pairs, shown[:1]) if changes else [], step=step,
        command=command, sentences=sentences, table=table, bullets=bullets,
    )  # fmt: skip


def pair_sentence(pair: ColumnChange, found: Campaigns) -> str:
    """`With new in run 2 (2026-03-02) against run 1 (2026-01-31), job takes 5.0 % longer (+4.2 to +5.8 %).`"""
    columns = {column.name: column for column in found.columns}
    before, after = columns[pair.before], columns[pair.after]
    names = kernels_first(found)
    against = names[pair.before]
    if before.contender == after.contender:
        against = against.removeprefix(f"{before.contender} in ")
    metrics = [change for change in pair.changes if change.n]
    large = sorted(filter(matters, metrics), key=lambda one: (weak(one), *largest_first(one)))
    named, rest = largest_words(metrics, large, alone=True)
    others = f" Others: {', '.join(rest)}." if rest else ""
    days = [f" ({column.when[:10]})" if column.when else "" for column in (after, before)]
    first, second = days if days[0] != days[1] else ("", "")
    return f"With {names[pair.after]}{first} against {against}{second}, {'; '.join(named)}.{others}"


def weak(change: MetricResult) -> bool:
    """True for a metric that few samples decide: a maximum, or a spread."""
    return change.statistic in ("max", "sd")


def pairs_of_interest(found: Campaigns) -> list[ColumnChange]:
    """The pairs of one contender in two runs, or else those of two runs, or else all."""
    columns = {column.name: column for column in found.columns}
    apart = [pair for pair in found.between if columns[pair.before].run != columns[pair.after].run]
    same = [pair for pair in apart if columns[pair.before].contender == columns[pair.after].contender]
    return same or apart or found.between


def runs_legend(found: Campaigns) -> list[str]:
    """Sentence on which run is which, by number, with its date; none where there is one."""
    runs = run_numbers(found)
    days = len({column.when[:10] for column in found.columns}) == len(runs)
    said = {
        column.run: f"run {runs[column.run]}: {column.name.removesuffix(column.contender).strip() or column.run}"
        + (f" ({column.when[: 10 if days else 16].replace('T', ' ')})" if column.when else "")
        for column in found.columns
    }
    return [f"R{list_few([*said.values()], MOST_NAMED)[1:]}."] if len(runs) > 1 else []


def certainty(
    found: Campaigns, pairs: Sequence[ColumnChange], largest: Sequence[tuple[ColumnChange, MetricResult]]
) -> list[str]:
    """Sentences on how sure changes are, of which the `largest` is given, and whether anything is known to be their cause."""
    run = {column.name: column.run for column in found.columns}
    sure = []
    if any(not pair.exact and run[pair.before] != run[pair.after] for pair in pairs):
        sure = [BETWEEN, *(others_change(found, pairs, *one) for one in largest)]
    about = [pair.attribution for pair in pairs] if largest else []
    known = {one.cause for one in about}
    if len(known) == 1 and (cause := known.pop()):
        group, _, name = cause.rpartition(".")
        return [*sure, f"Only one known thing differs: {f'{name} ({group})' if group else cause}."]
    blind = sum(one.cause is None and bool(one.things or one.unknown) for one in about)
    none = "No" if blind == len(pairs) else f"In {blind} of {len(pairs)} pairs no"
    return [*sure, f"{none} cause can be named: too much else differs, or too little is known."] if blind else sure


def others_change(found: Campaigns, pairs: Sequence[ColumnChange], pair: ColumnChange, change: MetricResult) -> str:
    """Sentence on what another contender of the same runs shows in the same metric: whether the machine changed under both."""
    columns = {column.name: column for column in found.columns}
    runs = columns[pair.before].run, columns[pair.after].run
    for other in pairs:
        if other is pair or (columns[other.before].run, columns[other.after].run) != runs:
            continue
        for one in other.changes:
            if one.n and (one.benchmark, one.metric) == (change.benchmark, change.metric):
                name, size = columns[other.after].contender, effect_with_interval(one)
                if matters(one):
                    return f"{name} changed as well, {size}: it may be drift of the machine."
                if one.claimed:
                    return f"{name} did not change between the runs, {size}: no drift of the machine is seen."
                return f"Whether {name} changed as well is undecided, {size}: it may be drift of the machine."
    return DRIFT


def next_step(found: Campaigns, pair: ColumnChange) -> tuple[str, str]:
    """Sentence and command that follow: the second run once more, which shows whether the change lasts; or where it comes from."""
    after = next(column for column in found.columns if column.name == pair.after)
    if after.imported:
        return "", ""
    if pair.attribution.same_run:
        return "The whole report of that run:", f"kduel report {shlex.quote(after.run)}"
    study = shlex.quote(f"{after.run}/study.toml")
    return (
        f"To see whether it lasts, measure run {run_numbers(found)[after.run]} again:",
        f"kduel run {study} --out again",
    )


def run_numbers(found: Campaigns) -> dict[str, int]:
    """By directory, the number of a run, from 1 on."""
    return {run: number for number, run in enumerate(dict.fromkeys(column.run for column in found.columns), 1)}


def kernels_first(found: Campaigns) -> dict[str, str]:
    """By column name, `debian-6.12 in run 1`: the contender, with the number of its run where there are several."""
    runs = run_numbers(found)
    several = len(runs) > 1
    return {
        column.name: f"{column.contender} in run {runs[column.run]}" if several else column.name
        for column in found.columns
    }


def letters(found: Campaigns) -> dict[str, str]:
    """By column name, what it is called in tables: its name where few stand beside each other, else its letter."""
    if len(found.columns) <= MOST_NAMED_COLUMNS:
        return kernels_first(found)
    return {column.name: column.letter for column in found.columns}


def columns_section(found: Campaigns) -> PageSection:
    """Section with the meaning of each name or letter."""
    names, rows = letters(found), []
    for column in found.columns:
        trials = MISSING if column.trials is None else str(column.trials)
        void = f" ({column.void} void)" if column.void else ""
        kind = "imported" if column.imported else "measured by KDuel"
        rows.append([names[column.name], column.name, column.when[:10] or MISSING, kind, f"{trials}{void}"])
    head = ["", "column", "day", "kind", "trials"]
    # A name that is the column's own needs no meaning.
    if all(row[0] == row[1] for row in rows):
        head, rows = head[1:], [row[1:] for row in rows]
    return PageSection(heading="Columns", table=CampaignTable(head=head, rows=rows, numbers_from=len(head) - 1))


def confounds_section(found: Campaigns) -> PageSection:
    """Section with what else changed: before any result, since it limits what the results can mean."""
    heads = [*letters(found).values()]
    rows = [
        [
            f"{difference.group}: {difference.key}",
            *(str(difference.values.get(column.name) or MISSING) for column in found.columns),
        ]
        for difference in found.confounds[:MOST_CONFOUNDS]
    ]
    sentences = []
    if not rows:
        sentences.append("Nothing that is known differs between the columns.")
        sentences += [
            f"Little is known of {column.name}, which was imported: that nothing differs does not follow."
            for column in found.columns
            if column.imported
        ]
    blind = [column.name for column in found.columns if all(column.name not in d.values for d in found.confounds)]
    if rows and blind:
        sentences.append(f"Nothing is known of {', '.join(blind)}.")
    bullets = []
    if len(found.confounds) > MOST_CONFOUNDS:
        bullets.append(f"and {len(found.confounds) - MOST_CONFOUNDS} more differences: --format json has all")
    table = CampaignTable(head=["", *heads], rows=rows, numbers_from=len(heads) + 1) if rows else None
    return PageSection(heading="What differs between the columns", sentences=sentences, table=table, bullets=bullets)


def results_section(found: Campaigns) -> PageSection:
    """One line a metric, one column a contender of a run."""
    rows = [
        [
            f"{row.key} ({row.unit}, {better_side(row)})",
            *(MISSING if cell is None else mean_and_sd(cell.mean, cell.sd) for cell in row.cells),
            str(largest_n(row)),
        ]
        for row in found.rows
    ]
    head = ["metric", *letters(found).values(), "n"]
    table = CampaignTable(head=head, rows=rows) if rows else None
    counted = any(change.scale == "exact" for pair in found.between for change in pair.changes)
    sentences = [OVER_CONDITIONS] if counted else []
    return PageSection(heading="Results", sentences=sentences, table=table, bullets=reliability_lines(found.rows))


def reliability_lines(rows: Sequence[MetricRow]) -> list[str]:
    """A line for each remark on how far values can be trusted, with its metrics. The table has how much repeats vary."""
    keys: dict[str, list[str]] = {}
    for row in rows:
        varies = row.reliability.startswith(REPEATS_VARY)
        remark = row.reliability.partition("; ")[2] if varies else row.reliability
        keys.setdefault(remark, []).append(row.key)
    return [f"{list_few(those, 12)}: {remark}." for remark, those in keys.items() if remark]


def better_side(row: MetricRow) -> str:
    return "no better side" if row.better == "none" else f"{row.better} is better"


def largest_n(row: MetricRow) -> str:
    counts = sorted({cell.n for cell in row.cells if cell is not None})
    return f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def attribution_section(found: Campaigns) -> PageSection:
    names = letters(found)
    bullets = [f"{names[pair.before]} to {names[pair.after]}: {pair.attribution.told}" for pair in found.between]
    return PageSection(heading="What a change may be attributed to", bullets=bullets)


def change_section(pair: ColumnChange, names: dict[str, str]) -> PageSection:
    shown_changes = [change for change in pair.changes if change.n]
    rows = [
        [
            f"{change.benchmark}/{change.metric}",
            effect(change),
            interval_text(change),
            str(change.n),
            ", ".join(filter(None, (change.label, side_words(change)))),
            ", ".join(warning.code for warning in change.warnings),
        ]
        for change in shown_changes
    ]
    table = CampaignTable(head=["metric", "change", "interval", "n", "verdict", "marks"], rows=rows) if rows else None
    missing = [f"{change.benchmark}/{change.metric}" for change in pair.changes if not change.n]
    sentences = []
    if pair.exact:
        if rows:
            sentences.append("Counted exactly on the same deterministic machine: one value of each is enough.")
    elif pair.otherwise:
        sentences.append(
            f"Counted exactly, but with {list_few(pair.otherwise, 3)}: counts under other conditions are not compared as exact."
        )
    elif shown_changes and all(change.n == 1 for change in shown_changes):
        sentences.append("n = 1: each was measured once. No interval, no verdict, whatever the size of the change.")
    if rows and pair.attribution.cause is None and (pair.attribution.things or pair.attribution.unknown):
        sentences.append("Not attributable to one cause; see above.")
    bullets = [f"Without a value on one side: {list_few(missing, 12)}."] if missing else []
    bullets += [
        f"Undecided, as they were not measured alike: {list_few([key for key, why in pair.unlike.items() if why == reason], 12)}: "
        f"{reason}."
        for reason in dict.fromkeys(pair.unlike.values())
    ]
    marks = {warning.code: warning.message for change in shown_changes for warning in change.warnings}
    bullets += [f"{code}: {message}" for code, message in marks.items() if code != "single-trial"]
    heading = f"{names[pair.before]} to {names[pair.after]}"
    return PageSection(heading=heading, sentences=sentences, table=table, bullets=bullets)


def not_compared_section(found: Campaigns) -> PageSection:
    """Section with the pairs of columns that were not asked for, and the metrics that cannot be compared."""
    compared = {(pair.before, pair.after) for pair in found.between}
    names = letters(found)
    pairs = [
        f"{names[first.name]} with {names[second.name]}"
        for first, second in itertools.combinations(found.columns, 2)
        if (first.name, second.name) not in compared
    ]
    bullets = [f"{list_few(pairs, 12)}: --against all compares every pair"] if pairs else []
    bullets += [f"{key}: {reason}" for key, reason in found.left_out.items()]
    return PageSection(heading="Not compared", bullets=bullets)


def claims_section(claims: Sequence[JudgedClaim]) -> PageSection:
    counts = {standing: sum(1 for one in claims if one.standing == standing) for standing in STANDINGS}
    summary = ", ".join(f"{count} {standing}" for standing, count in counts.items() if count)
    rows = [
        [
            one.claim.says,
            one.standing,
            MISSING if one.change_pct is None else percent(one.change_pct),
            " ".join(one.reasons),
        ]
        for one in claims
    ]
    return PageSection(
        heading="Claims, and what the data support",
        sentences=[f"{plural(len(claims), 'claim')}: {summary}."],
        table=CampaignTable(head=["claim", "standing", "change", "why"], rows=rows, numbers_from=4),
    )


STANDINGS = get_args(Standing)
