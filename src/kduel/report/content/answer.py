"""The answer to a run's question in a few words, over its exact and its timed part, and what to type next: reports begin with it.

It says what the verdicts of the metrics that decide hold, and nothing else: the largest gain and loss by name, else the headline.
"""

from collections.abc import Sequence

from msgspec import Struct

from kduel.benchmarks.support.schedstat import GROUP
from kduel.core.format import effect, interval_text, percent, plain_number, relative_pct
from kduel.core.metric_results import BYTES, COUNTS, HARNESS, MetricResult
from kduel.core.results import Results
from kduel.core.text import plural, visible
from kduel.judge.lint.findings import maximum
from kduel.judge.verdict.comparison import TIME_UNITS
from kduel.judge.verdict.headline import COUNTING, compared_pairs, disagreement, headline_of, shows_difference, side
from kduel.judge.verdict.unfinished import EMULATED, find_unfinished, may_continue
from kduel.report.content.counted import commands_of_parts, explain_command
from kduel.report.content.counted import name as operation_name
from kduel.report.content.digest import largest_first
from kduel.report.content.evidence import evidence
from kduel.report.content.matrixtext import all_placed
from kduel.report.content.notes import key, number_notes
from kduel.report.content.undecided import foremost_reason

MOST_PAIRS = 3
"""Contenders that are answered one by one."""
MOST_EFFECTS = 2
MANIFOLD = 3.0
"""From here on a time is said to be so many times as long."""
LONGEST_NAME = 30
"""Of a code name beside its words."""
FEWEST_PLANNED = 5
"""Blocks that `kduel plan` takes."""
HEAVY = 86
"""Weight of a finding with which a verdict is not the last word."""
RATES = ("/s", "ops", "Hz")
MAXIMUM = maximum.PLUGIN.name
EXPLAINED = ("wakeup", "tasks")
"""Benchmarks whose slow wake-ups on exact CPUs `kduel explain` explains."""


class AnswerPart(Struct, frozen=True, kw_only=True):
    """Claim of one part of a run, and clause on how sure that is and what it lacks, which may be empty."""

    claim: str
    sure: str

    @property
    def text(self) -> str:
        """Both as one sentence."""
        return f"{self.claim} ({self.sure})." if self.sure else f"{self.claim}."


class Answer(Struct, frozen=True, kw_only=True):
    """An answer, which a reader wants to know first."""

    parts: list[AnswerPart]
    step: str
    """What the command is for; why none follows where it is empty."""
    command: str

    @property
    def text(self) -> str:
        """The whole as plain sentences."""
        return " ".join(part.text for part in self.parts)

    @property
    def next(self) -> str:
        """The step that follows, in a line."""
        return f"{self.step} {self.command}".strip()


def answer(results: Results, run: str = "RUN") -> Answer:
    """The answer of a run; `run` is its directory as the user may type it."""
    *before, last = results.parts
    parts = [
        *(part_answer(one, "Counted exactly: ") for one in before),
        part_answer(last, f"{evidence(last).label}: " if before else ""),
    ]
    step, command = next_step(results, run)
    return Answer(parts=parts, step=step, command=command)


def part_answer(results: Results, label: str = "") -> AnswerPart:
    """The answer of one part, with its certainty and, where the run did not end, how far it came."""
    if results.effects:
        found = [visible(one.text, 1000) for one in results.headlines]
        pairs, rest = found[:MOST_EFFECTS], len(found) - MOST_EFFECTS
        more = f"; {plural(rest, 'more sentence')} below" if rest > 0 else ""
    else:
        compared = sorted(compared_pairs(results), key=lambda pair: not differing(results, *pair)[1])
        pairs, rest = [pair_answer(results, *pair) for pair in compared[:MOST_PAIRS]], len(compared) - MOST_PAIRS
        more = f"; {plural(rest, 'more contender')} below" if rest > 0 else ""
    first, *others = pairs or ["No two contenders were measured"]
    claim = first + "".join(f"{'.' if one[:1].isupper() else ';'} {one}" for one in others) + more
    claim = f"W{claim[1:]}" if not label and claim.startswith("with ") else claim
    notes = [certainty(results)] if any(map(shows_difference, results.gating)) else []
    if unfinished := find_unfinished(results):
        notes.append(f"{unfinished.blocks}, not finished")
    return AnswerPart(claim=f"{label}{claim}", sure="; ".join(filter(None, notes)))


def pair_answer(results: Results, baseline: str, contender: str) -> str:
    """The largest loss and gain of what matters; the headline where nothing does."""
    metrics, large = differing(results, baseline, contender)
    if not large:
        return headline_of(results, baseline, contender)
    sides = [[m for m in large if side(m) == kind] for kind in ("worse", "better", "neutral")]
    foremost = [one[0] for one in sides[:2] if one] or large[:1]
    if len(compared_pairs(results)) == 1:
        foremost += [m for one in sides for m in one]
    chosen = list({id(m): m for m in foremost}.values())[:2]
    words = [f"{metric_words(m, metrics)} {change_words(m)}{interval_words(m)}" for m in chosen]
    more = f"{others} more {'differs' if others == 1 else 'differ'}" if (others := len(large) - len(chosen)) else ""
    firsts = first_metrics(metrics) if all_placed(results) else metrics
    count, kinds = sum(not m.decided for m in firsts), {m.metric for m in firsts}
    of_what = f" ({kinds.pop()})" if all_placed(results) and len(kinds) == 1 else ""
    undecided = f"undecided in {count} of {len(firsts)}{of_what}" if count else ""
    said = [*words, more, undecided]
    if len(firsts) < len(metrics):
        said = [undecided, f"of the {len(metrics) - len(firsts)} others, {words[0]}", *words[1:], more]
    names = f"{visible(contender, 200)} against {visible(baseline, 200)}"
    return f"with {names}, {'; '.join(filter(None, said))}" + disagreement(metrics, "metric")


def first_metrics(metrics: list[MetricResult]) -> list[MetricResult]:
    """The first metric of each benchmark."""
    return list({m.benchmark: m for m in reversed(metrics)}.values())[::-1]


def differing(results: Results, baseline: str, contender: str) -> tuple[list[MetricResult], list[MetricResult]]:
    """Metrics that decide on a pair, in a matrix a benchmark's first one; and those that differ by what matters, the largest first
    and maxima, which one sample decides, last."""
    mine = [m for m in results.metrics if (m.baseline, m.contender) == (baseline, contender)]
    metrics = [m for m in [m for m in mine if m.role == "primary"] or mine if not m.by_harness]
    if all_placed(results):
        firsts = first_metrics(metrics)
        metrics = firsts if any(shows_difference(m) for m in firsts) else metrics
    large = [m for m in metrics if shows_difference(m) and not m.below_delta]
    return metrics, sorted(large, key=lambda m: (any(one.code == MAXIMUM for one in m.warnings), *largest_first(m)))


def metric_words(metric: MetricResult, among: Sequence[MetricResult]) -> str:
    """`a hop in a ring of 8 processes (switch-8-0k)`; the code name alone where the operation has no words of its own, and of that the
    benchmark where the change says what is measured and nothing else `among` these is of it."""
    words, name = operation_words(metric)
    alone = sum(one.benchmark == metric.benchmark for one in among) == 1
    plain = metric.statistic in ("value", "mean", "median", "total") and "latency" not in metric.aspect
    says = metric.unit in COUNTING or metric.unit in TIME_UNITS or any(word in metric.unit for word in RATES)
    if alone and plain and says and not (words and metric.unit in COUNTS):
        name = visible(metric.benchmark, 200)
    if not words:
        return name
    if any(word in metric.unit for word in RATES):
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
    if metric.unit in COUNTING:
        verb, what = COUNTING[metric.unit]
        return f"{verb} {size} {'more' if up else 'fewer'} {what}"
    if metric.unit in TIME_UNITS:
        times = 1 + (relative_pct(metric) or 0.0) / 100
        if times >= MANIFOLD:
            return f"takes {times:,.{1 if times < 10 else 0}f} times as long"
        return f"takes {size} {'longer' if up else 'less time'}"
    if metric.unit in BYTES:
        return f"is {size} {'larger' if up else 'smaller'}"
    if any(word in metric.unit for word in RATES):
        return f"does {size} {'more' if up else 'less'}"
    unit = f" {metric.unit}" if "%" not in size and metric.scale == "exact" and metric.unit != "count" else ""
    return f"is {size}{unit} {'higher' if up else 'lower'}"


def change_size(metric: MetricResult) -> str:
    """`+31.2 %`: the change, of counts in per cent, too, where there is a ratio; of a share that was nothing, in points."""
    share = relative_pct(metric) if metric.scale == "exact" else None
    if share is None and metric.scale == "exact" and metric.unit == "%":
        share = metric.effect
    return effect(metric) if share is None else percent(share)


def interval_words(metric: MetricResult) -> str:
    """The interval behind a change that has one."""
    return "" if metric.scale == "exact" else f" ({interval_text(metric)})"


def certainty(results: Results) -> str:
    """Clause on how sure the differences are, and on what they are not."""
    metrics: Sequence[MetricResult] = [m for m in results.gating if shows_difference(m)]
    hints = "hints, as the study declares no primary metric" if any(m.hint for m in metrics) else ""
    if all(m.scale == "exact" for m in metrics):
        return hints if evidence(results).varies else "exact, in virtual time" if results.machine.resolution else ""
    together = " for all of them together" if len(results.gating) > 1 else ""
    sure = hints or f"{plain_number(round(100 * (1 - results.study.alpha), 3))} % confidence{together}"
    return f"{sure}; {EMULATED}" if results.machine.timing_warning else sure


def next_step(results: Results, run: str) -> tuple[str, str]:
    """A sentence and the command that follows from what was found; the sentence alone says what is lacking, or that nothing is."""
    if not results.trials and not results.metrics:
        return ("To go on:", f"kduel resume {run}") if results.paired else ("Nothing was measured.", "")
    if find_unfinished(results) and may_continue(results):
        return "To go on:", f"kduel resume {run}"
    for step in commands_of_parts(results, run):
        return step
    undecided = [m for m in results.gating if m.open]
    if not undecided:
        return scheduler_step(results, run) or (why_nothing_follows(results), "")
    whole = sum(not m.by_harness for m in results.gating)
    which = "Undecided" if len(undecided) == whole else f"{len(undecided)} of {plural(whole, 'verdict')} undecided"
    sentence = which + foremost_reason(undecided, results)
    if all(m.torn for m in undecided):
        return "More blocks cannot settle that: judge each machine by itself.", ""
    if all(m.torn or m.contradicted for m in undecided):
        return sentence, ""
    if (most := max(m.n for m in undecided)) < FEWEST_PLANNED:
        more = " Ten blocks take the same command with --blocks 10." if results.paired and most else ""
        return sentence + more, ""
    short = sentence.partition(":")[0].rstrip(".")
    return f"{short}. How many {'blocks' if results.paired else 'trials'} that takes:", f"kduel plan {run}"


def scheduler_step(results: Results, run: str) -> tuple[str, str] | None:
    """The command that shows what schedulers did otherwise, where the run can tell."""
    kinds = {step.label: step.benchmark for step in results.steps}
    woken = [m for m in results.gating if shows_difference(m) and kinds.get(m.benchmark) in EXPLAINED]
    if woken and results.machine.settings.get("scheduling"):
        largest = min(woken, key=largest_first)
        return "Which tasks had the CPU while slow wake-ups waited:", explain_command(results, run, largest)
    if any(metric.group == GROUP for metric in results.metrics):
        return "How the scheduler's counters differ:", f"kduel explain {run} --scheduler"
    return None


def why_nothing_follows(results: Results) -> str:
    """Sentence on why no command does, where nothing is left undecided."""
    if any(m.hint and shows_difference(m) for m in results.gating) and results.paired:
        return "For verdicts in place of hints, name primary metrics in the study and measure again."
    if any(m.depends for m in results.gating):
        return "No further trial decides what depends on conditions."
    for note in number_notes(results).notes:
        if note.entries[0].weight >= HEAVY and note.code != HARNESS:
            return (
                f"Nothing is left to decide, but finding [{note.number}] may upset it: {note.cause or note.message}."
            )
    real = "; the times of real hardware take a real machine" if results.machine.timing_warning else ""
    return f"Nothing is left to decide: no further trial is needed{real}."
