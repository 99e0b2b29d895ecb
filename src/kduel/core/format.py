"""Numbers as people read them: no more digits than the spread supports, a sign on effects, a dash for missing."""

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from kduel.core.metric_results import COUNTED, ConditionResult, MetricResult

MISSING = "–"
MINUS = "−"
HUGE = 1e16
"""Beyond this a number with thousands separators is a line of digits of which most mean nothing."""
LARGE = 100
"""From so many instructions on half of one is not shown: nobody counts on it."""
WIDEST = 10_000
"""Per cent: beyond this the width of an interval is not informative."""


def amount(value: float | None, spread: float | None = None, places: int | None = None) -> str:
    """A value with thousands separators; with a spread, to the spread's second digit. `places`: the most decimal places."""
    if value is None or not math.isfinite(value):
        return MISSING
    size = abs(value)
    if size >= 1e15 or 0 < size < 1e-5:
        return with_minus(f"{value:.4g}")
    if spread is not None and math.isfinite(spread) and spread > 0:
        places = min(1 - math.floor(math.log10(spread)), decimals(size, 9) if size else 6)
        return with_minus(f"{round(value, places):,.{max(0, places)}f}")
    places = places_of(value) if places is None else places
    return without_zeros(with_minus(f"{round_half_up(value, places):,.{places}f}"))


def round_half_up(value: float, places: int) -> float:
    """A value to so many decimal places; halves go up, so that two of them differ by what they differed before."""
    return math.floor(value + 0.5) if places == 0 else round(value, places)


def without_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def quantity(value: float, unit: str, spread: float | None = None) -> str:
    """An amount with its unit, where it has one that is worth writing."""
    return amount(value, spread) if unit in ("", "1", "count") else f"{amount(value, spread)} {unit}"


def change(value: float, unit: str) -> str:
    """A change with its sign and unit; in per cent to three digits."""
    return percent(value) if unit == "%" else f"{signed_number(value, places_of(value))} {unit}".rstrip()


def places_of(value: float) -> int:
    """Decimal places of a value without a spread: 0 of a whole number, 1 of a half, else five significant digits."""
    return 0 if value == int(value) else max(decimals(abs(value), 5), int(2 * value == int(2 * value)))


def decimals(size: float, digits: int) -> int:
    """Decimal places that show so many significant digits of a positive number, 0 to 9."""
    if size <= 0 or not math.isfinite(size):
        return 0
    return min(9, max(0, digits - 1 - math.floor(math.log10(size))))


TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def shown_unit(metric: MetricResult) -> str:
    """The unit in which reports show the means: of times the one in which the larger one is from 1 to 1,000."""
    means = [abs(mean) for mean in (metric.baseline_mean, metric.mean) if mean]
    if metric.scale == "difference" or metric.unit not in TIMES or not means:
        return metric.unit
    seconds = max(means) * TIMES[metric.unit]
    return next((unit for unit, size in TIMES.items() if seconds >= size), "ns")


def arms(metric: MetricResult) -> tuple[tuple[str, str], tuple[str, str]]:
    """Mean and SD of the baseline, then of the contender, as reports show them, in `shown_unit`. An exact value has
    the digits of `exact_places` and a virtual time three; a count under conditions is of one and has no SD."""
    exact = exact_places(metric) if metric.scale == "exact" else None
    virtual = exact is not None and metric.unit in TIMES
    unit = shown_unit(metric)
    scale = TIMES[metric.unit] / TIMES[unit] if unit != metric.unit else 1.0

    def texts(mean: float | None, sd: float | None) -> tuple[str, str]:
        mean, sd = (None if one is None else one * scale for one in (mean, sd))
        if virtual and mean is not None:
            return amount(mean, places=decimals(abs(mean), 3)), ""
        if mean is None or sd is None or not math.isfinite(sd) or (metric.scale == "exact" and metric.conditions):
            return amount(mean, places=exact), ""
        sd = without_residue(sd, mean)
        return amount(mean, sd if exact is None else None, exact), amount(sd, sd)

    return texts(metric.baseline_mean, metric.baseline_sd), texts(metric.mean, metric.sd)


def means(metric: MetricResult) -> tuple[str, str]:
    """Mean and SD of both arms in one text each: `3,230.7 ± 5.5`; the mean alone where there is no SD."""
    before, after = (f"{mean} ± {sd}" if sd else mean for mean, sd in arms(metric))
    return before, after


def mean_and_sd(mean: float | None, sd: float | None) -> str:
    """`3,230.7 ± 5.5`; the mean alone where there is no SD."""
    if mean is None or sd is None or not math.isfinite(sd):
        return amount(mean)
    sd = without_residue(sd, mean)
    return f"{amount(mean, sd)} ± {amount(sd, sd)}"


def without_residue(sd: float, mean: float) -> float:
    """The SD; 0 where it is only what floating point left of equal values."""
    return sd if sd > 1e-12 * abs(mean) else 0.0


def signed_number(value: float, places: int) -> str:
    """With + or − in front, except for what rounds to nothing; beyond whole numbers of their own, four digits."""
    if abs(value) >= HUGE:
        return with_sign(value, ".4g")
    text = f"{value:+,.{places}f}"
    if float(text.replace(",", "")) == 0:
        text = text[1:]
    return with_minus(text)


def with_minus(text: str) -> str:
    """A number as Python writes it, with a minus as long as a plus where it has a hyphen."""
    return text.replace("-", MINUS)


def with_sign(value: float, spec: str) -> str:
    """A number in any format specification, with a minus as long as the plus; formats for programs have ASCII."""
    return with_minus(f"{value:+{spec}}")


def effect_places(value: float, low: float | None, high: float | None) -> int:
    """Decimal places of an effect: two digits of the interval's half width, never more than three places."""
    if low is not None and high is not None and high > low:
        return min(3, decimals((high - low) / 2, 2))
    return min(3, max(1, decimals(abs(value), 3))) if value else 1


def effect_numbers(metric: MetricResult) -> tuple[float | None, float | None, float | None, str]:
    """(effect, low, high, unit): in per cent where the scale is a ratio, else in the metric's own unit."""
    if metric.scale == "ratio":
        return metric.effect_pct, metric.ci_low_pct, metric.ci_high_pct, "%"
    return metric.effect, metric.ci_low, metric.ci_high, metric.unit


def relative_pct(metric: MetricResult) -> float | None:
    """The effect in per cent of the baseline, where that means something; for exact counts from the two values."""
    if metric.scale == "ratio":
        return metric.effect_pct
    if metric.scale == "exact" and metric.effect is not None and metric.baseline_mean:
        return 100 * metric.effect / abs(metric.baseline_mean)
    return None


def pct_of_means(metric: MetricResult) -> float | None:
    """The change in per cent, or the difference of the two means in per cent where nothing was judged."""
    share = relative_pct(metric)
    if share is None and metric.mean is not None and metric.baseline_mean:
        share = 100 * (metric.mean - metric.baseline_mean) / abs(metric.baseline_mean)
    return share


def effect(metric: MetricResult) -> str:
    """`+4.2 %`, `−0.3 ms`, exactly `+1,234 (+0.52 %)`; of a single trial the difference; a dash for none, and where machines
    contradict each other, of which the mean is no machine's."""
    value, low, high, unit = effect_numbers(metric)
    if metric.torn and metric.machines:
        return MISSING
    if value is None and metric.n == 1 and (share := pct_of_means(metric)) is not None:
        return percent(share)
    if value is None or not math.isfinite(value):
        return MISSING
    if metric.scale == "exact":
        share = relative_pct(metric)
        if share and metric.unit in TIMES:
            return percent(share)
        return f"{exact_effect(metric)} ({percent(share)})" if share else exact_effect(metric)
    if metric.scale == "ratio":
        return f"{signed_number(value, effect_places(value, low, high))} {unit}"
    places = (
        decimals((high - low) / 2, 2) if low is not None and high is not None and high > low else places_of(value)
    )
    return f"{signed_number(value, places)} {unit}".rstrip()


def difference(one: ConditionResult) -> tuple[str, str, str]:
    """A condition's two counts and their difference."""
    places = places_of_three(one.baseline, one.contender, one.difference)
    return (
        amount(one.baseline, places=places),
        amount(one.contender, places=places),
        exact_change(one.difference, places),
    )


def exact_change(value: float, places: int) -> str:
    """An exact change with its sign, and so many decimal places at most."""
    return without_zeros(signed_number(value, places))


def exact_effect(metric: MetricResult) -> str:
    """An exact metric's change, which is that of the two values as they are shown."""
    places = exact_places(metric)
    if places or metric.baseline_mean is None or metric.mean is None:
        return exact_change(metric.effect or 0, places)
    return exact_change(round_half_up(metric.mean, 0) - round_half_up(metric.baseline_mean, 0), 0)


def exact_places(metric: MetricResult) -> int:
    """The most decimal places of an exact metric's values and change; of instructions none, if that is exact."""
    if metric.baseline_mean is None or metric.mean is None or metric.effect is None:
        return max(places_of(value or 0.0) for value in (metric.baseline_mean, metric.mean, metric.effect))
    whole = metric.unit == COUNTED
    if whole and abs(metric.effect) >= LARGE:
        return 0
    return places_of_three(metric.baseline_mean, metric.mean, metric.effect, whole=whole)


def places_of_three(before: float, after: float, change: float, *, whole: bool = False) -> int:
    """The fewest decimal places with which both rounded values subtract to the change; `whole`: from none on."""
    fewest = 0 if whole else max(places_of(before), places_of(after))

    def fits(places: int) -> bool:
        shown = round_half_up(change, places)
        return bool(shown) == bool(change) and shown == round(
            round_half_up(after, places) - round_half_up(before, places), places
        )

    return next(filter(fits, range(fewest, 10)), fewest)


def percent(value: float) -> str:
    """A change in per cent to three digits: `+0.523 %`."""
    return f"{signed_number(value, min(6, decimals(abs(value), 3)))} %"


def share_text(value: float) -> str:
    """A share in per cent, `26 %`, `0.3 %`, `less than 0.01 %`: what is possible is not shown as 0."""
    if 0 < value < 0.01:
        return "less than 0.01 %"
    return f"{value:.{decimals(value, 1)}f} %"


def interval_text(metric: MetricResult) -> str:
    """`+3.1 to +5.3 %`; a dash where there is none. Where there is no chance in it, `exact`, or the range over conditions."""
    if metric.scale == "exact":
        return range_text(metric) or "exact"
    if metric.torn and metric.machines:
        return MISSING
    value, low, high, unit = effect_numbers(metric)
    if value is None or low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return MISSING
    places = effect_places(value, low, high) if metric.scale == "ratio" else decimals((high - low) / 2, 2)
    lower, upper = bounds_text(low, high, places)
    # Two blocks may give an interval from nothing to a number of eighty digits.
    if metric.scale == "ratio" and high > WIDEST >= value:
        upper = f"over +{WIDEST:,}"
    return f"{lower} to {upper} {unit}".rstrip()


def bounds_text(low: float, high: float, places: int) -> tuple[str, str]:
    """Both ends of an interval, signed. The one that excludes 0 has one digit at least, since 0 would contradict the verdict."""
    excludes = low if low > 0 else high if high < 0 else 0.0
    digits = max(places, decimals(abs(excludes), 1)) if float(f"{excludes:.{places}f}") == 0 else places
    return signed_number(low, digits if low > 0 else places), signed_number(high, digits if high < 0 else places)


def ranged_over(metrics: Iterable[MetricResult]) -> str:
    """`conditions` or `blocks`, which the ranges of these exact changes are over; empty where each was counted once."""
    found = list(metrics)
    if any(len(metric.conditions) > 1 for metric in found):
        return "conditions"
    return "blocks" if any(metric.n > 1 for metric in found) else ""


def count_ranged(metrics: Iterable[MetricResult]) -> int:
    """Number of conditions that the most of these exact changes are over; 0 where each is of none."""
    return max((len(metric.conditions) for metric in metrics), default=0)


def range_text(metric: MetricResult) -> str:
    """Range of an exact change over conditions or blocks in per cent, `+11.9 to +13.0 %`; empty where all give the same."""
    low, high = metric.ci_low_pct, metric.ci_high_pct
    if low is None or high is None or metric.ci_low == metric.ci_high:
        return ""
    places = 1 if max(abs(low), abs(high)) >= 10 else 2
    least, most = signed_number(low, places), signed_number(high, places)
    return f"{least} %" if least == most else f"{least} to {most} %"


def estimate_texts(value: float, low: float | None, high: float | None, unit: str) -> tuple[str, str]:
    """An effect and its interval, `+3.1 to +5.3 %`, to the second digit of half its width; a dash for none."""
    width = (high - low) / 2 if low is not None and high is not None else 0.0
    places = min(6, decimals(width or abs(value), 2))
    interval = MISSING if low is None or high is None else f"{' to '.join(bounds_text(low, high, places))} {unit}"
    return f"{signed_number(value, places)} {unit}".rstrip(), interval.rstrip()


def spread_text(value: float, low: float, high: float, unit: str) -> str:
    """`1.2 % (standard deviation, interval 0.4 % to 3.1 %)`: how much several effects differ."""
    spread, least, most = (
        percent_size(one) if unit == "%" else quantity(one, unit, one or value) for one in (value, low, high)
    )
    return f"{spread} (standard deviation, interval {least} to {most})"


def detectable(metric: MetricResult) -> str:
    """The minimum detectable effect: `8.9 %`; a dash where it cannot be determined."""
    return MISSING if metric.mde_pct is None else percent_size(metric.mde_pct)


def percent_size(value: float) -> str:
    """A size in per cent to two digits: `8.9 %`."""
    return f"over {WIDEST:,} %" if value > WIDEST else f"{amount(value, value)} %"


def effect_with_interval(metric: MetricResult) -> str:
    """`+4.2 % (+3.1 to +5.3 %)`."""
    bounds = MISSING if metric.scale == "exact" else interval_text(metric)
    return effect(metric) if bounds == MISSING else f"{effect(metric)} ({bounds})"


def effect_in_words(metric: MetricResult) -> str:
    """`+4.2 % (interval +3.1 to +5.3 %)`, or for counts `+12 instructions (+0.52 %) (range +10 to +14)`, in a sentence."""
    low, high = metric.ci_low, metric.ci_high
    if metric.scale == "exact":
        share = relative_pct(metric)
        places = exact_places(metric)
        said = f"{exact_effect(metric)} {metric.unit}".rstrip() + ("" if share is None else f" ({percent(share)})")
        ranges = low is not None and high is not None and low != high
        least, most = (exact_change(bound or 0, max(int(metric.unit != COUNTED), places)) for bound in (low, high))
        return f"{said} (range {least} to {most})" if ranges else said
    bounds = interval_text(metric)
    if bounds == MISSING:
        return effect(metric) if metric.scale == "difference" else "with an interval that has no bound"
    return f"{effect(metric)} (interval {bounds})"


def plain_number(value: float) -> str:
    """`1`, `0.5`: a setting as it was given."""
    return with_minus(f"{value:g}")


def parameter_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def duration(seconds: float) -> str:
    """A duration in hours, minutes or seconds: `2.5 h`, `14 min`, `7.3 s`."""
    if seconds >= 7200:
        return f"{seconds / 3600:,.1f} h"
    if seconds >= 120:
        return f"{seconds / 60:.0f} min"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
