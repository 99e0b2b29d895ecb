"""The terminal's page for counted instructions, a line for each operation: first what holds under every condition, by
subsystem and size, then what is the same, and what depends on conditions."""

import shlex
from collections.abc import Iterator, Sequence

from msgspec import Struct

from kduel.benchmarks.boot_instructions import PLUGIN as BOOT_PLUGIN
from kduel.benchmarks.kbench import SITUATIONS
from kduel.core.format import MISSING, amount, arms, effect, percent, range_text, ranged_over, relative_pct
from kduel.core.metric_results import COUNTS, SHARING, TOUCHED, TOUCHED_PAGES, MetricResult
from kduel.core.results import Results
from kduel.core.samples import Mode
from kduel.core.text import plural, visible
from kduel.judge.verdict.headline import matters, shows_difference, side
from kduel.report.content.digest import ContenderSummary, largest_first
from kduel.report.content.evidence import evidence
from kduel.store.rundir import EXACT

Line = list[tuple[str, str]]
"""Pieces of text, each with its style (rich's names)."""
OTHER = "other"
OUTSIDE_PCT = 5.0
"""How far from the usual range the difference in a situation, or of the mean, must lie to be shown."""
MOST_CALLS = 0.9
"""Where fewer calls than this share lie about one value, the values are shown."""
BOOT = BOOT_PLUGIN.name
PART = f"/{EXACT}"
"""What follows a run's directory in that of its exact part."""
LARGEST = {
    "worse": "Where the loss in {} comes from:",
    "better": "Where the gain in {} comes from:",
    "neutral": "Where the difference in {} comes from:",
}
OF_BOOT = "Where the difference comes from (in minutes, with 2 GB of memory):"
LONG = 10_000_000
"""A count from which on its digits are more than those of any operation."""
MODES_EACH, MODES_SHOWN = 3, 8
"""Values of each kernel, and operations, that are shown."""
MODES_HEADING = "modes: what single calls take, and how many of them"


def is_counted(results: Results) -> bool:
    """True if a run's primary metrics are counts of a deterministic machine."""
    primary = [metric for metric in results.metrics if metric.role == "primary"]
    return bool(primary) and not evidence(results).varies and all(metric.unit in COUNTS for metric in primary)


def is_sharing(results: Results) -> bool:
    """True if those counts are of shared cache lines."""
    return is_counted(results) and all(m.unit in SHARING for m in results.metrics if m.role == "primary")


def is_touching(results: Results) -> bool:
    """True if those counts are of lines and pages that operations touch."""
    primary = [m.unit for m in results.metrics if m.role == "primary"]
    return is_counted(results) and all(unit in (TOUCHED, TOUCHED_PAGES) for unit in primary)


def counted_lines(comparison: ContenderSummary, width: int, run: str = "") -> Iterator[Line]:
    """All primary metrics of a comparison, then what the usual call does not show. Lines are `width` columns at most where
    they can be. `run` is the directory as the user may type it, where it is known."""
    measured = [metric for metric in comparison.primary if metric.n]
    large = sorted((m for m in measured if matters(m)), key=largest_first)
    small = sorted((m for m in measured if m.below_delta), key=largest_first)
    same = [m for m in measured if m.verdict in ("equal", "equivalent")]
    open_ones = sorted((m for m in measured if m.verdict == "undecided"), key=largest_first)
    columns = Columns.fit(measured, width)
    if measured:
        yield columns.heading()
    for group in dict.fromkeys(m.group or OTHER for m in large):
        yield [(visible(group, 40), "italic")]
        yield from (line for m in large if (m.group or OTHER) == group for line in columns.lines(m, width))
    if small:
        yield [("smaller than delta", "italic")]
        yield from (line for m in small for line in columns.lines(m, width))
    if open_ones:
        yield [("depends on conditions that should not matter", "italic")]
        yield from (line for m in open_ones for line in columns.lines(m, width))
    if same:
        yield [("equivalent: ", "italic"), (", ".join(name(m) for m in same), "")]
    missing = [m for m in comparison.primary if not m.n]
    if missing:
        yield [("not measured in both: ", "italic"), (", ".join(name(m) for m in missing), "")]
    found = otherwise(
        comparison, [m for m in comparison.exploratory if m.metric.removeprefix(f"{m.unit}-") in SITUATIONS]
    )
    yield from other_lines("a different change in another session or control group, or under SCHED_FIFO", found)
    found = otherwise(comparison, [m for m in comparison.exploratory if m.metric == f"{m.unit}-mean"])
    yield from other_lines("a different change in the mean over all calls, rare and long ones included", found)
    alike = {m.benchmark for m in comparison.primary if m.metric == SHARING[0] and m.verdict == "equal"}
    found = [
        m for m in comparison.exploratory if m.metric in SHARING[1:] and m.benchmark in alike and m.more_or_fewer
    ]
    yield from other_lines("as many shared lines, used more or less often", sorted(found, key=largest_first))
    yield from mode_lines(comparison, width, run)


def name(metric: MetricResult) -> str:
    """The operation; with what is counted where that is not the usual call: `pipe, mean`."""
    way = metric.metric.removeprefix(f"{SHARING[0] if metric.unit in SHARING else metric.unit}-")
    return visible(metric.benchmark if way == metric.metric else f"{metric.benchmark}, {way}", 60)


class Columns(Struct, frozen=True):
    """The columns of the page, as wide as what stands in them, and so narrow that a line fits where that is possible."""

    name: int
    change: int
    span: int
    counts: int
    headings: tuple[str, str, str]
    gap: int = 2

    @classmethod
    def fit(cls, metrics: Sequence[MetricResult], width: int) -> "Columns":
        """Wide enough for these; in a narrow page for the usual ones only: a boot has four digits more."""
        usual = [m for m in metrics if max(m.baseline_mean or 0, m.mean or 0) < LONG]
        names = max((len(name(m)) for m in metrics), default=0)
        headings = ("change", f"over {ranged_over(metrics)}", "before → after")
        for chosen, gap in ((metrics, 2), (usual, 2), (usual, 1)):
            cells = [headings, *((effect(m), range_text(m), counts(m)) for m in chosen)]
            change, over, at = (max(len(row[column]) for row in cells) for column in range(3))
            over = over if any(range_text(m) for m in metrics) else 0
            found = cls(names, change, over, at, headings, gap)
            if found.width <= width:
                break
        return found

    @property
    def width(self) -> int:
        """Columns of a line, without what may follow the figures."""
        return 9 + self.name + len(self.figures(*self.headings))

    def heading(self) -> Line:
        return [(f"{'':{self.name + 9}}{self.figures(*self.headings)}", "dim")]

    def figures(self, change: str, over: str, at: str) -> str:
        """The figures of a line; without a range where no operation has one."""
        cells = [(change, self.change), *([(over, self.span)] if self.span else []), (at, self.counts)]
        line = "".join(f"{'':{self.gap}}{text:>{size}}" for text, size in cells)
        if any(len(text) > size for text, size in cells):
            # Of a boot, which has no range: the room of the range is for its digits.
            space = sum(self.gap + size for _, size in cells) - self.gap
            line = f"{'':{self.gap}}{'  '.join(text for text, _ in cells if text):>{space}}"
        return line

    def lines(self, metric: MetricResult, width: int) -> Iterator[Line]:
        """` more    fork-exit  +37,301 (+12.4 %)  +11.9 to +13.0 %  301,203 → 338,504  4 of 5 conditions`; the last on a line of its own
        where it has no room."""
        figures = self.figures(effect(metric), range_text(metric), counts(metric))
        line = [(f" {metric.word:<7}", style(metric)), (f" {name(metric):<{self.name}}", "bold"), (figures, "")]
        agreeing = agreement(metric)
        length = sum(len(text) for text, _ in line)
        if not agreeing or length + 2 + len(agreeing) <= width:
            yield [*line, (f"  {agreeing}".rstrip(), "dim")]
        else:
            yield line
            yield [(f"{agreeing:>{length}}", "dim")]


def counts(metric: MetricResult) -> str:
    """Before and after, under the condition of the median change."""
    (before, _), (after, _) = arms(metric)
    return f"{before} → {after}"


def agreement(metric: MetricResult) -> str:
    """In how many of the conditions the difference has this sign; empty where it is all of them."""
    agreeing, every = len(metric.agreeing), len(metric.conditions)
    return f"{agreeing} of {every} conditions" if agreeing < every else ""


def otherwise(comparison: ContenderSummary, metrics: Sequence[MetricResult]) -> list[MetricResult]:
    """Those whose difference is not that of the usual call, the largest first."""
    usual = {m.benchmark: m for m in comparison.primary if m.metric == m.unit}
    return sorted(
        (m for m in metrics if m.benchmark in usual and differs_from(m, usual[m.benchmark])), key=largest_first
    )


def other_lines(heading: str, metrics: Sequence[MetricResult]) -> Iterator[Line]:
    """` fewer   pipe, session  −1.84 %  12,653 → 12,420` for each, below their heading."""
    if not metrics:
        return
    yield [(heading, "italic")]
    width = max(len(name(m)) for m in metrics)
    for m in metrics:
        yield [
            (f" {m.word:<7}", style(m)),
            (f" {name(m):<{width}}", "bold"),
            (f"{percent(relative_pct(m) or 0):>9}  {counts(m):>25}", ""),
            (f"  {agreement(m)}".rstrip(), "dim"),
        ]


def with_modes(comparison: ContenderSummary) -> list[MetricResult]:
    """Metrics whose usual value is not that of nearly all calls, the least usual first."""
    found = [
        m for m in comparison.primary if m.n and min(map(largest_share, m.modes.values()), default=1) < MOST_CALLS
    ]
    return sorted(found, key=lambda m: min(map(largest_share, m.modes.values())))


def mode_lines(comparison: ContenderSummary, width: int, run: str) -> Iterator[Line]:
    """The values about which single calls lie, where the usual one is not that of nearly all calls."""
    found = with_modes(comparison)
    if not found:
        return
    yield [(MODES_HEADING, "italic")]
    for m in found[:MODES_SHOWN]:
        before, after = (modes_of(m.modes.get(arm, [])) for arm in (m.baseline, m.contender))
        indent = max(len(name(one)) for one in found[:MODES_SHOWN]) + 2
        start = [(f" {name(m):<{indent}}", "bold")]
        if indent + 1 + len(before) + 3 + len(after) <= width:
            yield [*start, (f"{before} → {after}", "")]
        else:
            yield [*start, (before, "")]
            yield [(f"{'':{indent - 1}}→ {after}", "")]
    if (others := len(found) - MODES_SHOWN) > 0:
        where = (
            f": kduel report {run} --format markdown" if run else ", which the formats markdown, html and json have"
        )
        yield [(f" and {plural(others, 'operation')} more{where}", "dim")]


def largest_share(modes: Sequence[Mode]) -> float:
    return max((mode.share for mode in modes), default=1.0)


def modes_of(modes: Sequence[Mode]) -> str:
    """`10,650 (63 %), 11,511 (18 %)`."""
    return ", ".join(f"{amount(mode.value)} ({100 * mode.share:.0f} %)" for mode in modes[:MODES_EACH]) or MISSING


def differs_from(metric: MetricResult, usual: MetricResult) -> bool:
    """True if its difference lies outside the usual range by more than OUTSIDE_PCT, or beyond delta the other way."""
    share, usually = relative_pct(metric), relative_pct(usual)
    if share is None or usually is None:
        return False
    if {metric.word, usual.word} == {"more", "fewer"} and not metric.below_delta:
        return True
    low = usually if usual.ci_low_pct is None else usual.ci_low_pct
    high = usually if usual.ci_high_pct is None else usual.ci_high_pct
    return share < low - OUTSIDE_PCT or share > high + OUTSIDE_PCT


def style(metric: MetricResult) -> str:
    """Colour only repeats what the word next to it states."""
    if shows_difference(metric):
        return {"better": "bold green", "worse": "bold red", "neutral": "bold magenta"}[side(metric)]
    return "yellow"


def next_command(results: Results, run: str) -> tuple[str, str]:
    """A sentence, and what to type to see where the largest robust loss comes from, or else the largest difference: of an operation, as the
    boot takes minutes and much memory; both empty where there is none. `run` is the directory as the user may type it."""
    found = [m for m in results.metrics if m.role == "primary" and m.more_or_fewer and not m.below_delta]
    if not found or not evidence(results).paired or is_touching(results):
        return "", ""
    largest = min(found, key=lambda metric: (metric.metric == BOOT, side(metric) != "worse", *largest_first(metric)))
    sentence = OF_BOOT if largest.metric == BOOT else LARGEST[side(largest)].format(name(largest))
    return sentence, explain_command(results, run, largest) + " --sharing" * is_sharing(results)


def shows_loss(results: Results) -> bool:
    """True for counts of which one that decides is worse."""
    return is_counted(results) and any(m.claimed and side(m) == "worse" and not m.below_delta for m in results.gating)


def loss_of_time(results: Results) -> str:
    """Sentence on the largest loss of all parts where that was timed, so that what explains counts is not all of it; else empty."""
    lost = [(m, part) for part in results.parts for m in part.gating if matters(m) and side(m) == "worse"]
    if not lost:
        return ""
    metric, part = min(lost, key=lambda one: largest_first(one[0]))
    if is_counted(part):
        return ""
    named = f"{visible(metric.benchmark, 100)} ({effect(metric)})"
    return (
        f"Before you decide, time the largest loss, {named}, on a real machine."
        if part.machine.unreal
        else f"The largest loss is one of time, {named}, which counts may not explain."
    )


def explain_command(results: Results, run: str, metric: MetricResult) -> str:
    words = ["-b", metric.benchmark]
    if len({m.contender for m in results.metrics}) > 1:
        words += ["--contender", metric.contender]
    return f"kduel explain {run} {shlex.join(words)}"


def commands_of_parts(results: Results, run: str) -> list[tuple[str, str]]:
    """`next_command` of each part of a run that is of counts and has one."""
    places = [(part, run if part is results else run + PART) for part in results.parts]
    found = [next_command(part, place) for part, place in places if is_counted(part)]
    return [step for step in found if step[1]]
