"""The answer to a run's question in a few words, over its exact and its timed part, and what to type next. It says
what the verdicts that decide hold: the largest gain and loss by name, else the headline."""

import itertools
import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from kduel.benchmarks.support.schedstat import GROUP
from kduel.core.format import effect, interval_text, percent, relative_pct
from kduel.core.metric_results import BYTES, COUNTS, HARNESS, MetricResult
from kduel.core.results import Results
from kduel.core.text import plural, visible
from kduel.judge.lint.findings import maximum
from kduel.judge.verdict import headline
from kduel.judge.verdict.agreement import chance_of_sign, fewest
from kduel.judge.verdict.comparison import TIME_UNITS
from kduel.judge.verdict.rule import gating_rule
from kduel.judge.verdict.unfinished import find_unfinished, may_continue
from kduel.report.content.candidates import candidates_claim
from kduel.report.content.certainty import ONCE, certainty
from kduel.report.content.counted import commands_of_parts, explain_command, loss_of_time, shows_loss
from kduel.report.content.counted import name as operation_name
from kduel.report.content.digest import largest_first, side_words
from kduel.report.content.evidence import evidence
from kduel.report.content.matrixtext import all_placed
from kduel.report.content.notes import key, number_notes
from kduel.report.content.reproduce import command_of_blocks
from kduel.report.content.tails import bound_claims
from kduel.report.content.undecided import foremost_reason, reason_of_findings

MOST_PAIRS = 2
"""Contenders that are answered one by one."""
MOST_EFFECTS = 2
MOST_OTHERS = 3
"""Benchmarks of a matrix that are named beside the largest effects."""
MANIFOLD = 3.0
"""From here on a time is said to be so many times as long."""
LONGEST_NAME = 30
"""Of a code name beside its words."""
FEWEST_PLANNED = 5
"""Blocks that `kduel plan` takes."""
TEN = 10
"""Blocks of a run that decides more than one of fewer."""
HEAVY = 86
"""Weight of a finding with which a verdict is not the last word."""
RATE = re.compile(r"(?<![a-zA-Z/])[kMG]?ops$|(?<![bB])(?<!bit)(?<!bits)(?<!bytes)/s(ec)?$")
"""Of units that things are done in: not ns/switch, drops, MB/s."""
COUNTS_AND_TIMES = "Counts of work and times can go opposite ways."
MAXIMUM = maximum.PLUGIN.name
EXPLAINED = ("wakeup", "tasks")
"""Benchmarks whose slow wake-ups on exact CPUs `kduel explain` explains."""


class AnswerPart(Struct, frozen=True, kw_only=True):
    """Claims of one part of a run, one a pair of contenders, and sentences on how sure these are and what it lacks, which may be
    empty; all without their full stops."""

    claims: list[str]
    sure: str
    unfinished: str

    @property
    def claim(self) -> str:
        """The claims as sentences."""
        return " ".join(f"{one}." for one in self.claims)

    @property
    def certainty(self) -> str:
        """The other two as sentences."""
        return " ".join(f"{one}." for one in filter(None, (self.sure, self.unfinished)))

    @property
    def text(self) -> str:
        """The whole as sentences."""
        return f"{self.claim} {self.certainty}".rstrip()


class Answer(Struct, frozen=True, kw_only=True):
    parts: list[AnswerPart]
    meaning: str
    """What counts and times are, where they contradict each other; else empty."""
    step: str
    """What the command is for; why none follows where it is empty."""
    command: str

    @property
    def text(self) -> str:
        """The whole as plain sentences."""
        return " ".join(filter(None, [*(part.text for part in self.parts), self.meaning]))


def answer(results: Results, run: str = "RUN") -> Answer:
    """The answer of a run; `run` is its directory as the user may type it."""
    *before, last = results.parts
    parts = [
        *(part_answer(one, "Counted exactly: ") for one in before),
        part_answer(last, f"{evidence(last).label}: " if before else ""),
    ]
    pairs = {pair for one in results.parts for pair in headline.compared_pairs(one)}
    if before and len(pairs) == 1:
        (baseline, contender), timed = pairs.pop(), parts[-1]
        again = f"with {visible(contender, 200)} against {visible(baseline, 200)}, "
        parts[-1] = replace(timed, claims=[timed.claims[0].replace(again, "", 1), *timed.claims[1:]])
    step, command = next_step(results, run)
    return Answer(
        parts=parts, meaning=COUNTS_AND_TIMES if contradicts(before, last) else "", step=step, command=command
    )


def contradicts(counted: Sequence[Results], timed: Results) -> bool:
    """True if counts show the opposite of what times show."""
    shown, seen = (
        {headline.side(m) for one in some for m in one.gating if headline.matters(m)} for some in (counted, [timed])
    )
    return bool({("better", "worse"), ("worse", "better")} & set(itertools.product(shown, seen)))


def part_answer(results: Results, label: str = "") -> AnswerPart:
    """The answer of one part, with its certainty and, where the run did not end, how far it came."""
    compared = headline.compared_pairs(results)
    if results.effects:
        claims = [visible(one.text, 1000) for one in results.headlines[:MOST_EFFECTS]]
        rest, more = len(results.headlines) - MOST_EFFECTS, "more sentence"
    elif len(compared) > MOST_PAIRS and (metrics := all_undecided_alike(results)):
        names = visible(compared[0][0], 200), f"any of {len(compared)} contenders"
        claims = [f"Undecided: {headline.undecided_text(metrics, *names, gating_rule(results).fewest)}"]
        rest, more = 0, ""
    else:
        compared.sort(key=lambda pair: not differing(results, *pair)[1])
        claims = [pair_answer(results, *pair) for pair in compared[:MOST_PAIRS]]
        claims += candidates_claim({pair: differing(results, *pair)[0] for pair in compared}, results, metric_words)
        rest, more = len(compared) - MOST_PAIRS, "more contender"
    claims = [*bound_claims(results), *claims] or ["No two contenders were measured"]
    if label:
        claims[0] = label + re.sub("^With ", "with ", claims[0])
    unfinished = find_unfinished(results)
    return AnswerPart(
        claims=[*claims, *([f"{plural(rest, more)} below"] if rest > 0 else [])],
        sure=certainty(results),
        unfinished=unfinished.text if unfinished else "",
    )


def all_undecided_alike(results: Results) -> list[MetricResult]:
    """The metrics of all pairs where one sentence holds for each: against one baseline, sampled, and nothing but trials is lacking."""
    metrics = [m for m in results.gating if m.n and not m.by_harness]
    own = any(m.decided or m.torn or m.contradicted or m.scale == "exact" for m in metrics)
    whole = {(m.baseline, m.contender) for m in metrics} == set(headline.compared_pairs(results))
    alike = len({m.baseline for m in metrics}) == 1 and whole and not own and find_unfinished(results) is None
    return metrics if alike else []


def pair_answer(results: Results, baseline: str, contender: str) -> str:
    """The largest loss and gain of what matters, and what else there is; the headline where nothing does."""
    metrics, large = differing(results, baseline, contender)
    beside = [] if large else other_differences(results, baseline, contender)
    if not large and not beside:
        return headline.headline_of(results, baseline, contender)
    alone, placed = len(headline.compared_pairs(results)) == 1, all_placed(results)
    named, others = largest_words([*metrics, *beside], large or beside[:1], alone=alone, by_name=placed)
    named += [f"{plural(len(beside) - 1, 'other metric')} differ{'s' * (len(beside) == 2)}"] if beside[1:] else []
    rest = []
    small = sum(headline.shows_difference(m) and m.below_delta for m in metrics)
    same = sum(m.claimed and not headline.shows_difference(m) for m in metrics)
    for count, word in (
        (sum(not m.decided for m in metrics), "undecided"),
        (small, "too small to matter"),
        (same, "equivalent"),
    ):
        rest += [f"{count} {word}"] if count else []
    torn = headline.disagreement(metrics, "metric")
    beginning = f"With {visible(contender, 200)} against {visible(baseline, 200)}"
    sided = [m for m in metrics if m.better != "none"]
    if sided and all(headline.side(m) == "neutral" for m in large):
        whole = plural(len(metrics), "benchmark" if all_placed(results) else "metric")
        counts = f": of {whole}, {', '.join(rest)}" if rest else ""
        if rest and not large and len(rest) == 1:
            counts = f": all {whole} {rest[0].partition(' ')[2]}" if len(metrics) > 1 else ""
        named += [f"others: {', '.join(others)}"] if others else []
        if beside and all(m.better == "none" for m in beside):
            return f"{beginning}, nothing is shown to be {gain_or_loss(sided)}{counts}{torn}"
        return f"{beginning}, nothing is shown to be {gain_or_loss(sided)}{counts}. Besides, {'; '.join(named)}{torn}"
    rest = [*others, *rest]
    return f"{beginning}, {'; '.join(named)}{'. Others: ' if rest else ''}{', '.join(rest)}{torn}"


def gain_or_loss(sided: Sequence[MetricResult]) -> str:
    """`faster or slower in time (wall)`: what none of these is, which have a better side; with the metric where it is one of several."""
    firsts = {m.metric for m in sided}
    fast = all(m.unit in TIME_UNITS or RATE.search(m.unit) for m in sided)
    words = "faster or slower" if fast else "better or worse"
    if len(firsts) > 1 or len(sided) == 1:
        return words
    return f"{words} in {named_time(sided[0].metric, sided[0].unit)}"


def named_time(metric: str, unit: str) -> str:
    """`time (wall)`: the name of a metric, beside what it is where that is a time."""
    name = visible(metric, 100)
    return f"time ({name})" if unit in TIME_UNITS and "time" not in name else name


def largest_words(
    metrics: Sequence[MetricResult], large: Sequence[MetricResult], *, alone: bool, by_name: bool = False
) -> tuple[list[str], list[str]]:
    """`job takes 5.0 % longer (+4.2 to +5.8 %)`: the first loss and gain of `large`, which is ordered; then how many more there are of
    each side. Two of one side where a pair stands `alone`. `metrics` are those among which names must distinguish."""
    sides = [[m for m in large if headline.side(m) == kind] for kind in ("worse", "better", "neutral")]
    foremost = [one[0] for one in sides[:2] if one] or [*large[:1]]
    foremost += [m for one in sides for m in one] if alone else []
    chosen = list({id(m): m for m in foremost}.values())[:2]
    words = [f"{metric_words(m, metrics)} {change_words(m)}{interval_words(m)}" for m in chosen]
    return words, more_words([m for m in large if all(m is not one for one in chosen)], by_name=by_name)


def more_words(others: Sequence[MetricResult], *, by_name: bool) -> list[str]:
    """`4 worse`, `2 better`: the direction of what is not named; `io-large −26 % better` each where they are few and shall be named."""
    kinds = {"worse": "worse", "better": "better", "neutral": "different (neither way is better)"}
    if by_name and len(others) <= MOST_OTHERS:
        return [
            f"{visible(m.benchmark, 200)} {change_size(m)} {kinds[headline.side(m)].partition(' ')[0]}"
            for m in others
        ]
    counts = [(sum(headline.side(m) == kind for m in others), word) for kind, word in kinds.items()]
    return [f"{count} {word}" for count, word in counts if count]


def other_differences(results: Results, baseline: str, contender: str) -> list[MetricResult]:
    """A matrix's metrics that decide and show a difference that matters, besides each benchmark's first one, the largest first."""
    if not all_placed(results):
        return []
    mine = [m for m in results.gating if (m.baseline, m.contender) == (baseline, contender) and not m.by_harness]
    firsts = set(map(id, first_metrics(mine)))
    return sorted((m for m in mine if headline.matters(m) and id(m) not in firsts), key=largest_first)


def first_metrics(metrics: list[MetricResult]) -> list[MetricResult]:
    return list({m.benchmark: m for m in reversed(metrics)}.values())[::-1]


def differing(results: Results, baseline: str, contender: str) -> tuple[list[MetricResult], list[MetricResult]]:
    """Metrics that decide on a pair, and those that differ by what matters, the largest first and maxima last."""
    mine = [m for m in results.metrics if (m.baseline, m.contender) == (baseline, contender)]
    metrics = [m for m in [m for m in mine if m.role == "primary"] or mine if not m.by_harness]
    metrics = first_metrics(metrics) if all_placed(results) else metrics
    large = [m for m in metrics if headline.matters(m)]
    return metrics, sorted(large, key=lambda m: (any(one.code == MAXIMUM for one in m.warnings), *largest_first(m)))


def metric_words(metric: MetricResult, among: Sequence[MetricResult]) -> str:
    """`a hop in a ring of 8 processes (switch-8-0k)`; the code name alone where the operation has no words of its own, and of that the
    benchmark where the change says what is measured and nothing else `among` these is of it."""
    words, name = operation_words(metric)
    alone = sum(one.benchmark == metric.benchmark for one in among) == 1
    plain = metric.statistic in ("value", "mean", "median", "total") and "latency" not in metric.aspect
    says = metric.unit in headline.COUNTING or metric.unit in TIME_UNITS or bool(RATE.search(metric.unit))
    if alone and plain and says and not (words and metric.unit in COUNTS):
        name = visible(metric.benchmark, 200)
    if not words:
        return name
    if RATE.search(metric.unit):
        return f"{name} ({words})"
    long = len(name) > LONGEST_NAME and sum(one.words == metric.words for one in among) == 1
    return words if long else f"{words} ({name})"


def operation_words(metric: MetricResult) -> tuple[str, str]:
    """Words of what is done, empty where there are none, and the metric's code name."""
    name = operation_name(metric) if metric.words and metric.unit in COUNTS else key(metric)
    return visible(metric.words, 200), name


def change_words(metric: MetricResult, size: str = "") -> str:
    """`takes 31.2 % longer`; `size` is the change as it is to be shown."""
    size = size or change_size(metric)
    up, size = size.startswith("+"), size.lstrip("+−")
    if metric.unit in headline.COUNTING:
        verb, what = headline.COUNTING[metric.unit]
        return f"{verb} {size} {'more' if up else 'fewer'} {what}"
    if metric.unit in TIME_UNITS:
        verb, less = ("is", "shorter") if "latency" in f"{metric.aspect}{metric.metric}" else ("takes", "less time")
        times = 1 + (relative_pct(metric) or 0.0) / 100
        if times >= MANIFOLD:
            return f"{verb} {times:,.{1 if times < 10 else 0}f} times as long (+{size})"
        return f"{verb} {size} {'longer' if up else less}"
    if metric.unit in BYTES:
        return f"is {size} {'larger' if up else 'smaller'}"
    if RATE.search(metric.unit):
        return f"does {size} {'more' if up else 'fewer'} {visible(metric.unit, 40)}"
    bare = size.endswith(("%", "points")) or metric.scale != "exact" or metric.unit == "count"
    unit = "" if bare else f" {metric.unit}"
    return f"is {size}{unit} {'higher' if up else 'lower'}"


def change_size(metric: MetricResult) -> str:
    """`+31.2 %`: the change, of counts in per cent, too, where there is a ratio; of a share that was nothing, in points."""
    share = relative_pct(metric) if metric.scale == "exact" else None
    if share is None and metric.scale == "exact" and metric.unit == "%":
        return f"{percent(metric.effect or 0.0).removesuffix(' %')} percentage points"
    return effect(metric) if share is None else percent(share)


def interval_words(metric: MetricResult) -> str:
    """` (+4.2 to +5.8 %)`, and that it is no gain or loss where neither way is better; empty where there is nothing to say."""
    said = ["" if metric.scale == "exact" else interval_text(metric)]
    said += [side_words(metric)] if metric.better == "none" and metric.unit not in COUNTS else []
    return f" ({'; '.join(filter(None, said))})" if any(said) else ""


def next_step(results: Results, run: str) -> tuple[str, str]:
    """A sentence and the command that follows from what was found; the sentence alone says what is lacking, or that nothing is."""
    if not results.trials and not results.metrics:
        return ("To go on:", f"kduel resume {run}") if results.paired else ("Nothing was measured.", "")
    if find_unfinished(results) and may_continue(results):
        return "To go on:", f"kduel resume {run}"
    undecided = [m for m in results.gating if m.open]
    explained = commands_of_parts(results, run)
    if explained and (not undecided or any(map(shows_loss, results.parts))):
        before = loss_of_time(results)
        step, command = explained[0]
        return f"{before} {step}".lstrip(), command
    if not undecided:
        return scheduler_step(results, run) or (why_nothing_follows(results), "")
    seen = in_sight(undecided, results)
    thing = "cell" if len(seen) < len(undecided) else "comparison"
    some = f"{plural(len(seen), thing)} {'is' if len(seen) == 1 else 'are'} undecided"
    rest = some if any(map(headline.matters, results.gating)) else "Undecided"
    sentence = rest + foremost_reason(seen, results)
    if rest == "Undecided" and ONCE in certainty(results):
        remedy = sentence.partition(": ")[2]
        sentence = remedy[:1].upper() + remedy[1:]
    if all(m.torn for m in undecided):
        if parts := results.study.parts:
            one = visible(parts[0].machine, 100) or "One machine"
            found = f"kduel report {run}/{parts[0].directory}"
            return (
                f"More blocks cannot settle that: look for what differs between the machines. {one} by itself:",
                found,
            )
        return "More blocks cannot settle that: look for what differs between the machines.", ""
    if all(m.torn or m.contradicted for m in undecided):
        return sentence, ""
    if (most := max(m.n for m in undecided)) < FEWEST_PLANNED:
        wanted = blocks_wanted(undecided, results)
        if most and wanted and (command := command_of_blocks(results, run, wanted)):
            return f"{sentence.partition(':')[0].rstrip('.')}. To measure {wanted} blocks:", command
        return sentence, ""
    if not (more := [m for m in undecided if not (m.torn or m.contradicted or reason_of_findings(m))]):
        return sentence, ""
    short = f"{rest}{foremost_reason(in_sight(more, results), results)}".partition(":")[0].rstrip(".")
    if not results.paired:
        return (
            f"{short}. Ask the authors for more trials, or add your own. To see how many it takes:",
            f"kduel plan {run}",
        )
    return f"{short}. Measure more blocks. To see how many it takes:", f"kduel plan {run}"


def in_sight(undecided: list[MetricResult], results: Results) -> list[MetricResult]:
    """Those that the cells of a matrix show, where there are any: the answer counts them."""
    if not all_placed(results):
        return undecided
    firsts = {id(m) for pair in headline.compared_pairs(results) for m in differing(results, *pair)[0]}
    return [m for m in undecided if id(m) in firsts] or undecided


def blocks_wanted(undecided: Sequence[MetricResult], results: Results) -> int:
    """Ten; of exact CPUs as many as have conditions enough, 0 where they have none."""
    if not any(m.few for m in undecided):
        return TEN
    if not all(m.pairs for m in undecided):
        return 0
    needed = fewest(chance_of_sign, results.study.alpha / len(results.gating))
    return -(-needed // max(1, min(len(m.pairs) // m.n for m in undecided)))


def scheduler_step(results: Results, run: str) -> tuple[str, str] | None:
    """The command that shows what schedulers did otherwise, where the run can tell."""
    kinds = {step.label: step.benchmark for step in results.steps}
    woken = [m for m in results.gating if headline.shows_difference(m) and kinds.get(m.benchmark) in EXPLAINED]
    if woken and results.machine.settings.get("scheduling"):
        largest = min(woken, key=largest_first)
        return "Which tasks had the CPU while slow wake-ups waited:", explain_command(results, run, largest)
    if any(metric.group == GROUP for metric in results.metrics):
        return "How the scheduler's counters differ:", f"kduel explain {run} --scheduler"
    return None


def why_nothing_follows(results: Results) -> str:
    """Sentence on why no command does, where nothing is left undecided."""
    if any(m.hint and headline.shows_difference(m) for m in results.gating) and results.paired:
        return "For verdicts in place of hints, name primary metrics in the study and measure again."
    if any(m.depends for m in results.gating):
        return "No further trial decides what depends on conditions."
    for note in number_notes(results).notes:
        if note.entries[0].weight >= HEAVY and note.code != HARNESS:
            return (
                f"Nothing is left to decide, but finding [{note.number}] may upset it: {note.cause or note.message}."
            )
    if results.machine.unreal:
        return "Before you decide, measure on a real machine: this one was emulated."
    return "Nothing is left to decide: no further trial is needed."
