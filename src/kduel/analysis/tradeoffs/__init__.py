"""Trade-offs: which contender is best in which aspect by verdicts, and which no other beats in all (Pareto)."""

from kduel.analysis.tradeoffs.aspects import Aspect, Standing, aspects
from kduel.analysis.tradeoffs.pareto import Front, front

__all__ = ["Aspect", "Front", "Standing", "aspects", "front"]
