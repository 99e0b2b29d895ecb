"""Noise to try the rule on: boots of one kernel under several names, made up or resampled from a run."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kduel.core.errors import InputError
from kduel.core.text import plural
from kduel.judge.verdict.comparison import ROUNDING, Comparison, log_ratios
from kduel.judge.verdict.sample_size import FEWEST_FOR_SPREAD
from kduel.judge.verdict.spending import Floats

Arms = NDArray[np.int_]
"""Shape (runs, trials) in order of time: each trial's contender, 0 the baseline. Blocks follow one another."""
Draw = Callable[[np.random.Generator, Arms], Floats]
"""The logarithms of the values of those trials, with no effect in them; NaN is a missing value."""

DRIFT_SDS = 4.0
STEP_SDS = 4.0
PERIOD_SDS = 1.0
PLACE_SDS = 5.0
SLOW_SHARE = 0.3
JITTER = 0.2
"""Of the bimodal noise: the spread inside a mode, in units of the whole."""
RARE_SLOWDOWN = 1.2
UNEQUAL = 10.0
MISSING = 0.2


class Noise(NamedTuple):
    name: str
    about: str
    draw: Draw


def normal(generator: np.random.Generator, arms: Arms) -> Floats:
    return generator.standard_normal(arms.shape)


def bimodal(generator: np.random.Generator, arms: Arms) -> Floats:
    """Most boots in one mode, some in a slow one; standard deviation 1."""
    slow = (generator.random(arms.shape) < SLOW_SHARE) / np.sqrt(SLOW_SHARE * (1 - SLOW_SHARE))
    mixed: Floats = np.sqrt(1 - JITTER**2) * slow + JITTER * generator.standard_normal(arms.shape)
    return mixed


def step(generator: np.random.Generator, arms: Arms) -> Floats:
    """Everything shifts once, at a random time."""
    since = generator.integers(1, arms.shape[1], (arms.shape[0], 1))
    values: Floats = normal(generator, arms) + STEP_SDS * (np.arange(arms.shape[1]) >= since)
    return values


def autoregression(lag_one: float, generator: np.random.Generator, arms: Arms) -> Floats:
    """A first-order autoregression over trials, stationary, with standard deviation 1."""
    values = normal(generator, arms)
    values[:, 1:] *= np.sqrt(1 - lag_one**2)
    for trial in range(1, arms.shape[1]):
        values[:, trial] += lag_one * values[:, trial - 1]
    return values


def periodic(trials: int, generator: np.random.Generator, arms: Arms) -> Floats:
    """A sine over so many trials, its phase drawn for each run."""
    phase = generator.random((arms.shape[0], 1))
    wave = PERIOD_SDS * np.sin(2 * np.pi * (np.arange(arms.shape[1]) / trials + phase))
    return normal(generator, arms) + wave


def slow_place(sds: float, generator: np.random.Generator, arms: Arms) -> Floats:
    """One place of each block is always slower: the second of two, the middle one of more."""
    contenders = int(arms.max()) + 1
    slower = np.arange(arms.shape[1]) % contenders == contenders // 2
    values: Floats = normal(generator, arms) + sds * slower
    return values


def rare(share: float, scale: float, generator: np.random.Generator, arms: Arms) -> Floats:
    """A share of the contenders' boots, and none of the baseline's, takes 20 % longer: a real difference of means."""
    slow = (arms > 0) & (generator.random(arms.shape) < share)
    values: Floats = scale * normal(generator, arms) + np.log(RARE_SLOWDOWN) * slow
    return values


def censoring(generator: np.random.Generator, arms: Arms) -> Floats:
    """The slowest fifth of the contenders' boots gives no value: they run into a timeout, the baseline's do not."""
    values = normal(generator, arms)
    return np.where((arms > 0) & (values > 0.8416), np.nan, values)


def scale_noise(draw: Draw, scale: float) -> Draw:
    return lambda generator, arms: scale * draw(generator, arms)


def kinds(scale: float) -> dict[str, tuple[str, Draw]]:
    """Every noise by name, with what it is; a boot varies by `scale`. The spread of a pair is the same in all `units`."""
    # Of lognormal delays with sigma = 1.
    delay = np.sqrt((np.e - 1) * np.e)
    units: dict[str, tuple[str, Draw]] = {
        "bimodal": ("two modes, .7 and .3 of the boots", bimodal),
        "heavy": (
            "heavy tails (Student's t, 3 degrees of freedom)",
            lambda draw, arms: draw.standard_t(3, arms.shape) / np.sqrt(3),
        ),
        "drift": (
            f"a linear drift of {DRIFT_SDS:g} SD of a boot over the run",
            lambda draw, arms: normal(draw, arms) + np.linspace(0, DRIFT_SDS, arms.shape[1]),
        ),
        "step": (f"a step of {STEP_SDS:g} SD at a random time", step),
        "ar-0.4": ("autocorrelation .4 from trial to trial", partial(autoregression, 0.4)),
        "ar-0.5": ("autocorrelation .5", partial(autoregression, 0.5)),
        "ar-0.8": ("autocorrelation .8", partial(autoregression, 0.8)),
        "period-3": (f"a sine of period 3 trials, {PERIOD_SDS:g} SD high", partial(periodic, 3)),
        "period-4": (f"a sine of period 4 trials, {PERIOD_SDS:g} SD high", partial(periodic, 4)),
        "period-5": (f"a sine of period 5 trials, {PERIOD_SDS:g} SD high", partial(periodic, 5)),
        "place": (f"one place of each block {PLACE_SDS:g} SD slower", partial(slow_place, PLACE_SDS)),
        "growing": (
            "a spread that doubles over the run",
            lambda draw, arms: normal(draw, arms) * np.linspace(2 / 3, 4 / 3, arms.shape[1]),
        ),
        "unequal": (
            "a baseline that varies a tenth as much",
            lambda draw, arms: (
                normal(draw, arms) * (np.where(arms > 0, UNEQUAL, 1.0) * np.sqrt(2 / (1 + UNEQUAL**2)))
            ),
        ),
        "coarse": ("values in steps of one SD", lambda draw, arms: np.rint(normal(draw, arms))),
        "missing": (
            "one value in five missing at random",
            lambda draw, arms: np.where(draw.random(arms.shape) < MISSING, np.nan, normal(draw, arms)),
        ),
        # The worst case for few pairs.
        "sharp": (
            "two sharp modes, half of the boots each",
            lambda draw, arms: 2.0 * (draw.random(arms.shape) < 0.5) + 0.02 * draw.standard_normal(arms.shape),
        ),
    }
    own: dict[str, tuple[str, Draw]] = {
        "normal": ("normal", scale_noise(normal, scale)),
        "floor": (
            "a floor and lognormal delays",
            lambda draw, arms: np.log1p(scale / delay * draw.lognormal(0, 1, arms.shape)),
        ),
        # So many that they vary by `scale`; the next one up for a count of 0.
        "counts": ("Poisson counts", lambda draw, arms: np.log(np.maximum(draw.poisson(scale**-2, arms.shape), 1))),
        "rare-1": ("1 % of the contender's boots 20 % slower", partial(rare, 0.01, scale)),
        "rare-5": ("5 % of the contender's boots 20 % slower", partial(rare, 0.05, scale)),
        "rare-10": ("10 % of the contender's boots 20 % slower", partial(rare, 0.1, scale)),
        "censored": ("the slowest fifth of the contender's boots void", scale_noise(censoring, scale)),
    }
    return own | {name: (about, scale_noise(draw, scale)) for name, (about, draw) in units.items()}


USUAL = ("normal", "floor", "bimodal", "heavy", "drift")
"""The defaults of `kduel plan --simulate`."""
DIFFERING = ("rare-1", "rare-5", "rare-10", "censored")
"""In these the contender does differ, or its trials do."""
NAMES = (*USUAL, *(name for name in kinds(1.0) if name not in USUAL))


def made_up(name: str, spread_pct: float) -> Noise:
    """One of NAMES. `spread_pct` is the standard deviation of the paired ratio, which is what a verdict depends on:
    two boots that vary by 1 % each make a spread of 1.41 %. Raises InputError where it is out of bounds."""
    if not 0 < spread_pct <= 100:
        raise InputError(f"the spread is {spread_pct:g} %", "Give more than 0 and 100 at most.")
    return Noise(name, *kinds(float(spread_pct / 100 / np.sqrt(2)))[name])


def resample_noise(c: Comparison) -> Noise:
    """The noise of a comparison that was measured: the difference of two boots, drawn from both arms without their
    means, and scaled to the spread of paired ratios. Raises InputError for too few or unusable values."""
    name = f"{c.table.key}, {c.contender}"
    before, after = c.pairs if c.table.paired else (c.before[~np.isnan(c.before)], c.after[~np.isnan(c.after)])
    count = min(before.size, after.size)
    if count < FEWEST_FOR_SPREAD:
        raise InputError(
            f"{name}: {plural(count, 'value')} of each contender are too few to resample noise from",
            f"A pilot needs {FEWEST_FOR_SPREAD} at least.",
        )
    if (before <= 0).any() or (after <= 0).any():
        raise InputError(f"{name} has zeros or negative values, of which there is no ratio to resample")
    arms = [np.log(before), np.log(after)]
    residuals = np.concatenate([(arm - arm.mean()) * np.sqrt(arm.size / (arm.size - 1)) for arm in arms])
    spread = float(log_ratios(before, after).std(ddof=1)) if c.table.paired else np.sqrt(2) * residuals.std()
    if spread <= ROUNDING or residuals.std() <= ROUNDING:
        raise InputError(f"{name} does not vary: there is no noise to resample")
    boot = residuals * (spread / np.sqrt(2) / residuals.std())

    def draw(generator: np.random.Generator, arms: Arms) -> Floats:
        drawn: Floats = generator.choice(boot, arms.shape)
        return drawn

    return Noise(name, f"{count} measured values of each contender, resampled", draw)
