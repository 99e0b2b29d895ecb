"""Lines about tails: quantiles over boots, what a bound is worth, and the model of what is rarer than the run shows."""

from kduel.core.format import amount, plain_number, share_text, signed_number
from kduel.core.results import Results
from kduel.core.tail_results import BoundResult, ReturnLevelResult, ShiftResult, TailResult
from kduel.core.text import enumerate_names, plural, visible
from kduel.judge.tails.shares import FEWEST_BOOTS
from kduel.judge.verdict.result import unseen_mode_pct

BOUND_WORDS = {"violated": "exceeded by", "undecided": "undecided for", "holds": "kept by"}


def tail_lines(results: Results) -> list[str]:
    """Lines for each benchmark and contender that keeps its measurements; none for a run without."""
    lines = []
    for tail in results.tails:
        lines.append(f"{name_of(tail)}: {plural(tail.samples, 'measurement')} in {plural(tail.boots, 'boot')}")
        lines += [f"    {line}" for line in (*quantile_lines(tail), *model_lines(tail))]
    lines += [
        f"{visible(one.benchmark, 100)}/{visible(one.metric, 60)}, {visible(one.contender, 100)} against "
        f"{visible(one.baseline, 100)}, {shift_points(one)}"
        for one in results.shifts
    ]
    return lines


def bound_lines(results: Results) -> list[str]:
    """A sentence for each contender that a bound is about; what does not hold comes first."""
    found = [(tail, tail.bound) for tail in results.tails if tail.bound is not None]
    found.sort(key=lambda one: ("violated", "undecided", "holds").index(one[1].verdict))
    return [f"{name_of(tail)}: {bound_sentence(tail, bound)}" for tail, bound in found]


def bound_claims(results: Results) -> list[str]:
    """`Limit of at most 0.1 % of cyclictest/latency above 150 us: exceeded by b; undecided for a (95 % confidence)`: the verdict on all of the first bound that is violated,
    or else not held by all; how many more there are."""
    found: dict[str, dict[str, list[str]]] = {}
    for tail in results.tails:
        if (bound := tail.bound) is not None:
            what = f"{visible(tail.benchmark, 100)}/{visible(tail.metric, 60)} above {plain_number(bound.limit)} {tail.unit}"
            verdicts = found.setdefault(f"Limit of at most {100 * bound.share:.10g} % of {what}", {})
            verdicts.setdefault(bound.verdict, []).append(visible(tail.contender, 200))
    sure = f" ({plain_number(round(100 * (1 - results.study.alpha), 3))} % confidence)"
    said = [
        f"{what}: {'; '.join(f'{words} {enumerate_names(verdicts[one])}' for one, words in BOUND_WORDS.items() if one in verdicts)}"
        f"{sure * (set(verdicts) != {'undecided'})}"
        for what, verdicts in sorted(found.items(), key=lambda one: [word not in one[1] for word in BOUND_WORDS])
    ]
    return [*said[:1], *([f"{plural(len(said) - 1, 'more bound')} below"] if said[1:] else [])]


def name_of(tail: TailResult) -> str:
    return f"{visible(tail.benchmark, 100)}/{visible(tail.metric, 60)}, {visible(tail.contender, 100)}"


def bound_sentence(tail: TailResult, bound: BoundResult) -> str:
    """Verdict on a bound, with its evidence. The largest measurement decides nothing."""
    said = (
        f"{plain_number(bound.limit)} {tail.unit} for all but {bound.share:g}: {bound.verdict}. "
        f"{bound.exceeding:,} of {bound.samples:,} measurements exceed it"
    )
    if bound.hidden:
        said += f", and {bound.hidden:,} may: the histogram does not tell on which side of the limit they lie"
    if bound.low is not None and bound.high is not None:
        said += f" (share {bound.low:.2g} to {bound.high:.2g})"
    if bound.reason:
        said += f"; {bound.reason}"
    if bound.verdict == "holds":
        said += f"; a slow mode in up to {unseen(tail)} of boots is not excluded"
    return f"{said}."


FEW_SLOW = 0.9
"""From this quantile on few slow boots decide where it lies."""


def unseen(tail: TailResult) -> str:
    """The share of boots in a mode that all of these may have missed."""
    return share_text(unseen_mode_pct(tail.boots))


def quantile_lines(tail: TailResult) -> list[str]:
    """`99.9 %: 154 us (148 to 163 us)`, as far as the data reach; then that they do not."""
    lines = []
    for one in tail.quantiles:
        share = f"{100 * one.share:.10g} %"
        if one.value is None or one.low is None or one.high is None:
            need = f"; it takes {FEWEST_BOOTS} boots" if tail.boots < FEWEST_BOOTS else ""
            lines.append(
                f"{share}: not estimable from {plural(tail.samples, 'measurement')} in {plural(tail.boots, 'boot')}{need}"
            )
            break
        # By simulation: docs/evidence/tails.md.
        missing = f"; a mode in up to {unseen(tail)} of boots may be missing" if one.share >= FEW_SLOW else ""
        lines.append(f"{share}: {amount(one.value)} {tail.unit} ({amount(one.low)} to {amount(one.high)}{missing})")
    if tail.largest is not None:
        lines.append(f"largest: {amount(tail.largest)} {tail.unit} (one measurement; grows with their number)")
    return lines


def model_lines(tail: TailResult) -> list[str]:
    """The return level with its diagnostics, called a model."""
    found: ReturnLevelResult | None = tail.return_level
    if found is None:
        return []
    if found.level is None or found.low is None or found.high is None:
        return [f"no model of the tail: {found.reason}"]
    # By simulation: docs/evidence/tails.md.
    rare = (
        ""
        if found.share * tail.samples >= 1
        else "; rarer than this run shows: where boots have two modes, such an interval of 95 % covers 93 %"
    )
    return [
        f"model: {found.share:g} exceed {amount(found.level)} {tail.unit} ({amount(found.low)} to {amount(found.high)}); "
        f"generalised Pareto above {amount(found.threshold)} {tail.unit}, {found.excesses:,} excesses, shape {found.shape:.2f}, "
        f"distance {found.distance:.3f}; by the upper half {amount(found.other_level)} {tail.unit}{rare}"
    ]


def shift_points(one: ShiftResult) -> str:
    """Changes of quantiles, those that are shown with a star."""
    points = ", ".join(
        f"{100 * point.share:g} %: {signed_number(point.effect_pct or 0, 1)} %{'' if point.verdict in ('undecided', 'equivalent', 'equal') else '*'}"
        for point in one.points
    )
    return f"by quantile of a boot (* shown, all together): {points}"
