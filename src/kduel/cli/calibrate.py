"""kduel calibrate: the verdict rule on made-up noise, or on the noise of a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kduel.core.errors import InputError

if TYPE_CHECKING:
    from kduel.judge.verdict.calibrate import Outcome
    from kduel.judge.verdict.comparison import Comparison
    from kduel.judge.verdict.noise import Noise
    from kduel.judge.verdict.rule import Rule

NOISES = ("normal", "floor", "bimodal", "heavy", "drift")


@click.command()
@click.argument("run", required=False, type=click.Path(path_type=Path), metavar="[RUN]")
@click.option(
    "--noise", "names", type=click.Choice(NOISES), multiple=True, help="Made-up noise; all five by default."
)
@click.option(
    "--spread", type=float, default=1.0, show_default=True, help="Its standard deviation of B/A within a block, in %."
)
@click.option("--metric", "keys", multiple=True, metavar="STEP/METRIC", help="Of RUN; its primary ones by default.")
@click.option("--effects", default="0,0.5,1,2,3,5", show_default=True, help="True effects to try, in %.")
@click.option(
    "--runs", type=click.IntRange(100, 1_000_000), default=4000, show_default=True, help="Runs to simulate."
)
@click.option("--metrics", type=click.IntRange(1, 1000), help="Primary metrics of a run.  [default: RUN's, or 1]")
@click.option("--delta", type=float, help="Smallest effect of interest, in %.  [default: RUN's, or 1]")
@click.option("--alpha", type=float, help="Chance of a false alarm.  [default: RUN's, or 0.05]")
@click.option("--max-blocks", type=int, help="The most blocks.  [default: RUN's, or 20]")
@click.option("--blocks", type=int, help="Exactly so many blocks, one look at the end.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--picture", type=click.Path(path_type=Path), metavar="FILE.svg|FILE.png", help="Draw it, too.")
def command(
    run: Path | None,
    names: tuple[str, ...],
    spread: float,
    keys: tuple[str, ...],
    effects: str,
    runs: int,
    metrics: int | None,
    delta: float | None,
    alpha: float | None,
    max_blocks: int | None,
    blocks: int | None,
    seed: int,
    form: str,
    picture: Path | None,
) -> None:
    """Try the verdict rule: how often it is wrong, what it finds, how many blocks it takes.

    Without RUN on made-up noise of a given spread; with RUN, the directory of a finished run, on the noise that was
    measured there. The very code that judges a run judges every simulated one.
    """
    from kduel.cli.terminal import Terminal
    from kduel.judge.verdict.calibrate import sweep
    from kduel.judge.verdict.noise import made_up

    tried = read_effects(effects)
    if picture is not None:
        from kduel.judge.verdict.picture import check_name

        check_name(picture)
    if run is None:
        if keys:
            raise InputError(
                "--metric names a metric of a run, and there is no RUN", "Name the run's directory first."
            )
        rule = adjusted(None, delta, alpha, max_blocks, blocks)
        noises = [made_up(name, spread) for name in names or NOISES]
    else:
        if names:
            raise InputError("a RUN and --noise are both given", "Leave one of them out.")
        rule = adjusted(run, delta, alpha, max_blocks, blocks)
        found = compared(run, rule)
        metrics = metrics or sum(c.table.primary for c in found)
        noises = measured(chosen(found, run, keys))
    with Terminal().task("simulating", total=len(noises) * len(tried) * runs) as task:
        outcomes = sweep(rule, noises, tried, runs=runs, seed=seed, metrics=metrics or 1, progress=task.advance)
    if form == "json":
        click.echo(as_json(rule, noises, outcomes))
    else:
        click.echo(as_text(rule, noises, outcomes))
    if picture is not None:
        from kduel.judge.verdict.picture import draw

        draw(picture, outcomes, rule)
        click.echo(f"drawn: {picture}", err=True)


def read_effects(text: str) -> list[float]:
    """The numbers of --effects. Raises InputError."""
    try:
        found = [float(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(-90 <= value <= 1000 for value in found):
        raise InputError(f"--effects {text!r} is no list of per cents", "Give numbers with commas, such as 0,1,2.5.")
    return found


def adjusted(
    run: Path | None, delta: float | None, alpha: float | None, max_blocks: int | None, blocks: int | None
) -> Rule:
    """The rule of the run, or the default, with what the command line says instead. Raises InputError."""
    import msgspec

    from kduel.judge.verdict.rule import Rule

    if blocks is not None and max_blocks is not None:
        raise InputError("--blocks and --max-blocks are both given", "Leave one of them out.")
    rule = Rule() if run is None else rule_of_run(run)
    said = {"delta_pct": delta, "alpha": alpha, "max_blocks": max_blocks}
    rule = msgspec.structs.replace(rule, **{name: value for name, value in said.items() if value is not None})
    if max_blocks is not None:
        # A run of a fixed number of blocks has no looks on the way; one with a maximum has the usual ones.
        rule = Rule(delta_pct=rule.delta_pct, alpha=rule.alpha, max_blocks=max_blocks)
    return Rule.fixed(blocks, delta_pct=rule.delta_pct, alpha=rule.alpha) if blocks is not None else rule


def rule_of_run(path: Path) -> Rule:
    """The rule that a run was planned by, or the one that imported values are judged by."""
    from kduel.judge.evaluate import rule_of
    from kduel.judge.imported import rule_of as imported_rule
    from kduel.store.rundir import RunDir

    run = RunDir.open(path)
    return imported_rule(path) if run.imported else rule_of(run.lock())


def compared(path: Path, rule: Rule) -> list[Comparison]:
    """Every comparison of a run."""
    import msgspec

    from kduel.judge.verdict.comparison import compare
    from kduel.store.collect import collect

    samples = collect(path)
    blocks = max((len(table.blocks) for table in samples), default=0)
    # All blocks that were measured are of use here, whatever the rule's maximum.
    return compare(samples, msgspec.structs.replace(rule, max_blocks=max(blocks, rule.max_blocks)))


def chosen(found: list[Comparison], path: Path, keys: tuple[str, ...]) -> list[Comparison]:
    """Those that were asked for, or else the primary ones, or else all. Raises InputError where there is none."""
    known = {c.table.key for c in found}
    unknown = [key for key in keys if key not in known]
    if unknown:
        raise InputError(f"{path} has no metric {unknown[0]!r}", f"It has {', '.join(sorted(known)) or 'none'}.")
    wanted = [c for c in found if c.table.key in keys] if keys else [c for c in found if c.table.primary] or found
    if not wanted:
        raise InputError(f"{path} has no values", "Name a run that has measured something.")
    return wanted


def measured(found: list[Comparison]) -> list[Noise]:
    """The noise of a run's metrics; those that tell none are named on stderr. Raises InputError where none does."""
    from kduel.judge.verdict.noise import resampled

    noises: list[Noise] = []
    refused: list[InputError] = []
    for c in found:
        try:
            noises.append(resampled(c))
        except InputError as error:
            refused.append(error)
    if not noises:
        raise refused[0]
    for reason in refused:
        click.echo(f"left out: {reason.message}", err=True)
    return noises


def as_text(rule: Rule, noises: list[Noise], outcomes: list[Outcome]) -> str:
    """Tables, one a noise, and what they say."""
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
                effect = f"{o.effect_pct:+g} %" if o.effect_pct else "none"
                lines.append(
                    f"{effect:>8} {o.higher:>8.1%} {o.lower:>8.1%} {o.equivalent:>11.1%} {o.undecided:>10.1%}"
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


def as_json(rule: Rule, noises: list[Noise], outcomes: list[Outcome]) -> str:
    """One document; shares are between 0 and 1."""
    import msgspec

    document = {
        "schema": 1,
        "rule": rule,
        "noises": {noise.name: noise.about for noise in noises},
        "outcomes": [msgspec.to_builtins(o) | {"undecided": o.undecided} for o in outcomes],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode()
