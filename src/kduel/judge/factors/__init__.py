"""Effects of factors: the values of a study's cells, block by block, as pairs that the rule judges like any others."""

from kduel.judge.factors.contrasts import Effect, effects, gating
from kduel.judge.factors.headline import factor_headlines

__all__ = ["Effect", "effects", "factor_headlines", "gating"]
