"""A program whose own figure differs from what its other figures give."""

from collections.abc import Iterator

from kduel.core.format import quantity
from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Finding

SHARE = 0.1
"""By which the two may differ: programs take times at slightly different moments."""


def figures_disagree(case: Case) -> Iterator[str]:
    """Trials in which the program printed another figure than the value, which is computed from its other figures."""
    for arm in case.arms:
        printed = dict(zip(case.table.blocks, case.table.printed.get(arm.name, []), strict=False))
        pairs = [
            (value, own)
            for block, value in zip(arm.blocks.tolist(), arm.values.tolist(), strict=True)
            if (own := printed.get(block)) is not None and abs(own - value) > SHARE * max(abs(own), abs(value))
        ]
        if pairs:
            value, own = max(pairs, key=lambda pair: abs(pair[0] - pair[1]) / max(map(abs, pair)))
            yield (
                f"In {len(pairs)} of {arm.values.size} trials of {arm.name} the program prints another figure than its own "
                f"counts and times give (at most: {quantity(own, case.metric.unit)} against {quantity(value, case.metric.unit)}, "
                "which is used). It waited for a CPU between the measurement and its report: other work took the machine."
            )
            return


PLUGIN = Finding(
    name="figures-disagree", cause="A program waited for a CPU", weight=54,
    meaning="A rate that the program prints differs by more than 10 % from the rate that its counts and its measured time "
    "give. sysbench divides by the time until it prints, which is longer where it has to wait for a CPU. The value is "
    "the computed one.",
    remedy="Stop other work on the host, or give the machine the CPUs that it uses; then measure again.",
    check=figures_disagree,
)  # fmt: skip
