"""Futility of a run: the chance of a verdict at its last look, by what was measured so far. Stopping for it ends a
run as undecided, which is no false alarm and costs no alpha, but power (docs/statistics.md)."""

from collections.abc import Collection, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike
from scipy.special import stdtr

from kduel.core.format import percent_size, share_text
from kduel.core.samples import Samples
from kduel.core.text import plural
from kduel.judge.verdict.adjust import Estimates
from kduel.judge.verdict.classify import ABOVE, BELOW, WITHIN, deciding_means
from kduel.judge.verdict.comparison import Comparison, compare, margin
from kduel.judge.verdict.judge import assess_primary, split
from kduel.judge.verdict.looks import NEVER
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.sample_size import reachable_delta_pct
from kduel.judge.verdict.spending import Floats, critical_t, student_levels
from kduel.judge.verdict.wording import AS_MEASURED, more_blocks

FROM_BLOCK = 6
"""Before that, too little is known of the spread."""
CHANCE = 0.05
"""A metric that has a smaller chance of a verdict is given up."""


class Hopeless(Struct, kw_only=True):
    """A primary metric of one contender that is unlikely to be decided within the run's maximum."""

    benchmark: str
    metric: str
    contender: str
    chance: float
    """Of a verdict at the last look, between 0 and 1."""
    blocks_more: int | None
    """About how many more blocks would decide it; null if unknown."""
    delta_pct: float | None
    """The smallest delta that the rest of the run could settle; null where there is no ratio."""
    contradicted: bool
    """Whether the data contradict the verdict of an earlier look."""
    withheld: str
    """Why the verdict that the interval shows is not given."""


def futile(samples: Sequence[Samples], rule: Rule, *, without: Collection[str] = ()) -> list[Hopeless]:
    """The undecided primary metrics, if every one of them is hopeless; empty while there is hope or no telling, as of
    a class of machines. Contenders in `without` are not waited for."""
    found = compare(samples, rule)
    if not found or rule.scope == "class":
        return []
    blocks = len(found[0].blocks)
    if not FROM_BLOCK <= blocks < rule.max_blocks:
        return []
    alpha = split(samples, rule)
    hopeless = []
    for c in found:
        if not (c.table.primary and c.table.evidence.varies) or c.contender in without:
            continue
        finding = assess_primary(c, alpha)
        if finding.verdict != "undecided":
            continue
        chance = chance_of(c, alpha) if not finding.withheld else 0.0
        if chance is None or chance >= CHANCE:
            return []
        hopeless.append(
            Hopeless(
                benchmark=c.table.benchmark,
                metric=c.table.metric.name,
                contender=c.contender,
                chance=chance,
                blocks_more=finding.more,
                delta_pct=reachable_delta_pct(c, alpha),
                contradicted=finding.contradicted,
                withheld=finding.withheld or ("" if c.n else "no block gave a value of both"),
            )
        )
    return hopeless


def chance_of(c: Comparison, alpha: float) -> float | None:
    """The chance of a verdict for one comparison; None where pairs are too few or values do not vary."""
    if not c.n:
        return 0.0
    if c.n < c.rule.fewest or c.scales[-1] == "exact":
        return None
    now = Estimates(*(values[-1:] for values in c.estimates))
    rest = c.rule.max_blocks - len(c.blocks)
    border = margin(c.scales[-1], c.rule)
    decision = c.decision(alpha)
    only = None if decision.look == NEVER else int(decision.side)
    return float(chance_to_decide(now, np.array([c.n]), np.array([c.n + rest]), border, c.rule, alpha, only)[-1])


def chance_to_decide(
    found: Estimates,
    pairs: ArrayLike,
    last_pairs: ArrayLike,
    border: float,
    rule: Rule,
    alpha: float,
    only: int | None = None,
) -> Floats:
    """The predictive probability that the last interval excludes 0 or lies within +-border, by look, or shows the
    side `only`; from the present mean with a flat prior (Spiegelhalter, Freedman and Blackburn, 1986) and spread."""
    count, last = np.asarray(pairs, dtype=float), np.asarray(last_pairs, dtype=float)
    looks = rule.looks()
    level = student_levels(alpha, looks, looks, rule.max_blocks)[-1:]
    half = critical_t(level, last - 1) * found.error * np.sqrt(count / last)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = found.error * np.sqrt(1 - count / last)

        def chance_below(bound: Floats) -> Floats:
            return np.asarray(stdtr(found.freedom, (bound - found.mean) / scale))

        differs, equivalent = deciding_means(half, border)
        within = np.where(equivalent > 0, chance_below(equivalent) - chance_below(-equivalent), 0.0)
        chances = {ABOVE: 1 - chance_below(differs), BELOW: chance_below(-differs), WITHIN: within}
        chance: Floats = sum(chances.values(), np.zeros(())) if only is None else chances[only]
    # Without a spread, or at the last look, nothing is left to predict.
    return np.where(scale > 0, chance, 1.0)


def futility_text(hopeless: Sequence[Hopeless], rule: Rule, reasons: Sequence[str] = ()) -> str:
    """Sentences on what is hopeless, why, and what would help."""
    sentences = []
    for one in hopeless:
        sentence = f"{one.benchmark}/{one.metric} of {one.contender} has a probability of {share_text(100 * one.chance)} of a verdict"
        if one.withheld:
            sentence = f"{one.benchmark}/{one.metric} of {one.contender} cannot be decided: {one.withheld}"
        elif one.contradicted:
            sentence += "; its data contradict the verdict of an earlier look, and a new run must tell"
        elif one.blocks_more is not None:
            sentence += f"; it would take {more_blocks(one.blocks_more)} {AS_MEASURED}"
        sentences.append(f"{sentence}.")
    reach = [one.delta_pct for one in hopeless if one.delta_pct is not None]
    if all(one.withheld or one.contradicted for one in hopeless):
        help_ = "a new run" + (", once no values are missing" if any(one.withheld for one in hopeless) else "")
    else:
        help_ = "measure longer in each trial, quiet the host, or raise --max-blocks"
        if reach and max(reach) > rule.delta_pct:
            help_ += (
                f"; {plural(rule.max_blocks, 'block')} can decide at a delta of {percent_size(max(reach))} (--delta)"
            )
    return " ".join(
        [
            f"No undecided primary metric is likely to be decided within {plural(rule.max_blocks, 'block')}.",
            *sentences,
            *reasons,
            f"What would help: {help_}.",
        ]
    )
