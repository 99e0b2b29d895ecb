"""A machine, or a part of a merged run, that is much noisier than the others."""

from collections.abc import Iterator

import numpy as np

from kduel.core.evidence import Evidence
from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Cause, Finding

FEWEST = 2


def machines_vary(case: Case) -> Iterator[str]:
    """The F test of the noisiest machine's pairs against those of all others, whose levels are taken off."""
    from scipy.special import fdtrc

    if not case.paired or not case.table.machines:
        return
    machine_of = dict(zip(case.table.blocks, case.table.machines, strict=True))
    names = np.array([machine_of[block] for block in case.counterpart[2].tolist()])
    groups = {name: case.gaps[names == name] for name in dict.fromkeys(names.tolist())}
    groups = {name: gaps for name, gaps in groups.items() if gaps.size >= FEWEST and np.isfinite(gaps).all()}
    if len(groups) < 2:
        return
    loudest = max(groups, key=lambda name: float(groups[name].var(ddof=1)))
    others = [gaps - gaps.mean() for name, gaps in groups.items() if name != loudest]
    freedom = sum(gaps.size - 1 for gaps in others)
    rest = sum(float((gaps**2).sum()) for gaps in others) / freedom
    top, count = float(groups[loudest].var(ddof=1)), groups[loudest].size
    if rest <= 0 or len(groups) * fdtrc(count - 1, freedom, top / rest) >= case.level:
        return
    yield (
        f"The pairs of {loudest} vary {np.sqrt(top / rest):.3g} times as much as those of the others ({count} of "
        f"{sum(gaps.size for gaps in groups.values())} blocks). Its noise decides how wide the interval is: find out what "
        "disturbs it, or judge it separately."
    )


PLUGIN = Finding(
    name="machines-vary", cause=Cause.MACHINES, weight=62,
    meaning="One machine, or one part of a merged run, is significantly noisier than the others (F test). Its share of the "
    "variance then has its own degrees of freedom, which widens the interval.",
    remedy="Look for other work on that machine; measure more blocks on it, or judge it separately.",
    undecided="one machine is much noisier than the others: find out what disturbs it, or judge it separately",
    check=machines_vary, chance=True, least=Evidence.VARYING,
)  # fmt: skip
