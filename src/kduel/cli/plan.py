"""`kduel plan`: the blocks and time that a verdict needs, from the noise of an earlier run."""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

import click

from kduel.cli.completions import complete_runs
from kduel.cli.options import NamedPath, alpha_option, delta_option, format_option, mode_option, option, output_option
from kduel.cli.output import emit, emit_json
from kduel.core.errors import InputError, unknown_name
from kduel.core.format import duration
from kduel.core.text import fold, plural, printable
from kduel.judge.verdict.rule import Rule

if TYPE_CHECKING:
    from kduel.core.samples import Samples
    from kduel.judge.verdict.allocation import Allocation, Allocations, Times
    from kduel.judge.verdict.sample_size import Division, VerdictCost
    from kduel.store.documents import TrialRecord


@click.command()
@click.argument("pilot", type=NamedPath(), metavar="RUN|FILE.csv", shell_complete=complete_runs)
@option("--metric keys", "Metric to plan for.  [default: the primary ones]", metavar="STEP/METRIC", multiple=True)
@delta_option("RUN's, or 1")
@alpha_option
@option("--block-seconds", "Duration of a block.  [default: as in RUN]", float, "S")
@option("--boot-seconds", "Duration of a boot with settling, without benchmarks (for a CSV).", float, "S")
@option("--iteration-seconds", "Duration of one iteration of the benchmark (for a CSV).", float, "S")
@format_option("text", "json")
@output_option
@mode_option("--simulate", "Simulate the verdict rule on synthetic or measured noise.")
def command(
    pilot: Path,
    keys: tuple[str, ...],
    delta: float | None,
    alpha: float | None,
    block_seconds: float | None,
    boot_seconds: float | None,
    iteration_seconds: float | None,
    form: str,
    output: Path | None,
) -> None:
    """Estimate the number of blocks, and the time, that a verdict will need.

    RUN is the directory of an earlier run, short or long, on the same machine with the same benchmarks; it needs five
    blocks. A CSV (contender,trial,benchmark,metric,unit,better,value) may hold several values of a metric in one
    trial, the iterations within a boot: then the best number of iterations is estimated, too.
    """
    from kduel.judge.verdict.allocation import allocate
    from kduel.judge.verdict.comparison import compare
    from kduel.judge.verdict.judge import split
    from kduel.judge.verdict.sample_size import divide

    for name, given in (
        ("--block-seconds", block_seconds),
        ("--boot-seconds", boot_seconds),
        ("--iteration-seconds", iteration_seconds),
    ):
        if given is not None and not 0 < given < 1e9:
            raise InputError(f"{name} is {given:g}", "Give the seconds that it takes.")
    iterations: dict[str, dict[str, list[list[float]]]] = {}
    times: Times | None = None
    if pilot.is_dir():
        rule, samples, seen_seconds, times = read_run(pilot)
        block_seconds = block_seconds if block_seconds is not None else seen_seconds
    else:
        from kduel.judge.verdict.pilot import read_pilot

        rule, read = Rule(), read_pilot(pilot)
        samples, iterations = read.samples, read.iterations
    measured = max((len(table.blocks) for table in samples), default=0)
    own = with_settings(rule, delta, alpha)
    # The rule of a coming run: the present edition, with interim analyses as usual.
    most = max(own.max_blocks, Rule().max_blocks, measured)
    rule = Rule(delta_pct=own.delta_pct, alpha=own.alpha, max_blocks=most, in_turns=own.in_turns)
    chosen = choose_metrics(samples, keys)
    share = split(chosen, rule)
    costs, silent = estimate_costs(chosen, rule, own, share, block_seconds)
    tables = [table.key for table in chosen if table.key in iterations]
    found = [
        divide(key, list(iterations[key].values()), rule, share, boot_seconds, iteration_seconds) for key in tables
    ]
    division = [part for part in found if part is not None]
    spent = allocate(list(compare(chosen, rule)), rule, share, times)
    if form == "json":
        answer = {"schema": 1, "rule": rule, "costs": costs, "no_cost": silent, "iterations": division}
        emit_json(answer | {"allocation": spent}, output)
    else:
        lines = [
            *cost_lines(costs, silent, rule, spent),
            *division_lines(division),
            *allocation_lines(spent, rule),
            "",
        ]
        emit(printable("\n".join(line for one in lines for line in fold(one))), output)


def read_run(path: Path) -> tuple[Rule, list[Samples], float | None, Times | None]:
    """A run's rule, its numbers, how long a block of it took, and what its slices took where it has any."""
    from kduel.judge.evaluate import rule_of
    from kduel.judge.factors import gating
    from kduel.judge.imported import rule_of as imported_rule
    from kduel.store.collect import PreparedSteps, collect
    from kduel.store.integrity import trials_of
    from kduel.store.rundir import RunDir

    run = RunDir.open(path)
    samples = list(collect(path))
    if run.imported:
        return imported_rule(path), samples, None, None
    lock = run.lock()
    valid = [record for record in trials_of(run, lock) if record.status != "void" and record.seconds > 0]
    seconds: dict[str, list[float]] = {}
    for record in valid:
        seconds.setdefault(record.contender, []).append(record.seconds)
    known = len(seconds) == len(lock.contenders)
    samples = gating(samples, lock.design)
    block = sum(sum(each) / len(each) for each in seconds.values()) if known else None
    return rule_of(lock), samples, block, times_of(valid, PreparedSteps(lock.steps, lock.blocks).slice_labels())


def times_of(trials: list[TrialRecord], labels: dict[str, list[str]]) -> Times | None:
    """Seconds that slices and the rest of a trial take; None where nothing was cut, or it is not recorded."""
    from kduel.judge.verdict.allocation import Times

    recorded = [one for one in trials if all(name in one.host for names in labels.values() for name in names)]
    if not labels or not recorded:
        return None
    slices = {
        step: mean(mean(one.host[name].seconds for name in names) for one in recorded)
        for step, names in labels.items()
    }
    cut = sum(each * len(labels[step]) for step, each in slices.items())
    return Times(boot=mean(one.seconds for one in recorded) - cut, slices=slices)


def with_settings(rule: Rule, delta: float | None, alpha: float | None) -> Rule:
    """The run's own rule with the command line's settings. Raises InputError."""
    import msgspec

    return msgspec.structs.replace(
        rule, delta_pct=rule.delta_pct if delta is None else delta, alpha=rule.alpha if alpha is None else alpha
    )


def choose_metrics(samples: list[Samples], keys: tuple[str, ...]) -> list[Samples]:
    """The requested metrics, else the primary ones, else all; as primary ones. Raises InputError."""
    import msgspec

    known = [table.key for table in samples]
    unknown = [key for key in keys if key not in known]
    if unknown:
        raise unknown_name(f"the pilot has no metric {unknown[0]!r}", unknown[0], known)
    chosen = [table for table in samples if table.key in keys or (table.primary and not keys)] or samples
    return [msgspec.structs.replace(table, primary=True) for table in chosen]


def estimate_costs(
    chosen: list[Samples], rule: Rule, own: Rule, share: float, block_seconds: float | None
) -> tuple[list[VerdictCost], list[str]]:
    """The cost of each metric, and the names of those without an estimate. `own` is the rule of the pilot's own reports, which
    state what it takes "as measured". Raises InputError where none has one."""
    from kduel.judge.verdict.comparison import compare
    from kduel.judge.verdict.judge import assess_primary
    from kduel.judge.verdict.sample_size import cost

    costs: list[VerdictCost] = []
    silent: list[str] = []
    for c, as_reported in zip(compare(chosen, rule), compare(chosen, own), strict=True):
        found = cost(c, share, block_seconds)
        if found is not None and found.paired and (more := assess_primary(as_reported, share).more) is not None:
            found.seen_effect = len(as_reported.blocks) + more
        if found is None:
            silent.append(f"{c.table.key}, {c.contender}")
        else:
            costs.append(found)
    if not costs:
        raise InputError(
            "no metric of the pilot has an estimate of its variation",
            "It takes five complete blocks and values above zero; measure some more, or name another --metric.",
        )
    return costs, silent


def cost_lines(costs: list[VerdictCost], silent: list[str], rule: Rule, spent: Allocations) -> list[str]:
    from kduel.judge.verdict.wording import HOPELESS

    lines = [
        f"Blocks for a verdict at delta {rule.delta_pct:g} %, alpha {rule.alpha:g} over {len(costs)} comparison(s), "
        "power 80 % (76 to 78 % below 15 blocks):",
        "",
        "                 if equal   if equal,     to find  to find an        as              delta in",
        f"pairs   spread    blocks     safely       delta interaction  measured      time {f'{rule.max_blocks} blocks':>10}",
    ]
    for cost in costs:
        lines += (
            f"{cost_name(cost)}\n{cost.pairs:>5} {cost.spread_pct:>7.2f}% {format_count(cost.no_difference):>9}"
            f" {format_count(cost.no_difference_safe):>10} {format_count(cost.delta_difference):>11} {format_count(cost.interaction):>11} {format_count(cost.seen_effect):>9} {time_of(cost.seconds):>9}"
            f" {cost.delta_reached_pct:>8.2f} %"
        ).split("\n")
    hopeless = [cost for cost in costs if cost.no_difference is None or cost.no_difference > HOPELESS]
    needed = max((cost.no_difference or 0 for cost in costs if cost not in hopeless), default=0)
    lines.append("")
    if needed:
        safe = max((cost.no_difference_safe or 0 for cost in costs if cost not in hopeless), default=0)
        seen = f", {needed} if the spread is as in the pilot" if safe > needed else ""
        lines.append(
            f"--max-blocks {max(safe, needed)} would suffice{' for the rest' if hopeless else ''}{seen}; "
            "large effects end a run sooner."
        )
    advice = {(one.benchmark, one.metric, one.contender): one.advice for one in spent.metrics}
    for cost in hopeless:
        lines.insert(
            -1 if needed else len(lines),
            f"{cost_name(cost)} varies too much for {rule.delta_pct:g} %: "
            f"{ADVICE[advice.get((cost.benchmark, cost.metric, cost.contender))]}; or accept a delta of "
            f"{cost.delta_reached_pct:.1f} %.",
        )
    lines.append(
        '"As measured": blocks in all, if effect and spread stay as in the pilot, by its own analyses; reports state how many '
        "more these are. - if it is decided."
    )
    lines.append('"Safely": if the spread is as high as so few pairs cannot exclude (its upper bound at 80 %).')
    lines.append(
        '"An interaction": as large as delta, where a study crosses the pair with a factor of two levels ([[factor]]).'
    )
    if not all(cost.paired for cost in costs):
        lines.append(
            "These values are not paired, so the spread is that of independent ones (pairs: the values of the smaller "
            "contender); blocks of a run may need fewer."
        )
    if silent:
        lines.append(f"No cost can be estimated for: {'; '.join(silent)}.")
    return lines


def cost_name(cost: VerdictCost) -> str:
    return f"{cost.benchmark}/{cost.metric}, {cost.contender}"


def format_count(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def time_of(seconds: float | None) -> str:
    return "unknown" if seconds is None else duration(seconds)


def division_lines(division: list[Division]) -> list[str]:
    """Lines about boots against iterations."""
    if not division:
        return []
    lines = ["", "Boots against iterations within a boot (Kalibera and Jones, 2013):"]
    for part in division:
        line = (
            f"{part.metric} varies by {part.between_boots_pct:.2f} % between boots, "
            f"by {part.within_boots_pct:.2f} % from iteration to iteration"
        )
        if part.best_iterations is not None:
            best = plural(part.best_iterations, "iteration")
            line += f"; {best} a boot serve{'s' * (part.best_iterations == 1)} best"
            if part.blocks is not None:
                line += f", with {plural(part.blocks, 'block')}, {time_of(part.seconds)}"
        lines.append(line + ".")
    if division[0].best_iterations is None:
        lines.append("With --boot-seconds and --iteration-seconds the best number of iterations is printed.")
    return lines


ADVICE = {
    None: "measure in slices, to tell moments from boots",
    "more-blocks": "take more blocks, as most comes from the boots",
    "more-slices": "take more slices",
    "longer-slices": "take longer slices, as most comes from within them",
}


def allocation_lines(spent: Allocations, rule: Rule) -> list[str]:
    """Lines about the sources of the spread, and the best use of the time."""
    if not spent.metrics:
        return []
    width = max(len(f"{one.benchmark}/{one.metric}, {one.contender}") for one in spent.metrics)
    lines = [
        "",
        "Where the spread comes from, in per cent (that of blocks cancels in the ratio; that of slices is of a single one, and "
        "averages out over a trial's):",
        "",
        f"{'':{width}}  blocks   boots  slices  within them",
    ]
    for one in spent.metrics:
        parts = one.components
        figures = [parts.blocks_pct, parts.boots_pct, parts.slices_pct, parts.within_pct]
        cells = ["-" if figure is None else f"{figure:.2f}" for figure in figures]
        best = f"; {one.best_slices} of them a boot serve this metric best" if one.best_slices else ""
        name = f"{one.benchmark}/{one.metric}, {one.contender}"
        lines.append(f"{name:{width}} {cells[0]:>7} {cells[1]:>7} {cells[2]:>7} {cells[3]:>12}")
        lines.append(f"    {ADVICE[one.advice]}{best}")
    if spent.best is not None:
        lines += ["", f"To ±{rule.delta_pct:g} % in the least time: {spending(spent.best)}."]
        if spent.now is not None and spent.now.slices != spent.best.slices:
            lines.append(f"As it is cut now: {spending(spent.now)}.")
        lines.append("Slices as long as now: give each step that many times its slice's time.")
    return lines


def spending(one: Allocation) -> str:
    """`4 slices of each step, 12 blocks, 9 min`."""
    return f"{plural(one.slices, 'slice')} of each step that is cut, {plural(one.blocks, 'block')}, {time_of(one.seconds)}"
