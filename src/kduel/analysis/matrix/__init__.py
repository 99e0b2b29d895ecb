"""Factor matrices: `shape` turns a judged run into cells, verdicts of every pair that differs in one thing, and growth;
`advise` derives for what use a contender is better, where verdicts support it."""

from kduel.analysis.matrix.advice import Advice, advise
from kduel.analysis.matrix.shape import Matrix, shape

__all__ = ["Advice", "Matrix", "advise", "shape"]
