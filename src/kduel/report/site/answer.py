"""The first sentences of a site: of each pair of contenders what its latest run found, since when, how sure that is, and what follows."""

import shlex
from collections import Counter
from collections.abc import Iterable
from typing import Any

from kduel.core.format import MINUS, percent, with_sign
from kduel.core.metric_results import TOO_SMALL
from kduel.judge.verdict.unfinished import NOT_FINISHED
from kduel.report.content.counted import PART
from kduel.report.site.parts import Cell, number

TONES = {
    "faster": "better", "slower": "worse", "fewer": "better", "more": "worse", "equivalent": "same", "equal": "same",
    "undecided": "undecided", TOO_SMALL: "same",
}  # fmt: skip
BEFORE = {
    "better": "Better",
    "worse": "Worse",
    "same": "No difference that matters",
    "undecided": "Undecided",
    "neutral": "Different",
}
"""Of a run before the latest, by its tone."""
NOT_JUDGED = "not judged"
UNDATED = "unknown"
STEPS = (
    "Go on with the latest run, in the directory of the runs:",
    "See what differs since that began, in the directory of the runs:",
    "See what changed between the last two runs, in the directory of the runs:",
    "See what would decide it, and the whole report, in the directory of the runs:",
    "See the whole report, in the directory of the runs:",
)


def next_steps(
    runs: dict[str, list[dict[str, Any]]], begun: str, between: list[str], whole: set[str]
) -> list[tuple[str, str]]:
    """Sentence and command of what follows from the runs of a pair, the newest first; only what is `whole` can be compared."""
    paths = list(runs)
    if begun:
        return [(STEPS[0], f"kduel resume {shlex.quote(begun)}")]
    decided = sign_and_tone(runs[paths[0]])[0] != "?"
    for step, pair in ((STEPS[1], between), (STEPS[2], paths[1::-1] * decided)):
        if len(pair) > 1 and whole.issuperset(pair):
            return [(step, f"kduel diff {shlex.join(pair)}")]
    return [(STEPS[4 if decided else 3], f"kduel report {shlex.quote(paths[0])}")]


def is_part(path: str, runs: dict[str, Any]) -> bool:
    """True for the exact part of one of these runs."""
    return path.endswith(PART) and path.removesuffix(PART) in runs


def latest_finished(
    rows: list[dict[str, Any]], runs: dict[str, dict[str, Any]]
) -> tuple[list[dict[str, Any]], str, str]:
    """Verdicts of the latest run that is finished, or else of the latest; the latest one's path where it can go on, else nothing; and
    a clause on it where the verdicts are of another."""
    found = by_run(rows)
    lacks = {path: next(filter(is_unfinished, runs[path]["limits"].split("; ")), "") for path in found}
    newest = next(iter(found))
    chosen = next((path for path in found if not lacks[path]), newest)
    begun = newest if lacks[newest].endswith(NOT_FINISHED) else ""
    return found[chosen], begun, f"a later run has {lacks[newest]}" if chosen != newest else ""


def is_unfinished(limit: str) -> bool:
    return NOT_FINISHED in limit


def sign_and_tone(rows: list[dict[str, Any]]) -> tuple[str, str]:
    """Sign and tone of the verdicts of a run together."""
    tones = {TONES.get(row["verdict"], "neutral") for row in rows if row["verdict"] != NOT_JUDGED}
    return next(
        (sign, tone)
        for sign, tone, holds in (
            ("◆", "neutral", {"better", "worse"} <= tones),
            ("▲", "better", "better" in tones),
            ("▼", "worse", "worse" in tones),
            ("≠", "neutral", "neutral" in tones),
            ("?", "undecided", "undecided" in tones),
            ("≈", "same", "same" in tones),
            ("–", "undecided", True),
        )
        if holds
    )


def by_run(rows: Iterable[dict[str, Any]], *, whole: bool = True) -> dict[str, list[dict[str, Any]]]:
    """Verdicts by the run's path, runs in the order of their first row; exact counts with the run that they are a part of, if `whole`."""
    rows = list(rows)
    runs = {row["path"] for row in rows}
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        above = row["path"].removesuffix(PART)
        found.setdefault(above if whole and above in runs else row["path"], []).append(row)
    return found


def trend(rows: list[dict[str, Any]]) -> tuple[str, list[str]]:
    """`Worse in each of the last 17 runs, since 2026-04-02`: sentence on the side of the latest runs of a pair, or on the run before where
    that has another; and the runs before and after it began, empty where all are so. Runs without a date have no order."""
    runs = [(path, mine) for path, mine in by_run(rows).items() if mine[0]["measured"] != UNDATED]
    tones = [sign_and_tone(mine)[1] for _, mine in runs]
    if not tones or tones[0] not in ("better", "worse"):
        return "", []
    reach = next((place for place, one in enumerate(tones) if one not in (tones[0], "undecided")), len(runs))
    reach = max(place for place in range(reach) if tones[place] == tones[0]) + 1
    if reach < 2:
        return (f"{BEFORE[tones[1]]} in the run before, of {runs[1][1][0]['measured'][:10]}" if tones[1:] else ""), []
    count = tones[:reach].count(tones[0])
    how_many = f"each of the last {reach}" if count == reach else f"{count} of the last {reach}"
    between = [runs[reach][0], runs[reach - 1][0]] if reach < len(runs) else []
    return f"{tones[0].capitalize()} in {how_many} runs, since {runs[reach - 1][1][0]['measured'][:10]}", between


def certainty(rows: list[dict[str, Any]], runs: dict[str, dict[str, Any]]) -> str:
    """Clause on how sure the latest verdicts of a pair are, and on what they are not."""
    latest = next(iter(by_run(rows).values()))
    records = [runs[path] for path in dict.fromkeys(row["path"] for row in latest)]
    decided = [runs[row["path"]] for row in latest if row["verdict"] not in ("undecided", NOT_JUDGED)]
    sampled = [run for run in decided if run["varies"]]
    sure = f"{100 * (1 - sampled[0]['alpha']):g} % confidence" if sampled else ""
    return "; ".join(dict.fromkeys(filter(None, [sure, *(record["limits"] for record in records)])))


def counted_words(rows: list[dict[str, Any]]) -> str:
    """`1 faster, 2 undecided`: verdicts that there are, each counted by itself."""
    counts = Counter(row["verdict"] for row in rows)
    return ", ".join(f"{count} {word}" for word, count in counts.most_common()) or "–"


def latest_words(rows: list[dict[str, Any]], runs: dict[str, dict[str, Any]]) -> str:
    """The largest loss and gain of a run, of its exact part first; what was counted where nothing differs."""
    latest = by_run(rows, whole=False)
    words = [
        (("counted exactly, " if path.endswith(PART) else "timed, ") if len(latest) > 1 else "")
        + part_words(mine, varies=bool(runs[path]["varies"]))
        for path, mine in sorted(latest.items(), reverse=True)
    ]
    return "; ".join(words)


def part_words(latest: list[dict[str, Any]], *, varies: bool) -> str:
    """Largest loss and gain of one part of a run: `job/time 1.03 % slower (+0.17 to +1.91 %)`."""
    found = []
    for kind in ("worse", "better", "neutral"):
        mine = [
            row for row in latest if TONES.get(row["verdict"], "neutral") == kind and row["verdict"] != NOT_JUDGED
        ]
        if mine:
            row = max(mine, key=lambda one: abs(one["effect_pct"] or 0.0))
            size = "" if row["effect_pct"] is None else f" {percent(row['effect_pct'])}"
            size = size if row["verdict"] == "different" else size.replace("+", "").replace(MINUS, "")
            bounds = interval(row["ci_low_pct"], row["ci_high_pct"]).text
            sure = f" ({bounds})" if varies and size and row["ci_low_pct"] is not None else ""
            found.append(f"{row['benchmark']}/{row['metric']}{size} {row['verdict']}{sure}")
    return "; ".join(found) or f"no difference is shown ({counted_words(latest)})"


def interval(low: float | None, high: float | None) -> Cell:
    """An interval in per cent, or the range of an exact value; `exact` where that is one value."""
    if low is None or high is None:
        return number(None)
    return Cell("exact" if low == high else f"{with_sign(low, '.2f')} to {with_sign(high, '.2f')} %", number=True)
