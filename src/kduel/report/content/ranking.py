"""The ranking by aspect in words: what each contender does in multiples of the baseline."""

from msgspec import Struct

from kduel.core.format import effect_places
from kduel.core.metric_results import AspectRanking, MetricResult, Rank
from kduel.core.results import Results
from kduel.core.text import align_columns, visible
from kduel.judge.ranking import ratios

NOT_FAST = frozenset(
    ("memory", "size", "modules", "power", "idle-power", "energy", "efficiency", "temperature", "fairness")
)
"""Aspects of which more is no speed."""
UNRANKED = "–"
RANKING_MEANS = (
    "The geometric mean of an aspect's primary metrics, boot by boot. Ranks are those that the intervals leave open: contenders "
    "whose intervals overlap, or that differ by too little to matter, share them. The intervals of all aspects and contenders hold "
    "together. They stand beside the verdicts and decide nothing."
)


class RankRow(Struct, frozen=True, kw_only=True):
    rank: str
    contender: str
    said: str
    """`1.07 times as fast (1.05 to 1.09)`, `baseline`, or why it has no rank."""
    result: MetricResult | None
    """None for the baseline, and for a contender without a rank."""


def ranking_title(ranking: AspectRanking) -> str:
    """`throughput, the geometric mean of a/rate and b/rate`."""
    names = visible(", ".join(ranking.metrics), 400)
    title = (
        f"{ranking.aspect}, the geometric mean of {names}"
        if len(ranking.metrics) > 1
        else f"{ranking.aspect}, {names}"
    )
    return f"{title}; without {visible(', '.join(ranking.left_out), 400)}" if ranking.left_out else title


def ranking_rows(ranking: AspectRanking) -> list[RankRow]:
    """The contenders, the best first."""
    results = {result.contender: result for result in ranking.results}
    return [rank_row(ranking, rank, results.get(rank.contender)) for rank in ranking.ranks]


def rank_row(ranking: AspectRanking, rank: Rank, result: MetricResult | None) -> RankRow:
    ranked = rank.first is not None
    said = (
        times_text(ranking, result)
        if ranked and result
        else f"no rank: {visible(rank.reason, 300)}"
        if result
        else "baseline"
    )
    span = UNRANKED if rank.first is None else "–".join(map(str, dict.fromkeys((rank.first, rank.last))))
    return RankRow(rank=span, contender=visible(rank.contender, 200), said=said, result=result if ranked else None)


def times_text(ranking: AspectRanking, result: MetricResult) -> str:
    """`1.07 times as fast (1.05 to 1.09)`, with the digits of the change in per cent; an end that is not 1 is not shown as 1."""
    low, middle, high = ratios(result)
    places = 2 + effect_places(result.effect_pct or 0.0, result.ci_low_pct, result.ci_high_pct)
    while places < 9 and (low > 1 >= round(low, places) or high < 1 <= round(high, places)):
        places += 1
    word = "good" if ranking.aspect in NOT_FAST else "fast"
    return f"{middle:,.{places}f} times as {word} ({low:,.{places}f} to {high:,.{places}f})"


def ranking_lines(results: Results) -> list[str]:
    """Lines of all rankings, each under its title; none for a run without."""
    lines = []
    for ranking in results.rankings:
        cells = [(row.rank, row.contender, row.said + verdict_note(row)) for row in ranking_rows(ranking)]
        lines += [ranking_title(ranking), *(f"  {line}" for line in align_columns(cells, left=(0, 1, 2)))]
    return [*lines, RANKING_MEANS] if lines else []


def verdict_note(row: RankRow) -> str:
    """`, equivalent` after the figures; empty where there is no result."""
    return f", {row.result.size or row.result.word}" if row.result else ""
