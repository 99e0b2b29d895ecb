"""`kduel plan --simulate`: the operating characteristics of the verdict rule, by simulation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct, structs, to_builtins

from kduel.cli.completions import complete_runs as complete_runs
from kduel.cli.options import NamedPath, alpha_option, delta_option, format_option, option, output_option, plot_option
from kduel.cli.output import emit, emit_json, write_plot
from kduel.cli.terminal import Terminal
from kduel.core.errors import InputError, unknown_name
from kduel.core.format import with_sign
from kduel.core.text import printable
from kduel.judge.verdict.rule import Rule

if TYPE_CHECKING:
    from kduel.judge.verdict.calibrate import Characteristics
    from kduel.judge.verdict.comparison import Comparison
    from kduel.judge.verdict.noise import Noise

NOISES = ("normal", "floor", "bimodal", "heavy", "drift")


class SimulationOptions(Struct, frozen=True, kw_only=True):
    run: Path | None
    names: tuple[str, ...]
    spread: float
    keys: tuple[str, ...]
    effects: str
    runs: int
    metrics: int | None
    delta: float | None
    alpha: float | None
    max_blocks: int | None
    blocks: int | None
    seed: int
    form: str
    output: Path | None
    plot: Path | None


@click.command()
@click.argument("run", required=False, type=NamedPath(), metavar="[RUN]", shell_complete=complete_runs)
@option("--noise names", "Simulated noise.  [default: all]", click.Choice(NOISES), multiple=True)
@option("--spread", "Standard deviation of B/A within a block, in %.", float, "PCT", default=1.0)
@option("--metric keys", "Metric of RUN.  [default: its primary ones]", metavar="STEP/METRIC", multiple=True)
@option("--effects", "True effects to simulate, in %.", metavar="LIST", default="0,0.5,1,2,3,5")
@option("--runs", "Runs to simulate.", click.IntRange(100, 1_000_000), "N", default=4000)
@option("--metrics", "Number of primary metrics of a run.  [default: RUN's, or 1]", click.IntRange(1, 1000), "N")
@delta_option("RUN's, or 1")
@alpha_option
@option("--max-blocks", "Maximum number of blocks.  [default: RUN's, or 20]", click.IntRange(1, 100_000), "N")
@option("--blocks", "Fixed sample size: exactly N blocks, one analysis at the end.", click.IntRange(1, 100_000), "N")
@option("--seed", "Seed of the simulation.", click.IntRange(0), "N", default=1)
@format_option("text", "json")
@output_option
@plot_option("verdicts and blocks by true effect")
def command(**given: Any) -> None:
    """Simulate the verdict rule: its false-positive rate, its power, and the blocks that it needs.

    Without RUN the noise is simulated, with a given spread. With RUN, the directory of a finished run, it is resampled
    from that run. Simulated runs are judged by the code that judges real ones. Of an import only the noise is used: the
    rule is that of a run to come.
    """
    from kduel.judge.verdict.calibrate import sweep
    from kduel.judge.verdict.noise import made_up

    options = SimulationOptions(**given)
    run, tried = options.run, read_effects(options.effects)
    rule, metrics = choose_rule(options), options.metrics
    if run is None:
        if options.keys:
            raise InputError(
                "--metric names a metric of a run, and there is no RUN", "Name the run's directory first."
            )
        noises = [made_up(name, options.spread) for name in options.names or NOISES]
    else:
        if options.names:
            raise InputError("a RUN and --noise are both given", "Leave one of them out.")
        from kduel.judge.verdict.comparison import compare
        from kduel.store.collect import collect

        samples = collect(run)
        blocks = max((len(table.blocks) for table in samples), default=0)
        # All blocks that were measured are of use here, whatever the rule's maximum.
        found = compare(samples, structs.replace(rule, max_blocks=max(blocks, rule.max_blocks)))
        metrics = metrics or sum(c.table.primary for c in found)
        noises = estimate_noise(select_comparisons(found, run, options.keys))
    with Terminal().task("simulating", total=len(noises) * len(tried) * options.runs) as task:
        outcomes = sweep(
            rule, noises, tried, runs=options.runs, seed=options.seed, metrics=metrics or 1, progress=task.advance
        )
    if options.form == "json":
        emit_json(as_document(rule, noises, outcomes), options.output)
    else:
        emit(printable(as_text(rule, noises, outcomes)) + "\n", options.output)
    if options.plot is not None:
        from kduel.report.plots.calibration import specification
        from kduel.report.plots.effects import svg

        write_plot(options.plot, svg(specification(outcomes, rule)))


def read_effects(text: str) -> list[float]:
    """The numbers of --effects. Raises InputError."""
    try:
        found = [float(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(-90 <= value <= 1000 for value in found):
        raise InputError(f"--effects {text!r} is no list of per cents", "Give numbers with commas, such as 0,1,2.5.")
    return found


def choose_rule(options: SimulationOptions) -> Rule:
    """The rule of the run, or the default, with the command line's settings. Raises InputError."""
    blocks, max_blocks = options.blocks, options.max_blocks
    if blocks is not None and max_blocks is not None:
        raise InputError("--blocks and --max-blocks are both given", "Leave one of them out.")
    rule = Rule() if options.run is None else read_rule(options.run)
    said = {"delta_pct": options.delta, "alpha": options.alpha, "max_blocks": max_blocks}
    rule = structs.replace(rule, **{name: value for name, value in said.items() if value is not None})
    if max_blocks is not None:
        # A run of a fixed number of blocks has no looks on the way; one with a maximum has the usual ones.
        rule = Rule(delta_pct=rule.delta_pct, alpha=rule.alpha, max_blocks=max_blocks, in_turns=rule.in_turns)
    if blocks is None:
        return rule
    return Rule.fixed_blocks(blocks, delta_pct=rule.delta_pct, alpha=rule.alpha, in_turns=rule.in_turns)


def read_rule(path: Path) -> Rule:
    """The rule that a run was planned by; for imported values the rule of a run to come, by their noise."""
    from kduel.judge.evaluate import rule_of
    from kduel.judge.imported import rule_of as imported_rule
    from kduel.store.rundir import RunDir

    run = RunDir.open(path)
    return Rule(delta_pct=imported_rule(path).delta_pct) if run.imported else rule_of(run.lock())


def select_comparisons(found: list[Comparison], path: Path, keys: tuple[str, ...]) -> list[Comparison]:
    """Those that were requested, or else the primary ones, or else all. Raises InputError where there is none."""
    known = {c.table.key for c in found}
    unknown = [key for key in keys if key not in known]
    if unknown:
        raise unknown_name(f"{path} has no metric {unknown[0]!r}", unknown[0], sorted(known))
    wanted = [c for c in found if c.table.key in keys] if keys else [c for c in found if c.table.primary] or found
    if not wanted:
        raise InputError(f"{path} has no values", "Name a run that has measured something.")
    return wanted


def estimate_noise(found: list[Comparison]) -> list[Noise]:
    """The noise of a run's metrics; those without an estimate are named on stderr. Raises InputError where none has one."""
    from kduel.judge.verdict.noise import resample_noise

    noises: list[Noise] = []
    refused: list[InputError] = []
    for c in found:
        try:
            noises.append(resample_noise(c))
        except InputError as error:
            refused.append(error)
    if not noises:
        raise refused[0]
    for reason in refused:
        click.echo(printable(f"left out: {reason.message}"), err=True)
    return noises


def as_text(rule: Rule, noises: list[Noise], outcomes: list[Characteristics]) -> str:
    """Tables, one for each noise, with their explanation."""
    looks = rule.looks()
    said = f"a look at {', '.join(map(str, looks[:8]))}{', ...' if len(looks) > 8 else ''} blocks"
    lines = [
        f"Rule: delta {rule.delta_pct:g} %, alpha {rule.alpha:g}, {said}.",
        f"{outcomes[0].runs:,} simulated runs a line, {outcomes[0].metrics} primary metric(s) each.",
    ]
    for noise in noises:
        lines += ["", f"{noise.name}: {noise.about}" if noise.about != noise.name else noise.name]
        lines.append(
            f"{'effect':>8} {'higher':>8} {'lower':>8} {'equivalent':>11} {'undecided':>10}   blocks: mean, 9 in 10"
        )
        for o in outcomes:
            if o.noise == noise.name:
                effect = f"{with_sign(o.effect_pct, 'g')} %" if o.effect_pct else "none"
                lines.append(
                    f"{effect:>8} {o.higher:>8.1%} {o.lower:>8.1%} {o.equivalent:>11.1%} {o.undecided_share:>10.1%}"
                    f"   {o.blocks_mean:>12.1f}, {o.blocks_most}"
                )
    lines.append("")
    for o in outcomes:
        if o.effect_pct == 0:
            lines.append(
                f"{o.noise}: {o.any_difference:.1%} of runs call a difference where there is none "
                f"(standard error {o.any_difference_error:.1%}, nominal {rule.alpha:.1%})."
            )
    return "\n".join(lines).rstrip()


def as_document(rule: Rule, noises: list[Noise], outcomes: list[Characteristics]) -> dict[str, Any]:
    """One document; shares are between 0 and 1."""
    return {
        "schema": 1,
        "rule": rule,
        "noises": {noise.name: noise.about for noise in noises},
        "outcomes": [to_builtins(o) | {"undecided": o.undecided_share} for o in outcomes],
    }
