"""Two contenders that are one kernel."""

import itertools
from collections.abc import Iterator

from kduel.core.results import ContenderResult, Results
from kduel.core.samples import Samples
from kduel.core.text import visible
from kduel.judge.lint.finding import Finding


def one_kernel(results: Results, _samples: list[Samples]) -> Iterator[str]:
    for one, other in itertools.combinations(results.contenders, 2):
        if one.sha256 and one.kernel != other.kernel and settings_of(one) == settings_of(other):
            yield (
                f"{visible(one.name, 200)} and {visible(other.name, 200)} are one kernel with the same settings: only chance can "
                "make a difference."
            )


def settings_of(contender: ContenderResult) -> tuple[object, ...]:
    """All of a contender that can make a difference."""
    recorded = (contender.facts.get(name) for name in ("modules", "sysctl", "machine", "scheduler"))
    return contender.sha256, contender.cmdline, contender.scheduler, contender.policy, *recorded


PLUGIN = Finding(
    name="one-kernel", cause="Two contenders are one kernel", weight=90,
    meaning="The images, modules and settings of two contenders are the same, though their specifications differ: a link or a "
    "copy, or two spellings of a version.",
    remedy="Name two kernels. To compare a kernel with itself on purpose: `kduel run --aa 2 KERNEL`.",
    check_run=one_kernel,
)  # fmt: skip
