"""Mitigations that differ where only instructions are counted."""

from collections.abc import Iterator

from kduel.core.results import Results
from kduel.core.samples import Samples
from kduel.core.text import visible
from kduel.judge.lint.confounds import EVERY_MITIGATION, SET_BY
from kduel.judge.lint.finding import Finding

PARAMETERS = EVERY_MITIGATION.union(*(names for (group, _), names in SET_BY.items() if group == "mitigations"))
"""The command line's parameters that switch mitigations."""
NAMED = 4


def mitigations_uncounted(results: Results, _samples: list[Samples]) -> Iterator[str]:
    if results.machine.evidence.varies:
        return
    lines = [contender.cmdline.split() for contender in results.contenders]
    words = {word for line in lines for word in line if not all(word in other for other in lines)}
    switched = sorted(word for word in words if word.partition("=")[0] in PARAMETERS)
    reported = [one.key for one in results.differences if one.group == "mitigations"]
    found = list(dict.fromkeys([*switched, *reported]))
    if found:
        listed = ", ".join(visible(name, 60) for name in found[:NAMED]) + (", ..." if len(found) > NAMED else "")
        yield (
            f"The contenders differ in mitigations ({listed}), most of whose cost is not in the count: a flush or a barrier is one "
            "instruction, however long the processor waits for it."
        )


PLUGIN = Finding(
    name="mitigations-uncounted", cause="Most of the cost of mitigations is not counted", weight=66,
    meaning="The contenders of an exact run differ in mitigations of the processor's flaws. Instructions are counted, and a flush "
    "of buffers, a barrier or a mispredicted return is one instruction that may take hundreds of cycles.",
    remedy="Measure time on hardware (`--machine ssh` or KVM) to learn what mitigations cost.",
    check_run=mitigations_uncounted,
)  # fmt: skip
