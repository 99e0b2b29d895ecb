"""Trade-offs: which contender is best in which aspect, as far as verdicts carry it, and which of them no other
beats in everything (Pareto)."""

from kduel.analysis.tradeoffs.aspects import Aspect, Standing, aspects
from kduel.analysis.tradeoffs.pareto import Front, front

__all__ = ["Aspect", "Front", "Standing", "aspects", "front"]
